/* SPDX-License-Identifier: MIT */
/*
 * colour_blend.c - blends of each pixel with another one, and greys.
 *
 * Formulas: Pillow's src/PIL/ImageEnhance.py, src/libImaging/Blend.c and
 * Filter.c (ImagingFilter3x3).
 */
#include "ops/colour.h"

#include <string.h>

#include "ops/colour_parts.h"

int tsi_colour_saturation(struct tsi_canvas *c, double factor)
{
	const struct tsi_colour_blend b = tsi_colour_blend_of(factor);
	size_t n = (size_t)c->width * c->height;
	uint8_t *p = c->pixels;

	/* A grey pixel's luminance is itself. */
	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i++, p += 3) {
		int grey = (int)tsi_colour_luminance(p);

		for (unsigned k = 0; k < 3; k++)
			p[k] = tsi_colour_blend(&b, grey, p[k]);
	}
	return 0;
}

int tsi_colour_grayscale(struct tsi_canvas *c)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t *p = c->pixels;

	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i++, p += 3)
		memset(p, (int)tsi_colour_luminance(p), 3);
	return 0;
}

int tsi_colour_to_gray(struct tsi_canvas *c)
{
	size_t n = (size_t)c->width * c->height;

	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i++)
		c->pixels[i] = (uint8_t)tsi_colour_luminance(c->pixels + 3 * i);
	c->channels = 1;
	return 0;
}

/* ------------------------------------------------------------------------
 * Sharpness
 */

static float row_of(const uint8_t *p, unsigned step, float side, float middle)
{
	return p[-(int)step] * side + p[0] * middle + p[step] * side;
}

/* The smoothed value at p, of rows that are `row` bytes. */
static int smooth(const uint8_t *p, size_t row, unsigned step)
{
	const float one = 1.0f / 13.0f, five = 5.0f / 13.0f;
	float sum = 0.5f;

	sum += row_of(p + row, step, one, one);
	sum += row_of(p, step, one, five);
	sum += row_of(p - row, step, one, one);
	return sum >= 255 ? 255 : (int)sum;
}

int tsi_colour_sharpness(struct tsi_canvas *c, double factor)
{
	const struct tsi_colour_blend b = tsi_colour_blend_of(factor);
	const size_t row = tsi_canvas_row(c);
	const unsigned step = c->channels;
	uint8_t *to;
	int err;

	/* It has no pixel but those of the border. */
	if (c->width < 3 || c->height < 3)
		return 0;
	err = tsi_canvas_other(c, c->width, c->height, c->channels, &to);
	if (err)
		return err;
	/* A border that is blended with itself stays as it is. */
	memcpy(to, c->pixels, tsi_canvas_bytes(c));
	for (uint32_t y = 1; y + 1 < c->height; y++) {
		const uint8_t *p = c->pixels + y * row;

		for (size_t x = step; x + step < row; x++)
			to[y * row + x] = tsi_colour_blend(
				&b, smooth(p + x, row, step), p[x]);
	}
	tsi_canvas_turn(c, c->width, c->height, c->channels);
	return 0;
}
