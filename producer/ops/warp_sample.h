/* SPDX-License-Identifier: MIT */
/*
 * warp_sample.h - one pixel between the pixels of a picture, in plain C: what
 * every version of a kernel does near the picture's edges.
 *
 * Formulas: Pillow's src/libImaging/Geometry.c, restated.  All arithmetic is in
 * double, in the order written.
 */
#ifndef TSI_OPS_WARP_SAMPLE_H
#define TSI_OPS_WARP_SAMPLE_H

#include <math.h>
#include <stdbool.h>

#include "ops/warp_kernel.h"

/* False for what is no number, too. */
static inline bool tsi_warp_inside(const struct tsi_warp_source *s, double x,
				   double y)
{
	return x >= 0 && x < s->width && y >= 0 && y < s->height;
}

static inline int64_t tsi_warp_clamp(int64_t i, uint32_t n)
{
	return i < 0 ? 0 : i < n ? i : (int64_t)n - 1;
}

/* Row y, or the nearest one that there is. */
static inline const uint8_t *tsi_warp_row(const struct tsi_warp_source *s,
					  int64_t y)
{
	return s->pixels +
	       (size_t)tsi_warp_clamp(y, s->height) * s->width * s->channels;
}

/* Column x, or the nearest one that there is, in bytes. */
static inline size_t tsi_warp_column(const struct tsi_warp_source *s, int64_t x)
{
	return (size_t)tsi_warp_clamp(x, s->width) * s->channels;
}

static inline double tsi_warp_between(int a, int b, double t)
{
	return a + (b - a) * t;
}

static inline void tsi_warp_bilinear(const struct tsi_warp_source *s, double x,
				     double y, uint8_t *dst)
{
	double left = floor(x - 0.5), top = floor(y - 0.5);
	double dx = (x - 0.5) - left, dy = (y - 0.5) - top;
	const uint8_t *p = tsi_warp_row(s, (int64_t)top);
	const uint8_t *q = tsi_warp_row(s, (int64_t)top + 1);
	size_t x0 = tsi_warp_column(s, (int64_t)left);
	size_t x1 = tsi_warp_column(s, (int64_t)left + 1);

	for (unsigned c = 0; c < s->channels; c++, x0++, x1++) {
		double v = tsi_warp_between(p[x0], p[x1], dx);
		double w = tsi_warp_between(q[x0], q[x1], dx);

		dst[c] = (uint8_t)(v + (w - v) * dy);
	}
}

/* p + t * (q + t * (r + t * u)) */
static inline double tsi_warp_cubic(double p, double q, double r, double u,
				    double t)
{
	return p + t * (q + t * (r + t * u));
}

/* The cubic with a = -1 through four of a row's pixels, from the middle two. */
static inline double tsi_warp_along(const uint8_t *row, const size_t at[4],
				    double t)
{
	int a = row[at[0]], b = row[at[1]], c = row[at[2]], d = row[at[3]];

	return tsi_warp_cubic(b, c - a, 2 * (a - b) + c - d, b - a - c + d, t);
}

static inline uint8_t tsi_warp_clip(double v)
{
	return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/*
 * Rows that aren't there have the value of the one before, or the first row's:
 * the nearest one's, either way.
 */
static inline void tsi_warp_bicubic(const struct tsi_warp_source *s, double x,
				    double y, uint8_t *dst)
{
	double left = floor(x - 0.5), top = floor(y - 0.5);
	double dx = (x - 0.5) - left, dy = (y - 0.5) - top;
	const uint8_t *row[4];
	size_t at[4];

	for (int i = 0; i < 4; i++) {
		at[i] = tsi_warp_column(s, (int64_t)left - 1 + i);
		row[i] = tsi_warp_row(s, (int64_t)top - 1 + i);
	}
	for (unsigned c = 0; c < s->channels; c++) {
		double v0 = tsi_warp_along(row[0] + c, at, dx);
		double v1 = tsi_warp_along(row[1] + c, at, dx);
		double v2 = tsi_warp_along(row[2] + c, at, dx);
		double v3 = tsi_warp_along(row[3] + c, at, dx);

		dst[c] = tsi_warp_clip(tsi_warp_cubic(v1, v2 - v0,
						      2 * (v0 - v1) + v2 - v3,
						      -v0 + v1 - v2 + v3, dy));
	}
}

/* 0 <= v < 255.5, to the nearest whole number, halves to even. */
static inline uint8_t tsi_warp_round(float v)
{
	/* Whose neighbours are 1 apart, so that the sum is rounded to them. */
	const float whole = 8388608;

	return (uint8_t)((v + whole) - whole);
}

#endif
