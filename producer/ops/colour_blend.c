/* SPDX-License-Identifier: MIT */
/*
 * colour_blend.c - blends of each pixel with another one, and greys.
 *
 * Formulas: Pillow's src/PIL/ImageEnhance.py, src/libImaging/Blend.c and
 * Filter.c (ImagingFilter3x3).
 */
#include "ops/colour.h"

#include <string.h>

/* Pixels whose luminances are at hand at a time. */
#define SOME 1024

/* Each pixel's luminance, three times, for `some` pixels from number i on. */
static void grays_of(const struct tsi_canvas *c, size_t i, size_t some,
		     uint8_t *to)
{
	uint8_t gray[SOME];

	c->colour.gray(c->pixels + 3 * i, some, gray);
	c->colour.spread(gray, some, to);
}

static size_t at_most(size_t n)
{
	return n < SOME ? n : SOME;
}

int tsi_colour_saturation(struct tsi_canvas *c, double factor)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t gray[3 * SOME];

	/* A grey pixel's luminance is itself. */
	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i += SOME) {
		size_t some = at_most(n - i);

		grays_of(c, i, some, gray);
		c->colour.blend(c->pixels + 3 * i, gray, 3 * some,
				(float)factor);
	}
	return 0;
}

int tsi_colour_grayscale(struct tsi_canvas *c)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t gray[3 * SOME];

	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i += SOME) {
		size_t some = at_most(n - i);

		grays_of(c, i, some, gray);
		memcpy(c->pixels + 3 * i, gray, 3 * some);
	}
	return 0;
}

int tsi_colour_to_gray(struct tsi_canvas *c)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t gray[SOME];

	if (c->channels == 1)
		return 0;
	for (size_t i = 0; i < n; i += SOME) {
		size_t some = at_most(n - i);

		c->colour.gray(c->pixels + 3 * i, some, gray);
		memcpy(c->pixels + i, gray, some);
	}
	c->channels = 1;
	return 0;
}

/* ------------------------------------------------------------------------
 * Sharpness
 */

int tsi_colour_sharpness(struct tsi_canvas *c, double factor)
{
	const size_t row = tsi_canvas_row(c), step = c->channels;
	uint8_t *smooth;
	int err;

	/* It has no pixel but those of the border. */
	if (c->width < 3 || c->height < 3)
		return 0;
	err = tsi_canvas_other(c, c->width, c->height, c->channels, &smooth);
	if (err)
		return err;
	/* A border that is blended with itself stays as it is. */
	memcpy(smooth, c->pixels, row);
	memcpy(smooth + row * (c->height - 1),
	       c->pixels + row * (c->height - 1), row);
	for (uint32_t y = 1; y + 1 < c->height; y++) {
		const uint8_t *p = c->pixels + y * row;
		uint8_t *to = smooth + y * row;

		memcpy(to, p, step);
		c->colour.smooth(p - row + step, p + step, p + row + step, step,
				 row - 2 * step, to + step);
		memcpy(to + row - step, p + row - step, step);
	}
	c->colour.blend(c->pixels, smooth, tsi_canvas_bytes(c), (float)factor);
	return 0;
}
