/* SPDX-License-Identifier: MIT */
/*
 * resample.c - weights, bookkeeping, and the choice of a kernel.
 *
 * Formulas: Pillow's src/libImaging/Resample.c (precompute_coeffs,
 * normalize_coeffs_8bpc, ImagingResample*_8bpc), restated.
 */
#include "image/resample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/resample_kernel.h"

/* Rows that go through the second pass together. */
#define BATCH 8

struct memory {
	void *p;
	size_t len;
};

struct tsi_resample {
	const struct tsi_resample_kernel *kernel;
	struct tsi_taps x;
	struct tsi_taps y;
	bool down_first;
	struct memory taps[2];
	/*
	 * Rows on their way to the vertical pass: source rows if that comes
	 * first, else what the horizontal pass made of them.
	 */
	struct memory held;
	size_t held_stride;
	size_t held_bytes; /* used of a row */
	uint32_t held_max;
	uint32_t held_first; /* source row of the first one held */
	uint32_t pushed;
	uint32_t emitted;
	/* Between the passes, and behind them, if the vertical one is first. */
	struct memory between;
	struct memory narrow;
	size_t narrow_stride;
	uint8_t *dst;
	size_t dst_stride;
};

/* At least len bytes; the old content is lost. */
static int grow(struct memory *m, size_t len)
{
	void *p;

	if (len <= m->len)
		return 0;
	len += len / 4;
	len = (len + 63) / 64 * 64;
	p = aligned_alloc(64, len);
	if (!p)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %zu bytes of "
			       "resampling scratch",
			       len);
	free(m->p);
	m->p = p;
	m->len = len;
	return 0;
}

static double triangle(double x)
{
	if (x < 0.0)
		x = -x;
	return x < 1.0 ? 1.0 - x : 0.0;
}

struct span {
	double scale;
	double support;
	double steep;
};

static struct span span_of(const struct tsi_axis *a)
{
	struct span s = { .scale = (double)a->in / a->out };

	s.support = s.scale < 1.0 ? 1.0 : s.scale;
	s.steep = 1.0 / s.support;
	return s;
}

/* Source pixels of output i: [*first, return value). */
static uint32_t reach(const struct tsi_axis *a, const struct span *s,
		      uint32_t i, uint32_t *first)
{
	double centre = (i + 0.5) * s->scale;
	double low = centre - s->support + 0.5;
	double high = centre + s->support + 0.5;

	*first = low < 0 ? 0 : (uint32_t)low;
	return high > a->in ? a->in : (uint32_t)high;
}

/*
 * The weights of output i, without the zeros at both ends, at most `pad` of
 * them.  Multiplication by 2^22 is exact, so the rounding is Pillow's.
 */
static void weigh(const struct tsi_axis *a, const struct span *s, uint32_t i,
		  double *scratch, int32_t *weight, uint32_t *first,
		  uint32_t *count)
{
	double centre = (i + 0.5) * s->scale, sum = 0.0;
	uint32_t end = reach(a, s, i, first), n = end - *first, skip = 0;

	for (uint32_t k = 0; k < n; k++) {
		/* In Pillow's order of evaluation. */
		double at = (double)(k + *first) - centre + 0.5;

		scratch[k] = triangle(at * s->steep);
		sum += scratch[k];
	}
	for (uint32_t k = 0; k < n; k++) {
		if (sum != 0.0)
			scratch[k] /= sum;
		weight[k] =
			(int32_t)(0.5 + scratch[k] * (1 << TSI_WEIGHT_BITS));
	}
	while (n > 1 && !weight[n - 1])
		n--;
	while (skip + 1 < n && !weight[skip])
		skip++;
	memmove(weight, weight + skip, (n - skip) * sizeof(*weight));
	*first += skip;
	*count = n - skip;
}

/* Room for the taps of an axis, laid out in one block. */
static int reserve(const struct tsi_axis *a, const struct span *s,
		   struct memory *m, struct tsi_taps *t, double **scratch)
{
	size_t n = a->count, widest = 0, weights, heads;
	uint8_t *p;
	int err;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t first, end = reach(a, s, a->first + i, &first);

		if (end - first > widest)
			widest = end - first;
	}
	t->n = a->count;
	t->pad = (uint32_t)((widest + 3) / 4 * 4);
	weights = n * t->pad * sizeof(int32_t);
	heads = (n * sizeof(uint32_t) + 15) / 16 * 16;
	err = grow(m, 2 * weights + 2 * heads + t->pad * sizeof(double));
	if (err)
		return err;
	p = m->p;
	t->packed = p;
	t->weight = (int32_t *)(void *)(p + weights);
	t->first = (uint32_t *)(void *)(p + 2 * weights);
	t->count = (uint32_t *)(void *)(p + 2 * weights + heads);
	*scratch = (double *)(void *)(p + 2 * weights + 2 * heads);
	return 0;
}

/* Zeros at the ends are gone by now: perhaps fewer groups of four will do. */
static void tighten(struct tsi_taps *t)
{
	uint32_t widest = 1, pad;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->count[i] > widest)
			widest = t->count[i];
	pad = (widest + 3) / 4 * 4;
	if (pad < t->pad)
		for (uint32_t i = 1; i < t->n; i++)
			memmove(t->weight + (size_t)i * pad,
				t->weight + (size_t)i * t->pad,
				pad * sizeof(*t->weight));
	t->pad = pad;
}

static int make_taps(const struct tsi_resample_kernel *kernel,
		     const struct tsi_axis *a, struct memory *m,
		     struct tsi_taps *t)
{
	struct span s = span_of(a);
	double *scratch;
	int err = reserve(a, &s, m, t, &scratch);

	if (err)
		return err;
	memset(t->weight, 0, (size_t)t->n * t->pad * sizeof(*t->weight));
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t from = a->first + (a->mirror ? t->n - 1 - i : i);
		int32_t *w = t->weight + (size_t)i * t->pad;

		weigh(a, &s, from, scratch, w, &t->first[i], &t->count[i]);
		memset(w + t->count[i], 0, (t->pad - t->count[i]) * sizeof(*w));
	}
	tighten(t);
	for (size_t i = 0; i < (size_t)t->n * t->pad; i += 4)
		kernel->pack(t->weight + i, (uint8_t *)t->packed + i * 4);
	return 0;
}

/* Count source pixels from the first one used; returns how many are. */
static uint32_t rebase(struct tsi_taps *t, uint32_t *origin)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (t->first[i] < low)
			low = t->first[i];
		if (t->first[i] + t->count[i] > high)
			high = t->first[i] + t->count[i];
	}
	for (uint32_t i = 0; i < t->n; i++)
		t->first[i] -= low;
	*origin = low;
	return high - low;
}

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

static uint32_t most(const struct tsi_taps *t)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->count[i] > most)
			most = t->count[i];
	return most;
}

static int make_room(struct tsi_resample *r, uint32_t width)
{
	int err;

	r->narrow_stride = row_stride((size_t)r->x.n * 3);
	r->held_bytes = r->down_first ? (size_t)width * 4 : (size_t)r->x.n * 3;
	r->held_stride = row_stride(r->held_bytes);
	/* What an output row reaches over, and a strip or two. */
	r->held_max = most(&r->y) + 2 * TSI_STRIP_ROWS;
	err = grow(&r->held, r->held_max * r->held_stride);
	if (err || !r->down_first)
		return err;
	err = grow(&r->between, BATCH * r->held_stride);
	if (err)
		return err;
	return grow(&r->narrow, BATCH * r->narrow_stride);
}

int tsi_resample_begin(struct tsi_resample *r, const struct tsi_axis *x,
		       const struct tsi_axis *y, enum tsi_passes passes,
		       uint8_t *dst, size_t stride, struct tsi_rect *need)
{
	int err = make_taps(r->kernel, x, &r->taps[0], &r->x);

	if (!err)
		err = make_taps(r->kernel, y, &r->taps[1], &r->y);
	if (err)
		return err;
	need->width = rebase(&r->x, &need->left);
	need->height = rebase(&r->y, &need->top);
	r->down_first = passes == TSI_PASSES_13 && goes_down_first(x, y);
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

/* Source pixels that one output reaches over, and those beside them. */
static uint64_t widest(const struct tsi_axis *a)
{
	uint64_t n = 2 * ((uint64_t)a->in / a->out + 1) + 4;

	return n < a->in ? n : a->in;
}

uint64_t tsi_resample_need(const struct tsi_axis *x, const struct tsi_axis *y,
			   enum tsi_passes passes)
{
	bool down_first = passes == TSI_PASSES_13 && goes_down_first(x, y);
	uint64_t stride = row_stride(down_first ? (size_t)x->in * 4
						: (size_t)x->count * 3);
	uint64_t rows = widest(y) + 2 * TSI_STRIP_ROWS;
	uint64_t bytes = rows * stride;

	if (down_first)
		bytes += BATCH * (stride + row_stride((size_t)x->count * 3));
	for (int i = 0; i < 2; i++) {
		const struct tsi_axis *a = i ? y : x;

		bytes += a->count * ((widest(a) + 4) * 8 + 16) + widest(a) * 8;
	}
	/* grow() allocates a quarter more than it is asked for. */
	return bytes + bytes / 4 + 4096;
}

static void trim(struct memory *m)
{
	if (m->len <= TSI_SCRATCH_KEEP)
		return;
	free(m->p);
	m->p = NULL;
	m->len = 0;
}

void tsi_resample_trim(struct tsi_resample *r)
{
	trim(&r->held);
	trim(&r->between);
	trim(&r->narrow);
}

static uint8_t *held(const struct tsi_resample *r, uint32_t row)
{
	return (uint8_t *)r->held.p +
	       (size_t)(row - r->held_first) * r->held_stride;
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
		(size_t)(r->pushed - keep) * r->held_stride);
	r->held_first = keep;
}

static void hold(struct tsi_resample *r, const struct tsi_strip *strip)
{
	uint8_t *to;

	assert(strip->rows <= TSI_STRIP_ROWS);
	compact(r, strip->rows);
	to = held(r, r->pushed);
	if (!r->down_first)
		r->kernel->across(&r->x, strip->pixels, strip->stride,
				  strip->rows, to, r->held_stride);
	else
		for (uint32_t i = 0; i < strip->rows; i++)
			memcpy(to + i * r->held_stride,
			       strip->pixels + i * strip->stride,
			       r->held_bytes);
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

static void emit(struct tsi_resample *r, uint32_t n)
{
	uint8_t *dst = r->dst + r->emitted * r->dst_stride;
	uint8_t *to = r->down_first ? r->between.p : dst;
	size_t stride = r->down_first ? r->held_stride : r->dst_stride;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = r->emitted + k;

		r->kernel->down(&r->y, i, held(r, r->y.first[i]),
				r->held_stride, to + k * stride, r->held_bytes);
	}
	r->emitted += n;
	if (!r->down_first)
		return;
	/* Rows of dst may not be written beyond their end; these may. */
	r->kernel->across(&r->x, to, stride, n, r->narrow.p, r->narrow_stride);
	for (uint32_t k = 0; k < n; k++)
		memcpy(dst + k * r->dst_stride,
		       (uint8_t *)r->narrow.p + k * r->narrow_stride,
		       (size_t)r->x.n * 3);
}

void tsi_resample_push(struct tsi_resample *r, const struct tsi_strip *strip)
{
	uint32_t n;

	hold(r, strip);
	while ((n = ready(r)) > 0)
		emit(r, n);
}

static const struct tsi_resample_kernel *choose(enum tsi_simd simd)
{
	const struct tsi_resample_kernel *k;

	switch (simd) {
	case TSI_SIMD_SCALAR:
		return &tsi_resample_scalar;
	case TSI_SIMD_AVX2:
		return tsi_resample_avx2();
	default:
		break;
	}
	k = tsi_resample_avx2();
	return k ? k : &tsi_resample_scalar;
}

int tsi_resample_create(enum tsi_simd simd, struct tsi_resample **out)
{
	const struct tsi_resample_kernel *kernel = choose(simd);
	struct tsi_resample *r;

	if (!kernel)
		return tsi_err(TSOCK_ENOTSUP,
			       "this processor lacks the vector instructions "
			       "that were asked for");
	r = calloc(1, sizeof(*r));
	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory for a resampler");
	r->kernel = kernel;
	*out = r;
	return 0;
}

void tsi_resample_destroy(struct tsi_resample *r)
{
	if (!r)
		return;
	free(r->taps[0].p);
	free(r->taps[1].p);
	free(r->held.p);
	free(r->between.p);
	free(r->narrow.p);
	free(r);
}

const char *tsi_resample_name(const struct tsi_resample *r)
{
	return r->kernel->name;
}
