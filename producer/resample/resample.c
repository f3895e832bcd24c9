/* SPDX-License-Identifier: MIT */
/*
 * resample.c - which rows are held between the two passes, whose arithmetic is
 * a kernel's.
 *
 * Formulas: Pillow's src/libImaging/Resample.c (ImagingResample*_8bpc),
 * restated.
 */
#include "resample/resample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "resample/copy.h"
#include "resample/kernel.h"

/* Rows that go through the second pass together. */
#define BATCH 8

/*
 * How rows are laid out: parts of so many bytes, each `step` behind the one
 * before.  Rows of whole pixels have one part, those in planes three.
 */
struct layout {
	unsigned parts;
	size_t bytes;
	size_t step;
	size_t stride; /* from row to row */
};

struct tsi_resample {
	struct tsi_resample_kernel kernel;
	struct tsi_taps x;
	struct tsi_taps y;
	bool same; /* no size changes: rows are copied, and all else is unused */
	struct tsi_copy copy;
	bool down_first;
	bool planes;
	/*
	 * Rows on their way to the vertical pass: source rows if that comes
	 * first, else what the horizontal pass made of them.
	 */
	struct tsi_scratch held;
	struct layout held_rows;
	uint32_t held_max;
	uint32_t held_first; /* source row of the first one held */
	uint32_t pushed;
	uint32_t emitted;
	/* Between the passes, if the vertical one is first; as held. */
	struct tsi_scratch between;
	/* Behind the passes, if rows of dst are made of these. */
	struct tsi_scratch narrow;
	struct layout narrow_rows;
	uint8_t *dst;
	size_t dst_stride;
};

/*
 * Pillow from version 13 on goes down first where the height shrinks by more
 * than twice what the width does (python-pillow/Pillow#9549).
 */
static bool goes_down_first(const struct tsi_axis *x, const struct tsi_axis *y)
{
	int64_t dx = (int64_t)x->in - x->out, dy = (int64_t)y->in - y->out;

	return dy > 0 && dy > 2 * dx;
}

static size_t row_stride(size_t bytes)
{
	return (bytes + TSI_ROW_SLACK + 63) / 64 * 64;
}

/* Rows of n pixels, this many bytes each, or in planes of slack bytes more. */
static struct layout lay_out(bool planes, size_t n, size_t pixel, size_t slack)
{
	struct layout l = { 1, n * pixel, 0, row_stride(n * pixel) };

	if (planes) {
		l.parts = 3;
		l.bytes = n;
		l.step = (n + slack + 15) / 16 * 16;
		l.stride = row_stride(3 * l.step);
	}
	return l;
}

/* Rows of x->n pixels, as the horizontal pass makes them. */
static struct layout lay_out_narrow(bool planes, size_t n)
{
	return lay_out(planes, n, 3, 0);
}

/* Rows of source pixels. */
static struct layout lay_out_source(bool planes, size_t n)
{
	return lay_out(planes, n, 4, TSI_PLANE_SLACK);
}

static int make_room(struct tsi_resample *r, uint32_t width)
{
	static const char what[] = "resampling scratch";
	struct layout *held = &r->held_rows;
	int err;

	r->narrow_rows = lay_out_narrow(r->planes, r->x.n);
	*held = r->down_first ? lay_out_source(r->planes, width)
			      : r->narrow_rows;
	/* What an output row reaches over, and a strip or two. */
	r->held_max = tsi_taps_most(&r->y) + 2 * TSI_STRIP_ROWS;
	err = tsi_scratch_grow(&r->held, r->held_max * held->stride, what);
	if (!err && r->down_first)
		err = tsi_scratch_grow(&r->between, BATCH * held->stride, what);
	if (!err && (r->down_first || r->planes))
		err = tsi_scratch_grow(&r->narrow,
				       BATCH * r->narrow_rows.stride, what);
	return err;
}

/* Planes only where the kernel has the words for it. */
static void pack_taps(struct tsi_resample *r, bool planes)
{
	const struct tsi_resample_kernel *kernel = &r->kernel;

	r->planes = planes && kernel->across_plane &&
		    tsi_taps_spread(&r->x) <= TSI_PLANE_SPREAD;
	if (r->planes)
		kernel->pack_plane(&r->x);
	else
		kernel->pack(&r->x);
	kernel->pack(&r->y);
}

/* The window is a copy of these pixels. */
static void begin_copy(struct tsi_resample *r, const struct tsi_axis *x,
		       const struct tsi_axis *y, bool planes, uint8_t *dst,
		       size_t stride, struct tsi_rect *need)
{
	*need = (struct tsi_rect){ .left = x->first,
				   .top = y->first,
				   .width = x->count,
				   .height = y->count };
	r->planes = planes;
	r->copy = (struct tsi_copy){ x->count, x->mirror, dst, stride };
}

int tsi_resample_begin(struct tsi_resample *r, const struct tsi_axis *x,
		       const struct tsi_axis *y, enum tsi_passes passes,
		       bool planes, uint8_t *dst, size_t stride,
		       struct tsi_rect *need)
{
	int err;

	r->same = tsi_axis_is_same(x) && tsi_axis_is_same(y);
	if (r->same) {
		begin_copy(r, x, y, planes, dst, stride, need);
		return 0;
	}
	err = tsi_taps_make(&r->x, x);
	if (!err)
		err = tsi_taps_make(&r->y, y);
	if (err)
		return err;
	need->width = tsi_taps_rebase(&r->x, &need->left);
	need->height = tsi_taps_rebase(&r->y, &need->top);
	r->down_first = passes == TSI_PASSES_13 && goes_down_first(x, y);
	pack_taps(r, planes);
	err = make_room(r, need->width);
	if (err)
		return err;
	r->held_first = 0;
	r->pushed = 0;
	r->emitted = 0;
	r->dst = dst;
	r->dst_stride = stride;
	return 0;
}

bool tsi_resample_planes(const struct tsi_resample *r)
{
	return r->planes;
}

static uint64_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

uint64_t tsi_resample_need(const struct tsi_axis *x, const struct tsi_axis *y,
			   enum tsi_passes passes)
{
	bool down_first = passes == TSI_PASSES_13 && goes_down_first(x, y);
	uint64_t narrow = larger(lay_out_narrow(false, x->count).stride,
				 lay_out_narrow(true, x->count).stride);
	uint64_t held = larger(lay_out_source(false, x->in).stride,
			       lay_out_source(true, x->in).stride);
	uint64_t rows = tsi_taps_widest(y) + 2 * TSI_STRIP_ROWS;

	if (!down_first)
		held = narrow;
	return tsi_scratch_need(rows * held) + tsi_scratch_need(BATCH * held) +
	       tsi_scratch_need(BATCH * narrow) + tsi_taps_need(x) +
	       tsi_taps_need(y);
}

void tsi_resample_trim(struct tsi_resample *r)
{
	tsi_scratch_trim(&r->held);
	tsi_scratch_trim(&r->between);
	tsi_scratch_trim(&r->narrow);
}

static uint8_t *held(const struct tsi_resample *r, uint32_t row)
{
	return r->held.p + (size_t)(row - r->held_first) * r->held_rows.stride;
}

/* Forget rows that no output row needs any more, to hold n more. */
static void compact(struct tsi_resample *r, uint32_t n)
{
	uint32_t keep =
		r->emitted < r->y.n ? r->y.first[r->emitted] : r->pushed;

	if (r->pushed - r->held_first + n <= r->held_max)
		return;
	if (keep > r->pushed)
		keep = r->pushed;
	memmove(r->held.p, held(r, keep),
		(size_t)(r->pushed - keep) * r->held_rows.stride);
	r->held_first = keep;
}

/* Rows from src, `from` bytes from plane to plane, across to rows at dst. */
static void across(const struct tsi_resample *r, const uint8_t *src,
		   size_t from, size_t stride, uint32_t rows, uint8_t *dst)
{
	const struct layout *to = &r->narrow_rows;

	if (!r->planes) {
		r->kernel.across(&r->x, src, stride, rows, dst, to->stride);
		return;
	}
	for (unsigned p = 0; p < to->parts; p++)
		r->kernel.across_plane(&r->x, src + p * from, stride, rows,
				       dst + p * to->step, to->stride);
}

static void hold(struct tsi_resample *r, const struct tsi_strip *strip)
{
	const struct layout *l = &r->held_rows;
	uint8_t *to;

	compact(r, strip->rows);
	to = held(r, r->pushed);
	if (!r->down_first)
		across(r, strip->pixels, strip->plane, strip->stride,
		       strip->rows, to);
	else
		for (uint32_t i = 0; i < strip->rows * l->parts; i++) {
			uint32_t row = i / l->parts, part = i % l->parts;

			memcpy(to + row * l->stride + part * l->step,
			       strip->pixels + row * strip->stride +
				       part * strip->plane,
			       l->bytes);
		}
	r->pushed += strip->rows;
}

/* How many of the next output rows have all that they need. */
static uint32_t ready(const struct tsi_resample *r)
{
	uint32_t n = 0;

	for (; n < BATCH && r->emitted + n < r->y.n; n++) {
		uint32_t i = r->emitted + n;

		if (r->y.first[i] + r->y.count[i] > r->pushed)
			break;
	}
	return n;
}

/* Output row i from the rows held. */
static void down(struct tsi_resample *r, uint32_t i, uint8_t *to)
{
	const struct layout *l = &r->held_rows;
	const uint8_t *from = held(r, r->y.first[i]);

	for (unsigned p = 0; p < l->parts; p++)
		r->kernel.down(&r->y, i, from + p * l->step, l->stride,
			       to + p * l->step, l->bytes);
}

/*
 * The next n output rows.  Rows of dst may not be written beyond their end;
 * those of narrow may.
 */
static void emit(struct tsi_resample *r, uint32_t n)
{
	uint8_t *dst = r->dst + r->emitted * r->dst_stride;
	const struct layout *l = &r->narrow_rows;
	bool direct = !r->down_first && !r->planes;
	uint8_t *to = r->down_first ? r->between.p : direct ? dst : r->narrow.p;
	size_t stride = direct ? r->dst_stride : r->held_rows.stride;

	for (uint32_t k = 0; k < n; k++)
		down(r, r->emitted + k, to + k * stride);
	r->emitted += n;
	if (r->down_first)
		across(r, to, r->held_rows.step, stride, n, r->narrow.p);
	for (uint32_t k = 0; k < n && !direct; k++) {
		const uint8_t *from = r->narrow.p + k * l->stride;

		if (r->planes)
			r->kernel.weave(from, l->step, dst, r->x.n);
		else
			memcpy(dst, from, l->bytes);
		dst += r->dst_stride;
	}
}

void tsi_resample_push(struct tsi_resample *r, const struct tsi_strip *strip)
{
	uint32_t n;

	assert(strip->rows <= TSI_STRIP_ROWS);
	assert(r->planes == (strip->plane > 0));
	if (r->same) {
		tsi_copy_push(&r->copy, &r->kernel, strip);
		return;
	}
	hold(r, strip);
	while ((n = ready(r)) > 0)
		emit(r, n);
}

int tsi_resample_create(enum tsi_simd simd, struct tsi_resample **out)
{
	struct tsi_resample *r;
	enum tsi_simd level;
	int err = tsi_simd_choose(simd, &level);

	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory for a resampler");
	tsi_resample_kernel_init(&r->kernel, level);
	*out = r;
	return 0;
}

void tsi_resample_destroy(struct tsi_resample *r)
{
	if (!r)
		return;
	tsi_taps_fini(&r->x);
	tsi_taps_fini(&r->y);
	tsi_scratch_fini(&r->held);
	tsi_scratch_fini(&r->between);
	tsi_scratch_fini(&r->narrow);
	free(r);
}
