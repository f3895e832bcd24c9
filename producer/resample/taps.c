/* SPDX-License-Identifier: MIT */
/*
 * taps.c - weights as Pillow computes them.
 */
#include "resample/taps.h"

#include <string.h>

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
	double in = a->span > 0 ? a->span : (double)a->in;
	struct span s = { .scale = in / a->out };

	s.support = s.scale < 1.0 ? 1.0 : s.scale;
	s.steep = 1.0 / s.support;
	return s;
}

static double centre_of(const struct tsi_axis *a, const struct span *s,
			uint32_t i)
{
	return a->from + (i + 0.5) * s->scale;
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

/*
 * The weights of output i, without the zeros at both ends, at most `pad` of
 * them, to zeros.  Multiplication by 2^22 is exact, so the rounding is
 * Pillow's.
 */
static void weigh(const struct tsi_axis *a, const struct span *s, uint32_t i,
		  double *scratch, int32_t *weight, uint32_t *first,
		  uint32_t *count)
{
	double centre = centre_of(a, s, i), sum = 0.0;
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
	/* All behind the n-th are zeros already. */
	if (skip) {
		memmove(weight, weight + skip, (n - skip) * sizeof(*weight));
		memset(weight + n - skip, 0, skip * sizeof(*weight));
	}
	*first += skip;
	*count = n - skip;
}

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

int tsi_taps_make(struct tsi_taps *t, const struct tsi_axis *a)
{
	struct span s = span_of(a);
	double *scratch;
	int err = reserve(a, &s, t, &scratch);

	if (err)
		return err;
	memset(t->weight, 0, (size_t)t->n * t->pad * sizeof(*t->weight));
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t from = a->first + (a->mirror ? t->n - 1 - i : i);
		int32_t *w = t->weight + (size_t)i * t->pad;

		weigh(a, &s, from, scratch, w, &t->first[i], &t->count[i]);
	}
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
	uint64_t n = 2 * ((uint64_t)a->in / a->out + 1) + 4;

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
