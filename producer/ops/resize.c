/* SPDX-License-Identifier: MIT */
/*
 * resize.c - a picture's rows as a decoder would give them to the resampler.
 */
#include "ops/resize.h"

#include "ops/warp.h"

/* n values to pixels of four bytes; grey ones are red, green and blue. */
static void widen(const struct tsi_canvas *c, const uint8_t *src, size_t n,
		  uint8_t *dst)
{
	if (c->channels == 3) {
		c->warp.widen(src, n, dst);
		return;
	}
	for (size_t i = 0; i < n; i++, dst += 4)
		dst[0] = dst[1] = dst[2] = src[i];
}

/* The rectangle's rows, strip by strip. */
static void push(const struct tsi_canvas *c, struct tsi_resample *r,
		 const struct tsi_rect *rect, uint8_t *room, size_t stride)
{
	struct tsi_strip strip = { room, stride, 0, 0 };
	const uint8_t *src = c->pixels + (size_t)rect->top * tsi_canvas_row(c) +
			     (size_t)rect->left * c->channels;

	for (uint32_t y = 0; y < rect->height; y++) {
		widen(c, src, rect->width, room + strip.rows * stride);
		src += tsi_canvas_row(c);
		strip.rows++;
		if (strip.rows == TSI_STRIP_ROWS || y + 1 == rect->height) {
			tsi_resample_push(r, &strip);
			strip.rows = 0;
		}
	}
}

/* The reds of n pixels. */
static void keep_grey(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = p[3 * i];
}

int tsi_resize(struct tsi_canvas *c, struct tsi_resample *r,
	       enum tsi_passes passes, const struct tsi_rect *part,
	       const struct tsi_axis *x, const struct tsi_axis *y)
{
	size_t stride = ((size_t)x->in * 4 + TSI_ROW_SLACK + 63) / 64 * 64;
	unsigned channels = c->channels;
	struct tsi_rect need;
	uint8_t *dst;
	int err = tsi_canvas_other(c, x->count, y->count, 3, &dst);

	if (!err)
		err = tsi_scratch_grow(&c->room, TSI_STRIP_ROWS * stride,
				       "rows of a picture");
	if (!err)
		err = tsi_resample_begin(r, x, y, passes, false, dst,
					 (size_t)x->count * 3, &need);
	if (err)
		return err;
	need.left += part ? part->left : 0;
	need.top += part ? part->top : 0;
	push(c, r, &need, c->room.p, stride);
	if (channels == 1)
		keep_grey(dst, (size_t)x->count * y->count);
	tsi_canvas_turn(c, x->count, y->count, channels);
	return 0;
}

/* Pillow's NEAREST is its affine map without interpolation. */
int tsi_resize_nearest(struct tsi_canvas *c, uint32_t width, uint32_t height)
{
	const double m[6] = { c->width / (double)width,   0, 0, 0,
			      c->height / (double)height, 0 };
	const uint8_t none[3] = { 0 };

	return tsi_warp_affine(c, width, height, m, TSI_WARP_NEAREST, none);
}
