/* SPDX-License-Identifier: MIT */
/*
 * blur_box.c - Pillow's Gaussian blur: three extended box blurs, after Gwosdek
 * and others, "Theoretical foundations of Gaussian convolution by extended box
 * filtering".
 *
 * A few lines at a time go through all three, in memory that stays in the first
 * cache: along y some columns, and along x some rows, which are transposed for
 * it.
 */
#include "ops/blur.h"

#include <math.h>
#include <string.h>

#define PASSES 3
#define ROWS 32 /* TSI_WARP_LANES / 3 */

/* The radius of the boxes, with a part of a pixel at either end. */
static float box_radius(float sigma)
{
	float square = sigma * sigma / PASSES;
	float length = (float)sqrt(12.0 * square + 1.0);
	float whole = (float)floor((length - 1.0) / 2.0);
	float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * square);

	part /= 6 * (square - (whole + 1) * (whole + 1));
	return whole + part;
}

static struct tsi_warp_box box_of(float radius)
{
	struct tsi_warp_box b = { .radius = (uint32_t)radius };

	b.near = (uint32_t)((float)(1 << 24) / (radius * 2 + 1));
	b.far = ((1u << 24) - (b.radius * 2 + 1) * b.near) / 2;
	return b;
}

/* The result of three passes over lines at src, of which one value is `wide`. */
static const uint8_t *blur(const struct tsi_canvas *c,
			   const struct tsi_warp_box *b, const uint8_t *src,
			   size_t stride, uint32_t n, unsigned lanes,
			   size_t wide)
{
	uint8_t *room[2] = { c->room.p,
			     c->room.p + (size_t)n * TSI_WARP_LANES };

	for (int i = 0; i < PASSES; i++) {
		c->warp.box(b, src, stride, room[i % 2], wide, n, lanes);
		src = room[i % 2];
		stride = wide;
	}
	return src;
}

static void blur_y(const struct tsi_canvas *c, const struct tsi_warp_box *b)
{
	const size_t wide = TSI_WARP_LANES;
	size_t bytes = tsi_canvas_row(c);

	for (size_t at = 0; at < bytes; at += wide) {
		uint8_t *p = c->pixels + at;
		size_t lanes = bytes - at < wide ? bytes - at : wide;
		const uint8_t *from =
			blur(c, b, p, bytes, c->height, (unsigned)lanes, wide);

		for (uint32_t y = 0; y < c->height; y++)
			memcpy(p + y * bytes, from + y * wide, lanes);
	}
}

/* Rows as columns: a pixel's channels follow each other, ROWS lanes each. */
static void blur_x(const struct tsi_canvas *c, const struct tsi_warp_box *b)
{
	uint8_t *turned = c->room.p + (size_t)c->width * 2 * TSI_WARP_LANES;
	uint32_t bytes = (uint32_t)tsi_canvas_row(c);
	unsigned lanes = c->channels * ROWS;

	for (uint32_t y = 0; y < c->height; y += ROWS) {
		uint8_t *p = c->pixels + (size_t)y * bytes;
		uint32_t rows = c->height - y < ROWS ? c->height - y : ROWS;
		const uint8_t *from;

		c->warp.transpose(p, bytes, bytes, rows, turned, ROWS);
		from = blur(c, b, turned, lanes, c->width, lanes, lanes);
		c->warp.transpose(from, ROWS, rows, bytes, p, bytes);
	}
}

int tsi_blur_pillow(struct tsi_canvas *c, float radius_x, float radius_y)
{
	float x = box_radius(radius_x), y = box_radius(radius_y);
	struct tsi_warp_box bx = box_of(x), by = box_of(y);
	size_t most = c->width > c->height ? c->width : c->height;
	int err = tsi_scratch_grow(&c->room, most * 3 * TSI_WARP_LANES + 64,
				   "a blur");

	if (err)
		return err;
	if (x != 0)
		blur_x(c, &bx);
	if (y != 0)
		blur_y(c, &by);
	return 0;
}
