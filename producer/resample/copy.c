/* SPDX-License-Identifier: MIT */
/*
 * copy.c - a window of an image that keeps its size.
 */
#include "resample/copy.h"

/* n pixels, each `along` bytes behind the one before, and its three values
 * `across` bytes apart. */
static void copy_pixels(const uint8_t *from, ptrdiff_t along, size_t across,
			uint32_t n, uint8_t *restrict to)
{
	for (uint32_t i = 0; i < n; i++, from += along, to += 3) {
		to[0] = from[0];
		to[1] = from[across];
		to[2] = from[2 * across];
	}
}

static void copy_row(const struct tsi_copy *c,
		     const struct tsi_resample_kernel *k, const uint8_t *from,
		     size_t plane)
{
	ptrdiff_t along = plane ? 1 : 4;

	if (plane && !c->mirror && k->weave)
		k->weave(from, plane, c->dst, c->width);
	else if (!c->mirror)
		copy_pixels(from, along, plane ? plane : 1, c->width, c->dst);
	else
		copy_pixels(from + (ptrdiff_t)(c->width - 1) * along, -along,
			    plane ? plane : 1, c->width, c->dst);
}

void tsi_copy_push(struct tsi_copy *c, const struct tsi_resample_kernel *k,
		   const struct tsi_strip *strip)
{
	for (uint32_t i = 0; i < strip->rows; i++) {
		copy_row(c, k, strip->pixels + i * strip->stride, strip->plane);
		c->dst += c->stride;
	}
}
