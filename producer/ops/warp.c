/* SPDX-License-Identifier: MIT */
/*
 * warp.c - rows of places, and the pixels that are there.
 */
#include "ops/warp.h"

#include <math.h>
#include <string.h>

#include "ops/fill.h"
#include "ops/flip.h"
#include "ops/warp_map.h"
#include "ops/warp_nearest.h"
#include "ops/warp_sample.h"

/* Pixels whose places are computed at once. */
#define RUN 256

typedef void places_fn(const double *m, uint32_t column, uint32_t row,
		       uint32_t n, double *x, double *y);
typedef void pixels_fn(const struct tsi_warp_source *s, const double *x,
		       const double *y, uint32_t n, uint8_t *dst);

static void nearest3(const struct tsi_warp_source *s, const double *x,
		     const double *y, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++, dst += 3)
		if (tsi_warp_inside(s, x[i], y[i]))
			memcpy(dst,
			       s->pixels + ((size_t)(int64_t)y[i] * s->width +
					    (size_t)(int64_t)x[i]) *
						   3,
			       3);
}

static void nearest(const struct tsi_warp_source *s, const double *x,
		    const double *y, uint32_t n, uint8_t *dst)
{
	if (s->channels == 3) {
		nearest3(s, x, y, n, dst);
		return;
	}
	for (uint32_t i = 0; i < n; i++, dst++)
		if (tsi_warp_inside(s, x[i], y[i]))
			*dst = s->pixels[(size_t)(int64_t)y[i] * s->width +
					 (size_t)(int64_t)x[i]];
}

static pixels_fn *pixels_of(const struct tsi_canvas *c, enum tsi_filter filter)
{
	if (filter == TSI_FILTER_BILINEAR)
		return c->warp.bilinear;
	return filter == TSI_FILTER_BICUBIC ? c->warp.bicubic : nearest;
}

static void map(const struct tsi_canvas *c, const double *m, places_fn *places,
		pixels_fn *pixels, uint32_t width, uint32_t height,
		uint8_t *dst)
{
	struct tsi_warp_source s = { c->pixels, c->width, c->height,
				     c->channels };
	double x[RUN], y[RUN];

	for (uint32_t row = 0; row < height; row++) {
		for (uint32_t at = 0; at < width; at += RUN) {
			uint32_t n = width - at < RUN ? width - at : RUN;

			places(m, at, row, n, x, y);
			pixels(&s, x, y, n, dst);
			dst += (size_t)n * c->channels;
		}
	}
}

/* A new picture of this colour. */
static int begin(struct tsi_canvas *c, uint32_t width, uint32_t height,
		 const uint8_t *fill, uint8_t **dst)
{
	int err = tsi_canvas_other(c, width, height, c->channels, dst);

	if (!err)
		tsi_fill(*dst, (size_t)width * height, c->channels, fill);
	return err;
}

int tsi_warp_affine(struct tsi_canvas *c, uint32_t width, uint32_t height,
		    const double m[6], enum tsi_filter filter,
		    const uint8_t *fill)
{
	uint8_t *dst;
	int err = begin(c, width, height, fill, &dst);

	if (err)
		return err;
	if (filter == TSI_FILTER_NEAREST)
		err = tsi_warp_nearest(c, m, width, height, dst);
	else
		map(c, m, c->warp.affine, pixels_of(c, filter), width, height,
		    dst);
	if (!err)
		tsi_canvas_turn(c, width, height, c->channels);
	return err;
}

int tsi_warp_perspective(struct tsi_canvas *c, const double m[8],
			 enum tsi_filter filter, const uint8_t *fill)
{
	uint8_t *dst;
	int err = begin(c, c->width, c->height, fill, &dst);

	if (err)
		return err;
	map(c, m, c->warp.perspective, pixels_of(c, filter), c->width,
	    c->height, dst);
	tsi_canvas_turn(c, c->width, c->height, c->channels);
	return 0;
}

int tsi_warp_rotate(struct tsi_canvas *c, double degrees,
		    enum tsi_filter filter, bool expand, const double *centre,
		    const uint8_t *fill)
{
	uint32_t width = c->width, height = c->height;
	double m[6];

	degrees = fmod(degrees, 360);
	if (degrees < 0)
		degrees += 360;
	if (!centre && degrees == 0)
		return 0;
	if (!centre && degrees == 180)
		return tsi_flip_turn(c, 2);
	if (!centre && (degrees == 90 || degrees == 270) &&
	    (expand || width == height))
		return tsi_flip_turn(c, degrees == 90 ? 1 : 3);
	tsi_warp_map_rotation(degrees, centre, expand, &width, &height, m);
	return tsi_warp_affine(c, width, height, m, filter, fill);
}
