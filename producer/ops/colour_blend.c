/* SPDX-License-Identifier: MIT */
/*
 * colour_blend.c - blends of each pixel with another one, and greys.
 *
 * Formulas: Pillow's src/PIL/ImageEnhance.py.
 */
#include "ops/colour.h"

#include <string.h>

static size_t pixels(const struct tsi_canvas *c)
{
	return (size_t)c->width * c->height;
}

int tsi_colour_saturation(struct tsi_canvas *c, double factor)
{
	/* A grey pixel's luminance is itself. */
	if (c->channels == 3)
		c->colour.saturate((float)factor, c->pixels, pixels(c));
	return 0;
}

int tsi_colour_blend_with(struct tsi_canvas *c, const uint8_t *d, double factor)
{
	c->colour.blend((float)factor, d, c->pixels, tsi_canvas_bytes(c));
	return 0;
}

int tsi_colour_to_gray(struct tsi_canvas *c)
{
	if (c->channels == 3)
		c->colour.luminance(c->pixels, c->pixels, pixels(c));
	c->channels = 1;
	return 0;
}

int tsi_colour_to_rgb(struct tsi_canvas *c)
{
	uint8_t *to;
	int err;

	if (c->channels == 3)
		return 0;
	err = tsi_canvas_other(c, c->width, c->height, 3, &to);
	if (err)
		return err;
	c->colour.spread(c->pixels, to, pixels(c));
	tsi_canvas_turn(c, c->width, c->height, 3);
	return 0;
}

int tsi_colour_grayscale(struct tsi_canvas *c)
{
	int err;

	if (c->channels == 1)
		return 0;
	err = tsi_colour_to_gray(c);
	return err ? err : tsi_colour_to_rgb(c);
}

int tsi_colour_sharpness(struct tsi_canvas *c, double factor)
{
	const size_t row = tsi_canvas_row(c), step = c->channels;
	const uint8_t *from = c->pixels;
	uint8_t *to;
	int err;

	/* A smaller picture is all border, which doesn't change. */
	if (c->width < 3 || c->height < 3)
		return 0;
	err = tsi_canvas_other(c, c->width, c->height, c->channels, &to);
	if (err)
		return err;
	memcpy(to, from, row);
	for (uint32_t y = 1; y + 1 < c->height; y++) {
		from += row;
		to += row;
		c->colour.smooth((float)factor, from + step, row, step,
				 to + step, row - 2 * step);
		memcpy(to, from, step);
		memcpy(to + row - step, from + row - step, step);
	}
	memcpy(to + row, from + row, row);
	tsi_canvas_turn(c, c->width, c->height, c->channels);
	return 0;
}
