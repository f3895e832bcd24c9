/* SPDX-License-Identifier: MIT */
/*
 * colour.c - operations that give each value of a channel another one: they
 * fill in a table.
 *
 * Formulas: Pillow's src/PIL/ImageOps.py, ImageEnhance.py and
 * src/libImaging/Blend.c.
 */
#include "ops/colour.h"

#include <string.h>

#include "ops/colour_parts.h"

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
	c->colour.look_up3(t->of, c->pixels, (size_t)c->width * c->height);
	return 0;
}

/* The first table for all channels. */
static int look_up_all(struct tsi_canvas *c, const struct tables *t)
{
	c->colour.look_up(t->of[0], c->pixels, tsi_canvas_bytes(c));
	return 0;
}

/* A blend of all pixels with one value. */
static int blend_with(struct tsi_canvas *c, int d, double factor)
{
	struct tables t;

	for (int v = 0; v < 256; v++)
		t.of[0][v] = tsi_colour_blend((float)factor, d, v);
	return look_up_all(c, &t);
}

int tsi_colour_brightness(struct tsi_canvas *c, double factor)
{
	return blend_with(c, 0, factor);
}

static uint64_t sum_of_luminances(const struct tsi_canvas *c)
{
	size_t left = (size_t)c->width * c->height;
	uint8_t some[4096 + TSI_CANVAS_SLACK];
	const uint8_t *p = c->pixels;
	uint64_t sum = 0;

	if (c->channels == 1)
		return c->colour.sum(p, left);
	while (left) {
		size_t n = left < 4096 ? left : 4096;

		c->colour.luminance(p, some, n);
		sum += c->colour.sum(some, n);
		left -= n;
		p += 3 * n;
	}
	return sum;
}

int tsi_colour_contrast(struct tsi_canvas *c, double factor)
{
	double mean = (double)sum_of_luminances(c) /
		      (double)((size_t)c->width * c->height);

	return blend_with(c, (int)(mean + 0.5), factor);
}

int tsi_colour_invert(struct tsi_canvas *c)
{
	return tsi_colour_solarize(c, 0);
}

int tsi_colour_solarize(struct tsi_canvas *c, double threshold)
{
	struct tables t;

	for (int v = 0; v < 256; v++)
		t.of[0][v] = (uint8_t)(v < threshold ? v : 255 - v);
	return look_up_all(c, &t);
}

int tsi_colour_solarize_add(struct tsi_canvas *c, int add)
{
	struct tables t;

	for (int v = 0; v < 256; v++)
		t.of[0][v] = clip(v < 128 ? v + add : v);
	return look_up_all(c, &t);
}

int tsi_colour_posterize(struct tsi_canvas *c, unsigned bits)
{
	struct tables t;

	for (unsigned v = 0; v < 256; v++)
		t.of[0][v] = (uint8_t)(v >> (8 - bits) << (8 - bits));
	return look_up_all(c, &t);
}

/* ------------------------------------------------------------------------
 * By the values that there are
 */

static void stretch(int low, int high, uint8_t *table)
{
	double scale = high > low ? 255.0 / (high - low) : 1;

	for (int v = 0; v < 256; v++)
		table[v] = high > low ? clip((int)(v * scale - low * scale))
				      : (uint8_t)v;
}

static uint8_t min3(const uint8_t *p)
{
	uint8_t v = p[0] < p[1] ? p[0] : p[1];

	return v < p[2] ? v : p[2];
}

static uint8_t max3(const uint8_t *p)
{
	uint8_t v = p[0] > p[1] ? p[0] : p[1];

	return v > p[2] ? v : p[2];
}

int tsi_colour_autocontrast(struct tsi_canvas *c)
{
	uint8_t low[3], high[3];
	struct tables t;

	c->colour.extremes(c->pixels, tsi_canvas_bytes(c), low, high);
	if (c->channels == 1) {
		stretch(min3(low), max3(high), t.of[0]);
		return look_up_all(c, &t);
	}
	for (unsigned k = 0; k < 3; k++)
		stretch(low[k], high[k], t.of[k]);
	return look_up(c, &t);
}

/*
 * Two pixels at a time have counters of their own, since one that was just
 * written is slow to read.  Grey values take all of them in turn.
 */
static void count(const struct tsi_canvas *c, uint32_t histogram[3][256])
{
	uint32_t even[3][256] = { 0 }, odd[3][256] = { 0 };
	const uint8_t *p = c->pixels, *end = p + tsi_canvas_bytes(c);
	for (; end - p >= 6; p += 6) {
		even[0][p[0]]++;
		even[1][p[1]]++;
		even[2][p[2]]++;
		odd[0][p[3]]++;
		odd[1][p[4]]++;
		odd[2][p[5]]++;
	}
	for (unsigned i = 0; p < end; p++, i++)
		even[i % 3][*p]++;
	for (unsigned v = 0; v < 256; v++) {
		for (unsigned k = 0; k < 3; k++)
			histogram[k][v] = even[k][v] + odd[k][v];
		if (c->channels == 1)
			histogram[0][v] += histogram[1][v] + histogram[2][v];
	}
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
	return c->channels == 1 ? look_up_all(c, &t) : look_up(c, &t);
}
