/* SPDX-License-Identifier: MIT */
/*
 * erase.c - a box of one colour, or of noise.
 */
#include "ops/erase.h"

#include <math.h>

#include "base/philox.h"
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

/* ------------------------------------------------------------------------
 * Noise
 */

/*
 * Which byte a number of 16 bits becomes: the first whose end is above it.  With
 * a beginning for its upper 12 bits hardly any number needs a second look.
 */
#define UPPER 12
#define LOWER (16 - UPPER)

struct levels {
	uint32_t end[256];
	uint8_t from[1 << UPPER];
};

static void make_levels(double mean, double std, struct levels *out)
{
	/* The square root of a half. */
	const double half = 0.70710678118654752440;
	unsigned b = 0;

	for (int k = 0; k < 255; k++) {
		double x = (k + 0.5 - mean) / std;
		double below = 0.5 * erfc(-x * half);

		out->end[k] = (uint32_t)floor(65536 * below + 0.5);
	}
	out->end[255] = 65536;
	for (unsigned upper = 0; upper < 1 << UPPER; upper++) {
		while (out->end[b] <= upper << LOWER)
			b++;
		out->from[upper] = (uint8_t)b;
	}
}

static uint8_t level_of(const struct levels *l, uint32_t u)
{
	unsigned b = l->from[u >> LOWER];

	while (l->end[b] <= u)
		b++;
	return (uint8_t)b;
}

struct noise {
	struct levels of[3]; /* a channel each */
	uint64_t key;
	uint32_t block; /* the next one */
	unsigned next;  /* of the current one */
	struct tsi_philox_ctr words;
};

static uint8_t next_byte(struct noise *n, unsigned channel)
{
	unsigned k = n->next++ % 8;

	if (!k)
		n->words = tsi_philox(
			n->key, (struct tsi_philox_ctr){ { n->block++ } });
	return level_of(&n->of[channel],
			n->words.v[k / 2] >> k % 2 * 16 & 0xffff);
}

static void next_pixels(struct noise *n, unsigned channels, size_t count,
			uint8_t *to)
{
	for (; count; count--)
		for (unsigned k = 0; k < channels; k++)
			*to++ = next_byte(n, k);
}

void tsi_erase_with_noise(struct tsi_canvas *c, const struct tsi_rect *box,
			  const struct tsi_erase_noise *noise)
{
	struct noise n = { .key = noise->seed };
	uint8_t pixel[3] = { 0 };

	for (unsigned k = 0; k < c->channels; k++)
		make_levels(noise->mean[k], noise->std[k], &n.of[k]);
	if (noise->color)
		next_pixels(&n, c->channels, 1, pixel);
	for (uint32_t y = 0; y < box->height; y++)
		if (noise->color)
			tsi_fill(row_of(c, box, y), box->width, c->channels,
				 pixel);
		else
			next_pixels(&n, c->channels, box->width,
				    row_of(c, box, y));
}
