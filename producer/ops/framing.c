/* SPDX-License-Identifier: MIT */
/*
 * framing.c - crops, a resize, padding and flips as one step.
 */
#include "ops/framing.h"

#include <string.h>

#include "ops/fill.h"
#include "ops/flip.h"
#include "resample/resample.h"

struct tsi_framing tsi_framing_of(uint32_t width, uint32_t height)
{
	return (struct tsi_framing){
		.width = width,
		.height = height,
		.part = { .width = width, .height = height },
		.to_width = width,
		.to_height = height,
	};
}

/* Is all of the window inside the part? */
static bool is_inside(const struct tsi_framing *g)
{
	return g->left >= 0 && g->top >= 0 &&
	       (uint32_t)g->left + g->width <= g->to_width &&
	       (uint32_t)g->top + g->height <= g->to_height;
}

/* A window inside a part that isn't resized is a smaller part. */
static void narrow(struct tsi_framing *g)
{
	if (g->resized || !is_inside(g))
		return;
	g->part.left += (uint32_t)g->left;
	g->part.top += (uint32_t)g->top;
	g->part.width = g->to_width = g->width;
	g->part.height = g->to_height = g->height;
	g->left = g->top = 0;
}

bool tsi_framing_resize(struct tsi_framing *g, uint32_t width, uint32_t height,
			enum tsi_filter filter)
{
	if (width == g->width && height == g->height)
		return true;
	if (g->resized || !is_inside(g) || g->mirror_x || g->mirror_y)
		return false;
	narrow(g);
	g->resized = true;
	g->filter = filter;
	g->width = g->to_width = width;
	g->height = g->to_height = height;
	return true;
}

/*
 * One axis of a crop: does the window's new part, beyond its edges, lie beyond
 * the part's, too?
 */
static bool reaches(int64_t at, uint32_t len, int64_t from, uint32_t count,
		    uint32_t edge)
{
	return (at >= 0 || from <= 0) &&
	       (at + len <= count || from + count >= edge);
}

/* Is any pixel of a window in the part? */
static bool is_seen(int64_t from, uint32_t count, uint32_t edge)
{
	return from < edge && from + count > 0;
}

bool tsi_framing_crop(struct tsi_framing *g, int64_t left, int64_t top,
		      uint32_t width, uint32_t height, const uint8_t *fill)
{
	const bool outside = left < 0 || top < 0 || left + width > g->width ||
			     top + height > g->height;
	struct tsi_framing to = *g;

	narrow(&to);
	if (g->mirror_x)
		left = (int64_t)g->width - left - width;
	if (g->mirror_y)
		top = (int64_t)g->height - top - height;
	if (!reaches(left, width, to.left, to.width, to.to_width) ||
	    !reaches(top, height, to.top, to.height, to.to_height))
		return false;
	if (outside && to.padded && memcmp(to.fill, fill, sizeof(to.fill)))
		return false;
	if (outside) {
		to.padded = true;
		memcpy(to.fill, fill, sizeof(to.fill));
	}
	left += to.left;
	top += to.top;
	if (left < INT32_MIN || left > INT32_MAX || top < INT32_MIN ||
	    top > INT32_MAX)
		return false;
	to.left = (int32_t)left;
	to.top = (int32_t)top;
	to.width = width;
	to.height = height;
	narrow(&to);
	*g = to;
	return true;
}

bool tsi_framing_flip(struct tsi_framing *g, bool x, bool y)
{
	g->mirror_x ^= x;
	g->mirror_y ^= y;
	return true;
}

/* What a window that begins at `from` shows of an edge, and where. */
static void plan_axis(uint32_t in, uint32_t out, int32_t from, uint32_t window,
		      bool mirror, struct tsi_axis *axis, uint32_t *to)
{
	int64_t end = (int64_t)from + window;
	uint32_t skipped = from < 0 ? (uint32_t) - (int64_t)from : 0;

	axis->in = in;
	axis->out = out;
	axis->first = from < 0 ? 0 : (uint32_t)from;
	axis->count = (uint32_t)(end < out ? end : out) - axis->first;
	axis->mirror = mirror;
	*to = mirror ? window - skipped - axis->count : skipped;
}

bool tsi_framing_axes(const struct tsi_framing *g, struct tsi_framing_axes *out)
{
	if (!is_seen(g->left, g->width, g->to_width) ||
	    !is_seen(g->top, g->height, g->to_height))
		return false;
	*out = (struct tsi_framing_axes){ 0 };
	plan_axis(g->part.width, g->to_width, g->left, g->width, g->mirror_x,
		  &out->x, &out->to_x);
	/* A resampler writes rows in their order. */
	plan_axis(g->part.height, g->to_height, g->top, g->height, false,
		  &out->y, &out->to_y);
	out->x.filter = out->y.filter = g->filter;
	return true;
}

static unsigned shrink_of(const struct tsi_framing_axes *a)
{
	unsigned n = 8;

	while (n > 1 && (a->x.in / n < a->x.out || a->y.in / n < a->y.out))
		n /= 2;
	return n;
}

/* Scale a part of an edge, from *at on, to the image at 1/n of its size. */
static void shrink_edge(struct tsi_axis *a, uint32_t *at, unsigned n)
{
	uint32_t end = (*at + a->in + n - 1) / n;

	a->from = (double)(*at % n) / n;
	a->span = (double)a->in / n;
	*at /= n;
	a->in = end - *at;
}

unsigned tsi_framing_shrink(struct tsi_framing_axes *a, uint32_t *left,
			    uint32_t *top)
{
	unsigned n = shrink_of(a);

	if (n > 1) {
		shrink_edge(&a->x, left, n);
		shrink_edge(&a->y, top, n);
	}
	return n;
}

void tsi_framing_box(const struct tsi_framing *g, struct tsi_box *box)
{
	const bool whole = !g->left && !g->top && g->width == g->to_width &&
			   g->height == g->to_height;

	*box = (struct tsi_box){ .top = g->top,
				 .left = g->left,
				 .height = (int32_t)g->height,
				 .width = (int32_t)g->width,
				 .flip = g->mirror_x };
	if (!g->resized || whole) {
		box->top += (int32_t)g->part.top;
		box->left += (int32_t)g->part.left;
	}
	if (whole) {
		box->height = (int32_t)g->part.height;
		box->width = (int32_t)g->part.width;
	}
}

/* ------------------------------------------------------------------------
 * On a picture
 */

/* n pixels of a row, in reverse order if mirrored. */
static void copy_row(const uint8_t *from, uint32_t n, unsigned channels,
		     bool mirror, uint8_t *to)
{
	if (!mirror) {
		memcpy(to, from, (size_t)n * channels);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < channels; k++)
			to[(size_t)i * channels + k] =
				from[(size_t)(n - 1 - i) * channels + k];
}

static void copy_window(const struct tsi_framing *g,
			const struct tsi_framing_axes *a,
			const struct tsi_canvas *c, uint8_t *to)
{
	const size_t row = tsi_canvas_row(c),
		     step = (size_t)g->width * c->channels;
	const uint8_t *from = c->pixels + (g->part.top + a->y.first) * row +
			      (size_t)(g->part.left + a->x.first) * c->channels;

	to += a->to_y * step + (size_t)a->to_x * c->channels;
	for (uint32_t y = 0; y < a->y.count; y++)
		copy_row(from + y * row, a->x.count, c->channels, a->x.mirror,
			 to + y * step);
}

/* n pixels as a resampler takes them: four bytes each. */
static void widen(const struct tsi_canvas *c, const uint8_t *from, size_t n,
		  uint8_t *to)
{
	if (c->channels == 3) {
		c->warp.widen(from, n, to);
		return;
	}
	for (size_t i = 0; i < n; i++, to += 4)
		to[0] = to[1] = to[2] = from[i];
}

/* What the resampler of c needs of a picture, strip by strip. */
static void push(const struct tsi_canvas *of, const struct tsi_rect *rect,
		 size_t stride, struct tsi_canvas *c)
{
	const size_t row = tsi_canvas_row(of);
	const uint8_t *from = of->pixels + rect->top * row +
			      (size_t)rect->left * of->channels;
	struct tsi_strip strip = { .pixels = c->room.p, .stride = stride };

	for (uint32_t y = 0; y < rect->height; y++, from += row) {
		widen(of, from, rect->width, c->room.p + strip.rows * stride);
		strip.rows++;
		if (strip.rows == TSI_STRIP_ROWS || y + 1 == rect->height) {
			tsi_resample_push(c->resample, &strip);
			strip.rows = 0;
		}
	}
}

static int resize_window(const struct tsi_framing *g,
			 const struct tsi_framing_axes *a,
			 const struct tsi_canvas *from, struct tsi_canvas *c,
			 uint8_t *to)
{
	const size_t step = (size_t)g->width * 3;
	size_t stride;
	struct tsi_rect need;
	int err = tsi_resample_begin(
		c->resample, &a->x, &a->y,
		c->pillow12 ? TSI_PASSES_12 : TSI_PASSES_13, false,
		to + a->to_y * step + (size_t)a->to_x * 3, step, &need);

	if (err)
		return err;
	stride = (size_t)need.width * 4 + TSI_ROW_SLACK;
	err = tsi_scratch_grow(&c->room, TSI_STRIP_ROWS * stride,
			       "rows of a picture");
	if (err)
		return err;
	need.left += g->part.left;
	need.top += g->part.top;
	push(from, &need, stride, c);
	return 0;
}

/* One byte of each three: a resampler's picture that is grey. */
static void thin(uint8_t *pixels, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pixels[i] = pixels[3 * i];
}

/* Is the window just the canvas's picture? */
static bool is_nothing(const struct tsi_framing *g, const struct tsi_canvas *c)
{
	return !g->resized && !g->mirror_x && !g->mirror_y && is_inside(g) &&
	       g->width == c->width && g->height == c->height;
}

int tsi_framing_apply_from(const struct tsi_framing *g,
			   const struct tsi_canvas *from, struct tsi_canvas *c)
{
	/* The resampler's pixels have three bytes. */
	const unsigned channels = from->channels;
	const unsigned wide = g->resized ? 3 : channels;
	struct tsi_framing_axes a;
	const bool seen = tsi_framing_axes(g, &a);
	uint8_t *to;
	int err = tsi_canvas_other(c, g->width, g->height, wide, &to);

	if (err)
		return err;
	if (!seen || g->padded)
		tsi_fill(to, (size_t)g->width * g->height, wide, g->fill);
	if (seen && g->resized)
		err = resize_window(g, &a, from, c, to);
	else if (seen)
		copy_window(g, &a, from, to);
	if (err)
		return err;
	if (wide != channels)
		thin(to, (size_t)g->width * g->height);
	tsi_canvas_turn(c, g->width, g->height, channels);
	if (g->mirror_y)
		tsi_flip_y(c);
	return 0;
}

int tsi_framing_apply(const struct tsi_framing *g, struct tsi_canvas *c)
{
	return is_nothing(g, c) ? 0 : tsi_framing_apply_from(g, c, c);
}
