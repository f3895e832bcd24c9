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

/* Channel c of row y, at the columns of `at`. */
static inline const uint8_t *tsi_warp_row(const struct tsi_warp_source *s,
					  int64_t y, unsigned c)
{
	return s->pixels + (size_t)y * s->width * s->channels + c;
}

/* Column x, or the nearest one that there is, in bytes. */
static inline size_t tsi_warp_column(const struct tsi_warp_source *s, int64_t x)
{
	return (size_t)tsi_warp_clamp(x, s->width) * s->channels;
}

/* A row below the picture's last one counts as equal to the one before. */
static inline void tsi_warp_bilinear(const struct tsi_warp_source *s, double x,
				     double y, uint8_t *dst)
{
	double left = floor(x - 0.5), top = floor(y - 0.5);
	double dx = (x - 0.5) - left, dy = (y - 0.5) - top;
	int64_t row = (int64_t)top;
	size_t x0 = tsi_warp_column(s, (int64_t)left);
	size_t x1 = tsi_warp_column(s, (int64_t)left + 1);

	for (unsigned c = 0; c < s->channels; c++) {
		const uint8_t *p =
			tsi_warp_row(s, tsi_warp_clamp(row, s->height), c);
		double v = p[x0] + (p[x1] - p[x0]) * dx, w = v;

		if (row + 1 < s->height) {
			p = tsi_warp_row(s, row + 1, c);
			w = p[x0] + (p[x1] - p[x0]) * dx;
		}
		dst[c] = (uint8_t)(v + (w - v) * dy);
	}
}

/* The cubic with a = -1 through four values, between the middle two. */
static inline double tsi_warp_cubic(const double v[4], double t)
{
	double p = v[2] - v[0];
	double q = 2 * (v[0] - v[1]) + v[2] - v[3];
	double r = -v[0] + v[1] - v[2] + v[3];

	return v[1] + t * (p + t * (q + t * r));
}

static inline uint8_t tsi_warp_clip(double v)
{
	return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/* As above: a row that isn't there has the value of the one before. */
static inline void tsi_warp_bicubic(const struct tsi_warp_source *s, double x,
				    double y, uint8_t *dst)
{
	double left = floor(x - 0.5), top = floor(y - 0.5);
	double dx = (x - 0.5) - left, dy = (y - 0.5) - top;
	int64_t row = (int64_t)top - 1;
	size_t at[4];

	for (int i = 0; i < 4; i++)
		at[i] = tsi_warp_column(s, (int64_t)left - 1 + i);
	for (unsigned c = 0; c < s->channels; c++) {
		double v[4];

		for (int k = 0; k < 4; k++) {
			const uint8_t *p;
			double h[4];

			if (k && (row + k < 0 || row + k >= s->height)) {
				v[k] = v[k - 1];
				continue;
			}
			p = tsi_warp_row(s, tsi_warp_clamp(row + k, s->height),
					 c);
			for (int i = 0; i < 4; i++)
				h[i] = p[at[i]];
			v[k] = tsi_warp_cubic(h, dx);
		}
		dst[c] = tsi_warp_clip(tsi_warp_cubic(v, dy));
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
