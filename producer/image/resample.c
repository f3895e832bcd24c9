/*
 * resample.c - weights, bookkeeping, and the scalar kernel.
 *
 * Formulas: Pillow's src/libImaging/Resample.c (precompute_coeffs,
 * normalize_coeffs_8bpc, ImagingResample*_8bpc), restated.
 */
#include "image/resample.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/resample_kernel.h"

struct tsi_resample {
	const struct tsi_kernel *kernel;
	struct tsi_taps x;
	struct tsi_taps y;
	void *taps_memory[2];
	size_t taps_len[2];
	void *between; /* rows after the horizontal pass */
	size_t between_len;
	size_t between_stride;
	uint32_t pushed;
	uint32_t emitted;
	uint8_t *dst;
	size_t dst_stride;
};

/* A block of at least len bytes in *memory; its old content is lost. */
static int grow(void **memory, size_t *have, size_t len)
{
	void *p;

	if (len <= *have)
		return 0;
	len += len / 4;
	len = (len + 63) / 64 * 64;
	p = aligned_alloc(64, len);
	if (!p)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %zu bytes of "
			       "resampling scratch",
			       len);
	free(*memory);
	*memory = p;
	*have = len;
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
		   void **memory, size_t *len, struct tsi_taps *t,
		   double **scratch)
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
	err = grow(memory, len,
		   2 * weights + 2 * heads + t->pad * sizeof(double));
	if (err)
		return err;
	p = *memory;
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

static int make_taps(const struct tsi_kernel *kernel, const struct tsi_axis *a,
		     void **memory, size_t *len, struct tsi_taps *t)
{
	struct span s = span_of(a);
	double *scratch;
	int err = reserve(a, &s, memory, len, t, &scratch);

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

int tsi_resample_begin(struct tsi_resample *r, const struct tsi_axis *x,
		       const struct tsi_axis *y, uint8_t *dst, size_t stride,
		       struct tsi_rect *need)
{
	int err = make_taps(r->kernel, x, &r->taps_memory[0], &r->taps_len[0],
			    &r->x);

	if (!err)
		err = make_taps(r->kernel, y, &r->taps_memory[1],
				&r->taps_len[1], &r->y);
	if (err)
		return err;
	need->width = rebase(&r->x, &need->left);
	need->height = rebase(&r->y, &need->top);
	r->between_stride =
		((size_t)x->count * 3 + TSI_ROW_SLACK + 63) / 64 * 64;
	err = grow(&r->between, &r->between_len,
		   r->between_stride * need->height);
	if (err)
		return err;
	r->pushed = 0;
	r->emitted = 0;
	r->dst = dst;
	r->dst_stride = stride;
	return 0;
}

void tsi_resample_push(struct tsi_resample *r, const struct tsi_strip *strip)
{
	r->kernel->across(&r->x, strip->pixels, strip->stride, strip->rows,
			  (uint8_t *)r->between + r->pushed * r->between_stride,
			  r->between_stride);
	r->pushed += strip->rows;
	for (; r->emitted < r->y.n; r->emitted++) {
		uint32_t i = r->emitted, first = r->y.first[i];

		if (first + r->y.count[i] > r->pushed)
			break;
		r->kernel->down(&r->y, i,
				(uint8_t *)r->between +
					first * r->between_stride,
				r->between_stride, r->dst + i * r->dst_stride,
				(size_t)r->x.n * 3);
	}
}

static uint8_t clip(uint32_t sum)
{
	uint32_t v = sum >> TSI_WEIGHT_BITS;

	return v > 255 ? 255 : (uint8_t)v;
}

static void scalar_pack(const int32_t *weight, void *packed)
{
	memcpy(packed, weight, 4 * sizeof(*weight));
}

static void scalar_across(const struct tsi_taps *t, const uint8_t *src,
			  size_t src_stride, uint32_t rows, uint8_t *dst,
			  size_t dst_stride)
{
	for (; rows; rows--, src += src_stride, dst += dst_stride) {
		for (uint32_t i = 0; i < t->n * 3; i++) {
			const uint8_t *p = src + t->first[i / 3] * 4 + i % 3;
			const int32_t *w = t->weight + (size_t)(i / 3) * t->pad;
			uint32_t sum = 1u << (TSI_WEIGHT_BITS - 1);

			for (uint32_t k = 0; k < t->count[i / 3]; k++)
				sum += p[4 * k] * (uint32_t)w[k];
			dst[i] = clip(sum);
		}
	}
}

static void scalar_down(const struct tsi_taps *t, uint32_t i,
			const uint8_t *src, size_t stride, uint8_t *dst,
			size_t bytes)
{
	const int32_t *w = t->weight + (size_t)i * t->pad;

	for (size_t b = 0; b < bytes; b++) {
		uint32_t sum = 1u << (TSI_WEIGHT_BITS - 1);

		for (uint32_t k = 0; k < t->count[i]; k++)
			sum += src[k * stride + b] * (uint32_t)w[k];
		dst[b] = clip(sum);
	}
}

const struct tsi_kernel tsi_kernel_scalar = {
	.name = "scalar",
	.pack = scalar_pack,
	.across = scalar_across,
	.down = scalar_down,
};

static const struct tsi_kernel *choose(enum tsi_simd simd)
{
	const struct tsi_kernel *k;

	switch (simd) {
	case TSI_SIMD_SCALAR:
		return &tsi_kernel_scalar;
	case TSI_SIMD_AVX2:
		return tsi_kernel_avx2();
	case TSI_SIMD_VNNI:
		return tsi_kernel_vnni();
	default:
		break;
	}
	k = tsi_kernel_vnni();
	if (!k)
		k = tsi_kernel_avx2();
	return k ? k : &tsi_kernel_scalar;
}

int tsi_resample_create(enum tsi_simd simd, struct tsi_resample **out)
{
	const struct tsi_kernel *kernel = choose(simd);
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
	free(r->taps_memory[0]);
	free(r->taps_memory[1]);
	free(r->between);
	free(r);
}

const char *tsi_resample_name(const struct tsi_resample *r)
{
	return r->kernel->name;
}
