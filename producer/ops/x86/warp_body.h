/* SPDX-License-Identifier: MIT */
/*
 * warp_body.h - maps of a picture in vectors of any width: included by each
 * file that has a width, behind
 *
 *	VEC		the type of a vector of doubles
 *	LANES		doubles in a vector
 *	OP(name)	_mm256_name or _mm512_name
 *	TARGET		what its functions are compiled for
 *	centres(i)	the centres of LANES columns
 *	struct places	LANES places of a picture
 *	split(p, x, y)	makes them of these coordinates
 *	within(x, y, least, x_end, y_end)
 *			a bit for each that is from least on, and below the end
 *	offsets(s, p, n) where the pixels n columns and rows before them are
 *	bilinear(p, pixels, stride, k), bicubic(...)
 *			the pixel of place k and, of 8, that of place k + 4
 *	store(v0, v1, v2, v3, dst)
 *			LANES pixels of those for k from 0 to 3
 *
 * Near the picture's edges pixels are made in plain C.
 */
#include <immintrin.h>

#include "ops/warp_sample.h"

/* Bits of LANES places. */
#define ALL ((1 << LANES) - 1)

/* a * u + b + c, where b doesn't change along a row. */
TARGET static inline __attribute__((always_inline)) VEC line(double a, VEC u,
							     double b, double c)
{
	VEC v = OP(mul_pd)(OP(set1_pd)(a), u);

	return OP(add_pd)(OP(add_pd)(v, OP(set1_pd)(b)), OP(set1_pd)(c));
}

TARGET static void vec_affine(const double *m, uint32_t column, uint32_t row,
			      uint32_t n, double *x, double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i += LANES) {
		VEC u = centres(column + i);

		OP(storeu_pd)(x + i, line(m[0], u, m[1] * v, m[2]));
		OP(storeu_pd)(y + i, line(m[3], u, m[4] * v, m[5]));
	}
}

TARGET static void vec_perspective(const double *m, uint32_t column,
				   uint32_t row, uint32_t n, double *x,
				   double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i += LANES) {
		VEC u = centres(column + i);
		VEC q = line(m[6], u, m[7] * v, 1);
		VEC a = line(m[0], u, m[1] * v, m[2]);
		VEC b = line(m[3], u, m[4] * v, m[5]);

		OP(storeu_pd)(x + i, OP(div_pd)(a, q));
		OP(storeu_pd)(y + i, OP(div_pd)(b, q));
	}
}

/* Is it small enough for the offsets, and of three channels? */
static int is_usual(const struct tsi_warp_source *s)
{
	return s->channels == 3 &&
	       (uint64_t)s->width * s->height * 3 < INT32_MAX;
}

/* Those of the n pixels that are inside, each by itself. */
static void each_bilinear(const struct tsi_warp_source *s, const double *x,
			  const double *y, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++, dst += s->channels)
		if (tsi_warp_inside(s, x[i], y[i]))
			tsi_warp_bilinear(s, x[i], y[i], dst);
}

static void each_bicubic(const struct tsi_warp_source *s, const double *x,
			 const double *y, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++, dst += s->channels)
		if (tsi_warp_inside(s, x[i], y[i]))
			tsi_warp_bicubic(s, x[i], y[i], dst);
}

TARGET static void vec_bilinear(const struct tsi_warp_source *from,
				const double *x, const double *y, uint32_t n,
				uint8_t *dst)
{
	/* A copy, which stores to dst can't change. */
	const struct tsi_warp_source source = *from, *s = &source;
	double x_end = (double)s->width - 1, y_end = (double)s->height - 1;
	uint32_t i = 0, usual = is_usual(s) ? n : 0;
	size_t stride = (size_t)s->width * 3;
	struct places p;

	for (; i + LANES <= usual; i += LANES) {
		VEC vx = OP(loadu_pd)(x + i);
		VEC vy = OP(loadu_pd)(y + i);

		if (!within(vx, vy, 0, s->width, s->height))
			continue;
		split(&p, vx, vy);
		if (within(p.x, p.y, 0, x_end, y_end) != ALL) {
			each_bilinear(s, x + i, y + i, LANES, dst + 3 * i);
			continue;
		}
		offsets(s, &p, 0);
		store(bilinear(&p, s->pixels, stride, 0),
		      bilinear(&p, s->pixels, stride, 1),
		      bilinear(&p, s->pixels, stride, 2),
		      bilinear(&p, s->pixels, stride, 3), dst + 3 * i);
	}
	each_bilinear(s, x + i, y + i, n - i, dst + (size_t)i * s->channels);
}

TARGET static void vec_bicubic(const struct tsi_warp_source *from,
			       const double *x, const double *y, uint32_t n,
			       uint8_t *dst)
{
	/* A copy, which stores to dst can't change. */
	const struct tsi_warp_source source = *from, *s = &source;
	double x_end = (double)s->width - 2, y_end = (double)s->height - 2;
	uint32_t i = 0, usual = is_usual(s) ? n : 0;
	size_t stride = (size_t)s->width * 3;
	struct places p;

	for (; i + LANES <= usual; i += LANES) {
		VEC vx = OP(loadu_pd)(x + i);
		VEC vy = OP(loadu_pd)(y + i);

		if (!within(vx, vy, 0, s->width, s->height))
			continue;
		split(&p, vx, vy);
		if (within(p.x, p.y, 1, x_end, y_end) != ALL) {
			each_bicubic(s, x + i, y + i, LANES, dst + 3 * i);
			continue;
		}
		offsets(s, &p, 1);
		store(bicubic(&p, s->pixels, stride, 0),
		      bicubic(&p, s->pixels, stride, 1),
		      bicubic(&p, s->pixels, stride, 2),
		      bicubic(&p, s->pixels, stride, 3), dst + 3 * i);
	}
	each_bicubic(s, x + i, y + i, n - i, dst + (size_t)i * s->channels);
}
