/* SPDX-License-Identifier: MIT */
/*
 * warp_nearest.c - an affine map without interpolation, in Pillow's three ways,
 * which round differently (src/libImaging/Geometry.c: ImagingScaleAffine,
 * affine_fixed and ImagingTransformAffine, restated).
 *
 *   scale   neither turned nor sheared: the columns' places are sums of double
 *           numbers, each m[0] more than the one before; so are the rows'
 *   fixed   the places of the corners fit into 16 bits: fixed-point numbers
 *           with 16 bits behind the point, which are exact when added
 *   steep   else: sums of double numbers along each row
 */
#include "ops/warp_nearest.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ops/warp_sample.h"

#define ONE 65536

static struct tsi_warp_source source_of(const struct tsi_canvas *c)
{
	return (struct tsi_warp_source){ c->pixels, c->width, c->height,
					 c->channels };
}

static void copy_pixel(const struct tsi_warp_source *s, double x, double y,
		       uint8_t *dst)
{
	memcpy(dst,
	       s->pixels + ((size_t)y * s->width + (size_t)x) * s->channels,
	       s->channels);
}

/* ------------------------------------------------------------------------
 * Scale
 */

/* Columns `first` to `end` come from those in `from`, the others from none. */
struct columns {
	uint32_t *from;
	uint32_t first;
	uint32_t end;
	bool dense; /* each from the one behind the one before */
};

static struct columns place_columns(const struct tsi_canvas *c, double start,
				    double step, uint32_t width)
{
	struct columns k = { (uint32_t *)(void *)c->room.p, width, 0, true };

	for (uint32_t x = 0; x < width; x++, start += step) {
		if (!(start >= 0 && start < c->width))
			continue;
		k.from[x] = (uint32_t)start;
		if (x < k.first)
			k.first = x;
		else
			k.dense = k.dense && k.from[x] == k.from[x - 1] + 1;
		k.end = x + 1;
	}
	return k;
}

static void scale_row3(const struct columns *k, const uint8_t *src,
		       uint8_t *dst)
{
	for (uint32_t x = k->first; x < k->end; x++)
		memcpy(dst + (size_t)x * 3, src + (size_t)k->from[x] * 3, 3);
}

static void scale_row(const struct columns *k, unsigned channels,
		      const uint8_t *src, uint8_t *dst)
{
	if (k->first >= k->end)
		return;
	if (k->dense)
		memcpy(dst + (size_t)k->first * channels,
		       src + (size_t)k->from[k->first] * channels,
		       (size_t)(k->end - k->first) * channels);
	else if (channels == 3)
		scale_row3(k, src, dst);
	else
		for (uint32_t x = k->first; x < k->end; x++)
			dst[x] = src[k->from[x]];
}

static int scale(struct tsi_canvas *c, const double m[6], uint32_t width,
		 uint32_t height, uint8_t *dst)
{
	struct columns k;
	double y = m[5] + m[4] * 0.5;
	int err = tsi_scratch_grow(&c->room, (size_t)width * sizeof(uint32_t),
				   "a row of a picture");

	if (err)
		return err;
	k = place_columns(c, m[2] + m[0] * 0.5, m[0], width);
	for (uint32_t row = 0; row < height; row++, y += m[4]) {
		if (y >= 0 && y < c->height)
			scale_row(&k, c->channels,
				  c->pixels + (size_t)y * tsi_canvas_row(c),
				  dst);
		dst += (size_t)width * c->channels;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Fixed
 */

static int64_t to_fixed(double v)
{
	return (int64_t)floor(v * ONE + 0.5);
}

static bool fits(const double m[6], double x, double y)
{
	return fabs(x * m[0] + y * m[1] + m[2]) < 32768 &&
	       fabs(x * m[3] + y * m[4] + m[5]) < 32768;
}

struct span {
	uint32_t first;
	uint32_t end;
};

/* a / b rounded up, b > 0, as an index from 0 to most. */
static uint32_t quotient(int64_t a, int64_t b, uint32_t most)
{
	int64_t q = a <= 0 ? 0 : (a - 1) / b + 1;

	return q > most ? most : (uint32_t)q;
}

/* Those i for which start + i * step is of the span's n whole pixels. */
static struct span inside(struct span all, int64_t start, int64_t step,
			  uint32_t n)
{
	int64_t limit = (int64_t)n * ONE;
	struct span s = all;

	if (step > 0) {
		s.first = quotient(-start, step, all.end);
		s.end = quotient(limit - start, step, all.end);
	} else if (step < 0) {
		s.first = quotient(start - limit + 1, -step, all.end);
		s.end = quotient(start + 1, -step, all.end);
	} else if (start < 0 || start >= limit) {
		s.end = s.first;
	}
	if (s.first < all.first)
		s.first = all.first;
	return s;
}

static void fixed(const struct tsi_canvas *c, const double m[6], uint32_t width,
		  uint32_t height, uint8_t *dst)
{
	struct tsi_warp_source s = source_of(c);
	int64_t dx = to_fixed(m[0]), dy = to_fixed(m[3]);
	int64_t x = to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
	int64_t y = to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);

	for (uint32_t row = 0; row < height; row++) {
		struct span all = { 0, width };
		struct span i =
			inside(inside(all, x, dx, s.width), y, dy, s.height);

		if (i.first < i.end)
			c->warp.fixed(&s, x + i.first * dx, y + i.first * dy,
				      dx, dy, i.end - i.first,
				      dst + (size_t)i.first * s.channels);
		x += to_fixed(m[1]);
		y += to_fixed(m[4]);
		dst += (size_t)width * s.channels;
	}
}

/* ------------------------------------------------------------------------
 * Steep
 */

static void steep(const struct tsi_canvas *c, const double m[6], uint32_t width,
		  uint32_t height, uint8_t *dst)
{
	struct tsi_warp_source s = source_of(c);
	double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5;
	double row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;

	for (uint32_t row = 0; row < height; row++) {
		double x = row_x, y = row_y;

		for (uint32_t i = 0; i < width; i++) {
			if (tsi_warp_inside(&s, x, y))
				copy_pixel(&s, x, y, dst);
			x += m[0];
			y += m[3];
			dst += s.channels;
		}
		row_x += m[1];
		row_y += m[4];
	}
}

int tsi_warp_nearest(struct tsi_canvas *c, const double m[6], uint32_t width,
		     uint32_t height, uint8_t *dst)
{
	double w = width, h = height;

	if (m[1] == 0 && m[3] == 0)
		return scale(c, m, width, height, dst);
	if (fits(m, 0, 0) && fits(m, w, h) && fits(m, 0, h) && fits(m, w, 0))
		fixed(c, m, width, height, dst);
	else
		steep(c, m, width, height, dst);
	return 0;
}
