/* SPDX-License-Identifier: MIT */
/*
 * erase.c - a box of one colour, or of given values.
 */
#include "ops/erase.h"

#include "ops/fill.h"

static uint8_t byte_of(double v)
{
	return (uint8_t)(int)v;
}

/* Where row y of the box begins. */
static uint8_t *row_of(const struct tsi_canvas *c, const struct tsi_rect *box,
		       uint32_t y)
{
	return c->pixels + (size_t)(box->top + y) * tsi_canvas_row(c) +
	       (size_t)box->left * c->channels;
}

void tsi_erase(struct tsi_canvas *c, const struct tsi_rect *box,
	       const double *value)
{
	uint8_t pixel[3] = { 0 };

	for (unsigned k = 0; k < c->channels; k++)
		pixel[k] = byte_of(value[k]);
	for (uint32_t y = 0; y < box->height; y++)
		tsi_fill(row_of(c, box, y), box->width, c->channels, pixel);
}

void tsi_erase_by_pixel(struct tsi_canvas *c, const struct tsi_rect *box,
			const float *values)
{
	const size_t plane = (size_t)box->width * box->height;

	for (uint32_t y = 0; y < box->height; y++) {
		uint8_t *to = row_of(c, box, y);

		for (uint32_t x = 0; x < box->width; x++, values++)
			for (unsigned k = 0; k < c->channels; k++)
				*to++ = byte_of((double)values[k * plane]);
	}
}
