/* SPDX-License-Identifier: MIT */
/*
 * pad.c - rows of a border, whose columns' places are worked out once.
 */
#include "ops/pad.h"

#include <string.h>

#include "base/err.h"
#include "ops/fill.h"

/* Which of the picture's pixels fills place i; -1: none of them. */
int64_t tsi_pad_place(const struct tsi_pad_axis *a, int64_t i)
{
	const enum tsi_pad_mode mode = a->mode;
	int64_t n = a->n, mirror = mode == TSI_PAD_REFLECT ? n - 1 : n;

	i += a->start - a->first;
	if (i >= 0 && i < n)
		return a->first + i;
	if (mode == TSI_PAD_CONSTANT)
		return -1;
	if (mode == TSI_PAD_EDGE || mirror == 0)
		return a->first + (i < 0 ? 0 : n - 1);
	i %= 2 * mirror;
	if (i < 0)
		i += 2 * mirror;
	if (i >= n)
		i = 2 * mirror - i - (mode == TSI_PAD_SYMMETRIC);
	return a->first + i;
}

static struct tsi_pad_axis axis_of(int64_t n, int64_t before, int64_t behind,
				   enum tsi_pad_mode mode)
{
	struct tsi_pad_axis a = { mode, 0, n, n + before + behind, -before };

	if (mode == TSI_PAD_CONSTANT)
		return a;
	a.first = before < 0 ? -before : 0;
	a.n = n - a.first + (behind < 0 ? behind : 0);
	return a;
}

static void pad_row3(const int64_t *from, size_t width, const uint8_t *src,
		     uint8_t *dst)
{
	for (size_t x = 0; x < width; x++)
		if (from[x] >= 0)
			memcpy(dst + x * 3, src + (size_t)from[x] * 3, 3);
}

static void pad_row1(const int64_t *from, size_t width, const uint8_t *src,
		     uint8_t *dst)
{
	for (size_t x = 0; x < width; x++)
		if (from[x] >= 0)
			dst[x] = src[from[x]];
}

/* The middle is copied at once. */
static void pad_row(const struct tsi_canvas *c, const struct tsi_pad_axis *x,
		    const uint8_t *src, uint8_t *dst)
{
	const int64_t *from = (const int64_t *)(void *)c->room.p;
	void (*some)(const int64_t *, size_t, const uint8_t *, uint8_t *) =
		c->channels == 3 ? pad_row3 : pad_row1;
	int64_t begin = x->first - x->start, end = begin + x->n;

	begin = begin < 0 ? 0 : begin > x->out ? x->out : begin;
	end = end < begin ? begin : end > x->out ? x->out : end;
	some(from, (size_t)begin, src, dst);
	if (begin < end)
		memcpy(dst + (size_t)begin * c->channels,
		       src + (size_t)(begin + x->start) * c->channels,
		       (size_t)(end - begin) * c->channels);
	some(from + end, (size_t)(x->out - end), src,
	     dst + (size_t)end * c->channels);
}

static void pad(const struct tsi_canvas *c, const struct tsi_pad_axis *x,
		const struct tsi_pad_axis *y, uint8_t *dst)
{
	size_t bytes = (size_t)x->out * c->channels;

	for (int64_t i = 0; i < y->out; i++, dst += bytes) {
		int64_t row = tsi_pad_place(y, i);

		if (row >= 0)
			pad_row(c, x,
				c->pixels + (size_t)row * tsi_canvas_row(c),
				dst);
	}
}

int tsi_pad_axes(uint32_t width, uint32_t height,
		 const struct tsi_pad_border *b, enum tsi_pad_mode mode,
		 struct tsi_pad_axis *x, struct tsi_pad_axis *y)
{
	*x = axis_of(width, b->left, b->right, mode);
	*y = axis_of(height, b->top, b->bottom, mode);
	if (x->n > 0 && x->out > 0 && y->n > 0 && y->out > 0)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "negative padding leaves nothing of a picture of "
		       "%u x %u",
		       width, height);
}

int tsi_pad(struct tsi_canvas *c, const struct tsi_pad_border *b,
	    enum tsi_pad_mode mode, const uint8_t *fill)
{
	struct tsi_pad_axis x, y;
	uint8_t *dst;
	int64_t *from;
	int err = tsi_pad_axes(c->width, c->height, b, mode, &x, &y);

	if (!err)
		err = tsi_scratch_grow(&c->room,
				       (size_t)x.out * sizeof(int64_t),
				       "a row of a picture");
	if (!err)
		err = tsi_canvas_other(c, (uint32_t)x.out, (uint32_t)y.out,
				       c->channels, &dst);
	if (err)
		return err;
	from = (int64_t *)(void *)c->room.p;
	for (int64_t i = 0; i < x.out; i++)
		from[i] = tsi_pad_place(&x, i);
	if (mode == TSI_PAD_CONSTANT)
		tsi_fill(dst, (size_t)(x.out * y.out), c->channels, fill);
	pad(c, &x, &y, dst);
	tsi_canvas_turn(c, (uint32_t)x.out, (uint32_t)y.out, c->channels);
	return 0;
}
