/* SPDX-License-Identifier: MIT */
/*
 * colour.c - operations that give each value of a channel another one: they
 * fill in a table.
 *
 * Formulas: Pillow's src/PIL/ImageOps.py, ImageEnhance.py and
 * src/libImaging/Blend.c.
 */
#include "ops/colour.h"

#include <math.h>
#include <string.h>

/* A table for each channel. */
struct tables {
	uint8_t of[3][256];
};

static uint8_t clip(int v)
{
	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static int look_up(struct tsi_canvas *c, const struct tables *t)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t *p = c->pixels;

	if (c->channels == 1) {
		for (size_t i = 0; i < n; i++)
			p[i] = t->of[0][p[i]];
		return 0;
	}
	for (size_t i = 0; i < n; i++, p += 3) {
		p[0] = t->of[0][p[0]];
		p[1] = t->of[1][p[1]];
		p[2] = t->of[2][p[2]];
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * By the value alone
 */

/* Pixels whose luminances are at hand at a time. */
#define SOME 1024

/* Alpha 1 leaves everything as it is, without being told apart. */
static int blend_with(struct tsi_canvas *c, int d, double factor)
{
	c->colour.constant(c->pixels, tsi_canvas_bytes(c), d, (float)factor);
	return 0;
}

int tsi_colour_brightness(struct tsi_canvas *c, double factor)
{
	return blend_with(c, 0, factor);
}

static uint64_t sum_of(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

/* Of all luminances. */
static uint64_t sum_of_grays(const struct tsi_canvas *c)
{
	size_t n = (size_t)c->width * c->height;
	uint8_t gray[SOME];
	uint64_t sum = 0;

	if (c->channels == 1)
		return sum_of(c->pixels, n);
	for (size_t i = 0; i < n; i += SOME) {
		size_t some = n - i < SOME ? n - i : SOME;

		c->colour.gray(c->pixels + 3 * i, some, gray);
		sum += sum_of(gray, some);
	}
	return sum;
}

int tsi_colour_contrast(struct tsi_canvas *c, double factor)
{
	double n = (double)c->width * c->height;

	return blend_with(c, (int)((double)sum_of_grays(c) / n + 0.5), factor);
}

int tsi_colour_invert(struct tsi_canvas *c)
{
	return tsi_colour_solarize(c, 0);
}

int tsi_colour_solarize(struct tsi_canvas *c, double threshold)
{
	double least = ceil(threshold);

	c->colour.solarize(c->pixels, tsi_canvas_bytes(c),
			   least < 0     ? 0
			   : least > 256 ? 256
					 : (unsigned)least);
	return 0;
}

int tsi_colour_solarize_add(struct tsi_canvas *c, int add)
{
	c->colour.add(c->pixels, tsi_canvas_bytes(c), add);
	return 0;
}

int tsi_colour_posterize(struct tsi_canvas *c, unsigned bits)
{
	c->colour.mask(c->pixels, tsi_canvas_bytes(c),
		       (uint8_t)(0xff00u >> bits));
	return 0;
}

/* ------------------------------------------------------------------------
 * By the histogram
 */

static void count(const struct tsi_canvas *c, uint32_t histogram[3][256])
{
	size_t n = tsi_canvas_bytes(c);

	memset(histogram, 0, 3 * sizeof(histogram[0]));
	for (size_t i = 0; i < n; i += c->channels)
		for (unsigned k = 0; k < c->channels; k++)
			histogram[k][c->pixels[i + k]]++;
}

static void stretch(const uint32_t *histogram, uint8_t *table)
{
	int low = 0, high = 255;
	double scale;

	while (low < 255 && !histogram[low])
		low++;
	while (high > 0 && !histogram[high])
		high--;
	scale = high > low ? 255.0 / (high - low) : 1;
	for (int v = 0; v < 256; v++)
		table[v] = high > low ? clip((int)(v * scale - low * scale))
				      : (uint8_t)v;
}

int tsi_colour_autocontrast(struct tsi_canvas *c)
{
	uint32_t histogram[3][256];
	struct tables t;

	count(c, histogram);
	for (unsigned k = 0; k < c->channels; k++)
		stretch(histogram[k], t.of[k]);
	return look_up(c, &t);
}

static void equalize(const uint32_t *histogram, uint8_t *table)
{
	uint32_t sum = 0, last = 0, step, n;

	for (int v = 0; v < 256; v++) {
		sum += histogram[v];
		last = histogram[v] ? histogram[v] : last;
	}
	step = (sum - last) / 255;
	n = step / 2;
	for (int v = 0; v < 256; v++) {
		uint32_t to = step ? n / step : (uint32_t)v;

		table[v] = (uint8_t)(to > 255 ? 255 : to);
		n += histogram[v];
	}
}

int tsi_colour_equalize(struct tsi_canvas *c)
{
	uint32_t histogram[3][256];
	struct tables t;

	count(c, histogram);
	for (unsigned k = 0; k < c->channels; k++)
		equalize(histogram[k], t.of[k]);
	return look_up(c, &t);
}
