/* SPDX-License-Identifier: MIT */
/*
 * taps.c - weights as Pillow computes them.
 */
#include "resample/taps.h"

#include <math.h>
#include <string.h>

#define WHOLE (1 << TSI_WEIGHT_BITS)
#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Filters, in Pillow's order of evaluation
 */

static double box(double x)
{
	return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double triangle(double x)
{
	x = fabs(x);
	return x < 1.0 ? 1.0 - x : 0.0;
}

static double sinc(double x)
{
	return x == 0.0 ? 1.0 : sin(x * M_PI) / (x * M_PI);
}

/* Pillow has these two numbers in single precision. */
static double hamming(double x)
{
	x = fabs(x);
	if (x >= 1.0)
		return 0.0;
	return x == 0.0 ? 1.0 : sinc(x) * (0.54f + 0.46f * cos(x * M_PI));
}

static double bicubic(double x)
{
	const double a = -0.5;

	x = fabs(x);
	if (x < 1.0)
		return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
	return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static double lanczos(double x)
{
	return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

/*
 * How far a filter reaches, in source pixels of an image that doesn't shrink.
 * lobed: it is 0, and below, between its centre and its ends.  There a zero at
 * an end of an output's weights doesn't mean that the next outputs need no
 * pixels so far away.
 */
struct filter {
	double (*at)(double x);
	unsigned twice_support;
	bool lobed;
};

static const struct filter filters[] = {
	[TSI_FILTER_BILINEAR] = { triangle, 2, false },
	[TSI_FILTER_NEAREST] = { NULL, 1, false },
	[TSI_FILTER_BOX] = { box, 1, false },
	[TSI_FILTER_HAMMING] = { hamming, 2, false },
	[TSI_FILTER_BICUBIC] = { bicubic, 4, true },
	[TSI_FILTER_LANCZOS] = { lanczos, 6, true },
};

struct span {
	double scale;
	double stretch; /* of the filter */
	double support;
	double steep;
};

static struct span span_of(const struct tsi_axis *a)
{
	double in = a->span > 0 ? a->span : (double)a->in;
	struct span s = { .scale = in / a->out };

	s.stretch = s.scale < 1.0 ? 1.0 : s.scale;
	s.support = filters[a->filter].twice_support * 0.5 * s.stretch;
	s.steep = 1.0 / s.stretch;
	return s;
}

bool tsi_axis_is_same(const struct tsi_axis *a)
{
	return a->in == a->out && !(a->span > 0);
}

static double centre_of(const struct tsi_axis *a, const struct span *s,
			uint32_t i)
{
	return a->from + (i + 0.5) * s->scale;
}

/* Where a source pixel is in the filter, in Pillow's order of evaluation. */
INLINE double place_of(const struct span *s, uint32_t pixel, double centre)
{
	return ((double)pixel - centre + 0.5) * s->steep;
}

/* Source pixels of output i: [*first, return value). */
static uint32_t reach(const struct tsi_axis *a, const struct span *s,
		      uint32_t i, uint32_t *first)
{
	double centre = centre_of(a, s, i);
	double low = centre - s->support + 0.5;
	double high = centre + s->support + 0.5;

	*first = low < 0 ? 0 : (uint32_t)low;
	return high > a->in ? a->in : (uint32_t)high;
}

/* Without the zeros at both ends; those behind the count-th are zeros. */
INLINE void trim(int32_t *weight, uint32_t *first, uint32_t *count)
{
	uint32_t n = *count, skip = 0;

	while (n > 1 && !weight[n - 1])
		n--;
	while (skip + 1 < n && !weight[skip])
		skip++;
	if (skip) {
		memmove(weight, weight + skip, (n - skip) * sizeof(*weight));
		memset(weight + n - skip, 0, skip * sizeof(*weight));
	}
	*first += skip;
	*count = n - skip;
}

/*
 * The weights of output i, at most `pad` of them, to zeros.  Multiplication by
 * 2^22 is exact, so the rounding is Pillow's.
 */
INLINE void weigh(const struct filter *f, const struct tsi_axis *a,
		  const struct span *s, uint32_t i, double *scratch,
		  int32_t *weight, uint32_t *first, uint32_t *count)
{
	double centre = centre_of(a, s, i), sum = 0.0;
	uint32_t low, end = reach(a, s, i, &low), n = end - low;

	for (uint32_t k = 0; k < n; k++) {
		scratch[k] = f->at(place_of(s, low + k, centre));
		sum += scratch[k];
	}
	sum = sum != 0.0 ? sum : 1.0;
	for (uint32_t k = 0; k < n; k++) {
		double w = scratch[k] / sum;

		weight[k] =
			(int32_t)(w * WHOLE + (f->lobed && w < 0 ? -0.5 : 0.5));
	}
	*first = low;
	*count = n;
	if (!f->lobed)
		trim(weight, first, count);
}

/* ------------------------------------------------------------------------
 * Lanczos
 *
 * Two sines for each weight cost more than all else.  The places of an output's
 * weights are one step apart, so their sines follow from each other by turns;
 * the last bits are others.  Where those decide how a weight is rounded, the
 * output's weights are computed as Pillow does.
 */

#define STEPS 64      /* turned no further: errors add up to 3e-14 */
#define CENTRAL 0.1   /* nearer to 0 a quotient of sines has a larger error */
#define DOUBT 0x1p-16 /* more than 2^22 times the error of a weight */

struct angle {
	double sine;
	double cosine;
};

static struct angle angle_of(double a)
{
	return (struct angle){ sin(a), cos(a) };
}

INLINE struct angle turn(struct angle a, struct angle by)
{
	return (struct angle){ a.sine * by.cosine + a.cosine * by.sine,
			       a.cosine * by.cosine - a.sine * by.sine };
}

static struct angle thrice(struct angle a)
{
	return turn(turn(a, a), a);
}

/* Weights before they are divided by their sum, which is returned. */
static double turn_lanczos(const struct span *s, double centre, uint32_t low,
			   uint32_t n, struct angle step, double *out)
{
	const struct angle step3 = thrice(step);
	struct angle a = angle_of(place_of(s, low, centre) * (M_PI / 3));
	struct angle a3 = thrice(a);
	double sum = 0.0;

	for (uint32_t k = 0; k < n; k++) {
		double x = place_of(s, low + k, centre);
		double w = a.sine * a3.sine * (3 / (M_PI * M_PI)) / (x * x);

		if (fabs(x) < CENTRAL || fabs(x) >= 3.0)
			w = lanczos(x);
		out[k] = w;
		sum += w;
		a = turn(a, step);
		a3 = turn(a3, step3);
	}
	return sum;
}

/* As weigh(); false: the sines are too inexact to round one of the weights. */
static bool weigh_by_turns(const struct tsi_axis *a, const struct span *s,
			   uint32_t i, struct angle step, double *scratch,
			   int32_t *weight, uint32_t *first, uint32_t *count)
{
	double centre = centre_of(a, s, i), by;
	uint32_t low, end = reach(a, s, i, &low), n = end - low;

	if (n > STEPS)
		return false;
	by = WHOLE / turn_lanczos(s, centre, low, n, step, scratch);
	for (uint32_t k = 0; k < n; k++) {
		double w = scratch[k] * by;
		double r = w + (w < 0 ? -0.5 : 0.5);

		weight[k] = (int32_t)r;
		r = fabs(r - weight[k]);
		if (r < DOUBT || r > 1 - DOUBT)
			return false;
	}
	*first = low;
	*count = n;
	return true;
}

/* ------------------------------------------------------------------------
 * All taps of an axis
 */

/* Room for the taps of an axis, laid out in one block. */
static int reserve(const struct tsi_axis *a, const struct span *s,
		   struct tsi_taps *t, double **scratch)
{
	size_t n = a->count, widest, weights, heads, origins;
	size_t groups = (n + 15) / 16 * 16;
	uint8_t *p;
	int err;

	/* Whole numbers in an interval of this length, its ends rounded. */
	widest = (size_t)(2 * s->support + 1e-6) + 1;
	if (widest > a->in)
		widest = a->in;
	t->n = a->count;
	t->pad = (uint32_t)((widest + 3) / 4 * 4);
	weights = groups * t->pad * sizeof(int32_t);
	heads = groups * sizeof(uint32_t);
	origins = (groups / 16 * sizeof(uint32_t) + 15) / 16 * 16;
	err = tsi_scratch_grow(&t->memory,
			       2 * weights + 2 * heads + origins +
				       t->pad * sizeof(double),
			       "resampling weights");
	if (err)
		return err;
	p = t->memory.p;
	t->packed = p;
	t->weight = (int32_t *)(void *)(p + weights);
	t->first = (uint32_t *)(void *)(p + 2 * weights);
	t->count = (uint32_t *)(void *)(p + 2 * weights + heads);
	t->origin = (uint32_t *)(void *)(p + 2 * weights + 2 * heads);
	*scratch = (double *)(void *)(p + 2 * weights + 2 * heads + origins);
	return 0;
}

/* How many taps there are is known by now: perhaps fewer groups of four do. */
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

/* Where the taps of the k-th output that is kept are. */
static uint32_t slot_of(const struct tsi_axis *a, uint32_t k)
{
	return a->mirror ? a->count - 1 - k : k;
}

/* Output k is a copy of a source pixel. */
static void copy(struct tsi_taps *t, const struct tsi_axis *a, uint32_t k,
		 uint32_t from)
{
	uint32_t slot = slot_of(a, k);

	t->first[slot] = from;
	t->count[slot] = 1;
	t->weight[(size_t)slot * t->pad] = WHOLE;
}

/* Pillow adds up the places of NEAREST, and their rounding errors with them. */
static void make_nearest(struct tsi_taps *t, const struct tsi_axis *a,
			 double scale)
{
	double at = a->from + scale * 0.5;

	for (uint32_t i = 0; i < a->first; i++)
		at += scale;
	for (uint32_t k = 0; k < a->count; k++, at += scale)
		copy(t, a, k, at < a->in ? (uint32_t)at : a->in - 1);
}

INLINE void make_filtered(struct tsi_taps *t, const struct filter *f,
			  const struct tsi_axis *a, const struct span *s,
			  double *scratch)
{
	for (uint32_t k = 0; k < a->count; k++) {
		uint32_t slot = slot_of(a, k);

		weigh(f, a, s, a->first + k, scratch,
		      t->weight + (size_t)slot * t->pad, &t->first[slot],
		      &t->count[slot]);
	}
}

/* Bilinear taps are made most often, so code of their own is worth it. */
static void make_bilinear(struct tsi_taps *t, const struct tsi_axis *a,
			  const struct span *s, double *scratch)
{
	static const struct filter f = { triangle, 2, false };

	make_filtered(t, &f, a, s, scratch);
}

static void make_lanczos(struct tsi_taps *t, const struct tsi_axis *a,
			 const struct span *s, double *scratch)
{
	const struct angle step = angle_of(s->steep * (M_PI / 3));

	for (uint32_t k = 0; k < a->count; k++) {
		uint32_t slot = slot_of(a, k), i = a->first + k;
		int32_t *w = t->weight + (size_t)slot * t->pad;

		if (!weigh_by_turns(a, s, i, step, scratch, w, &t->first[slot],
				    &t->count[slot]))
			weigh(&filters[TSI_FILTER_LANCZOS], a, s, i, scratch, w,
			      &t->first[slot], &t->count[slot]);
	}
}

int tsi_taps_make(struct tsi_taps *t, const struct tsi_axis *a)
{
	struct span s = span_of(a);
	double *scratch;
	int err = reserve(a, &s, t, &scratch);

	if (err)
		return err;
	memset(t->weight, 0, (size_t)t->n * t->pad * sizeof(*t->weight));
	if (tsi_axis_is_same(a))
		for (uint32_t k = 0; k < a->count; k++)
			copy(t, a, k, a->first + k);
	else if (a->filter == TSI_FILTER_NEAREST)
		make_nearest(t, a, s.scale);
	else if (a->filter == TSI_FILTER_BILINEAR)
		make_bilinear(t, a, &s, scratch);
	else if (a->filter == TSI_FILTER_LANCZOS)
		make_lanczos(t, a, &s, scratch);
	else
		make_filtered(t, &filters[a->filter], a, &s, scratch);
	t->lobed = filters[a->filter].lobed;
	tighten(t);
	return 0;
}

void tsi_taps_fini(struct tsi_taps *t)
{
	tsi_scratch_fini(&t->memory);
}

uint32_t tsi_taps_rebase(struct tsi_taps *t, uint32_t *origin)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (t->first[i] < low)
			low = t->first[i];
		if (t->first[i] + t->count[i] > high)
			high = t->first[i] + t->count[i];
	}
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t *o = &t->origin[i / 16];

		t->first[i] -= low;
		if (i % 16 == 0 || t->first[i] < *o)
			*o = t->first[i];
	}
	*origin = low;
	return high - low;
}

uint32_t tsi_taps_most(const struct tsi_taps *t)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->count[i] > most)
			most = t->count[i];
	return most;
}

uint32_t tsi_taps_spread(const struct tsi_taps *t)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->first[i] - t->origin[i / 16] > most)
			most = t->first[i] - t->origin[i / 16];
	return most;
}

uint64_t tsi_taps_widest(const struct tsi_axis *a)
{
	uint64_t n = filters[a->filter].twice_support *
			     ((uint64_t)a->in / a->out + 1) +
		     4;

	return n < a->in ? n : a->in;
}

uint64_t tsi_taps_need(const struct tsi_axis *a)
{
	uint64_t widest = tsi_taps_widest(a);

	return tsi_scratch_need((a->count + 16) * ((widest + 4) * 8 + 8) +
				widest * 8 + 256);
}

uint32_t tsi_taps_end(const struct tsi_axis *a)
{
	struct tsi_axis last = *a;
	struct tsi_taps t = { 0 };
	uint32_t end = a->in;

	last.mirror = false;
	last.first += last.count - 1;
	last.count = 1;
	if (!tsi_taps_make(&t, &last))
		end = t.first[0] + t.count[0];
	tsi_taps_fini(&t);
	return end;
}
