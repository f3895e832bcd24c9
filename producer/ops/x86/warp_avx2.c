/* SPDX-License-Identifier: MIT */
/*
 * warp_avx2.c - places and pixels of maps in AVX2.
 *
 * Places are computed four at a time.  A pixel's channels are the lanes of a
 * register of doubles, since every operation has to round as in plain C.  Near
 * the picture's edges pixels are made in plain C.
 */
#include "ops/x86/warp_init.h"

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2")))
#define VEC __m256d
#define LANES 4
#define OP(name) _mm256_##name
#define INLINE TARGET static inline __attribute__((always_inline))

/* The centres of four columns. */
INLINE __m256d centres(uint32_t column)
{
	return _mm256_add_pd(_mm256_set1_pd(column),
			     _mm256_setr_pd(0.5, 1.5, 2.5, 3.5));
}

/* Offsets of eight pixels at a time; the copies are four bytes wide. */
TARGET static void vec_fixed(const struct tsi_warp_source *s, int64_t x,
			     int64_t y, int64_t dx, int64_t dy, uint32_t n,
			     uint8_t *dst)
{
	const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	const __m256i width = _mm256_set1_epi32((int)s->width);
	const __m256i three = _mm256_set1_epi32(3);
	__m256i vx = _mm256_add_epi32(
		_mm256_set1_epi32((int)x),
		_mm256_mullo_epi32(eight, _mm256_set1_epi32((int)dx)));
	__m256i vy = _mm256_add_epi32(
		_mm256_set1_epi32((int)y),
		_mm256_mullo_epi32(eight, _mm256_set1_epi32((int)dy)));
	uint32_t i = 0, at[8];

	for (; s->channels == 3 && i + 8 < n; i += 8, dst += 24) {
		__m256i row = _mm256_srli_epi32(vy, 16);
		__m256i o = _mm256_add_epi32(_mm256_mullo_epi32(row, width),
					     _mm256_srli_epi32(vx, 16));

		o = _mm256_mullo_epi32(o, three);
		_mm256_storeu_si256((__m256i *)(void *)at, o);
		for (int k = 0; k < 8; k++)
			memcpy(dst + 3 * k, s->pixels + at[k], 4);
		vx = _mm256_add_epi32(vx, _mm256_set1_epi32((int)(8 * dx)));
		vy = _mm256_add_epi32(vy, _mm256_set1_epi32((int)(8 * dy)));
	}
	for (; i < n; i++, dst += s->channels) {
		size_t row = (size_t)((y + i * dy) >> 16);
		size_t column = (size_t)((x + i * dx) >> 16);

		memcpy(dst, s->pixels + (row * s->width + column) * s->channels,
		       s->channels);
	}
}

/* Four places: the pixel before each, and how far behind its centre it is. */
struct places {
	__m256d x; /* whole */
	__m256d y;
	double dx[4];
	double dy[4];
	uint32_t at[4]; /* offset in bytes */
};

INLINE void split(struct places *p, __m256d x, __m256d y)
{
	const __m256d half = _mm256_set1_pd(0.5);

	x = _mm256_sub_pd(x, half);
	y = _mm256_sub_pd(y, half);
	p->x = _mm256_floor_pd(x);
	p->y = _mm256_floor_pd(y);
	_mm256_storeu_pd(p->dx, _mm256_sub_pd(x, p->x));
	_mm256_storeu_pd(p->dy, _mm256_sub_pd(y, p->y));
}

/* A bit for each of four that is from least on, and below the end. */
INLINE int within(__m256d x, __m256d y, double least, double x_end,
		  double y_end)
{
	__m256d low = _mm256_set1_pd(least);
	__m256d a = _mm256_and_pd(
		_mm256_cmp_pd(x, low, _CMP_GE_OQ),
		_mm256_cmp_pd(x, _mm256_set1_pd(x_end), _CMP_LT_OQ));
	__m256d b = _mm256_and_pd(
		_mm256_cmp_pd(y, low, _CMP_GE_OQ),
		_mm256_cmp_pd(y, _mm256_set1_pd(y_end), _CMP_LT_OQ));

	return _mm256_movemask_pd(_mm256_and_pd(a, b));
}

/* Offsets of the pixels `back` columns and rows before. */
INLINE void offsets(const struct tsi_warp_source *s, struct places *p, int back)
{
	__m128i less = _mm_set1_epi32(back);
	__m128i x = _mm_sub_epi32(_mm256_cvttpd_epi32(p->x), less);
	__m128i y = _mm_sub_epi32(_mm256_cvttpd_epi32(p->y), less);
	__m128i o = _mm_add_epi32(
		_mm_mullo_epi32(y, _mm_set1_epi32((int)s->width)), x);

	o = _mm_mullo_epi32(o, _mm_set1_epi32(3));
	_mm_storeu_si128((__m128i *)(void *)p->at, o);
}

/* Four pixels of 32 bits a channel. */
INLINE void store(__m128i v0, __m128i v1, __m128i v2, __m128i v3, uint8_t *dst)
{
	const __m128i drop4th = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12,
					      13, 14, -1, -1, -1, -1);
	__m128i p = _mm_packus_epi16(_mm_packus_epi32(v0, v1),
				     _mm_packus_epi32(v2, v3));
	int32_t last;

	p = _mm_shuffle_epi8(p, drop4th);
	last = _mm_extract_epi32(p, 2);
	_mm_storel_epi64((__m128i *)(void *)dst, p);
	memcpy(dst + 8, &last, 4);
}

/* Red, green, blue and one more byte. */
INLINE __m128i load1(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(v));
}

INLINE __m256d between(const uint8_t *p, __m256d t)
{
	__m128i a = load1(p), b = load1(p + 3);
	__m256d d = _mm256_cvtepi32_pd(_mm_sub_epi32(b, a));

	return _mm256_add_pd(_mm256_cvtepi32_pd(a), _mm256_mul_pd(d, t));
}

INLINE __m128i bilinear(const struct places *at, const uint8_t *pixels,
			size_t stride, int k)
{
	const uint8_t *p = pixels + at->at[k];
	__m256d t = _mm256_set1_pd(at->dx[k]);
	__m256d v = between(p, t), w = between(p + stride, t);

	w = _mm256_mul_pd(_mm256_sub_pd(w, v), _mm256_set1_pd(at->dy[k]));
	return _mm256_cvttpd_epi32(_mm256_add_pd(v, w));
}

INLINE __m256d cubic(__m256d p, __m256d q, __m256d r, __m256d s, __m256d t)
{
	r = _mm256_add_pd(r, _mm256_mul_pd(t, s));
	q = _mm256_add_pd(q, _mm256_mul_pd(t, r));
	return _mm256_add_pd(p, _mm256_mul_pd(t, q));
}

INLINE __m256d low(__m256i v)
{
	return _mm256_cvtepi32_pd(_mm256_castsi256_si128(v));
}

INLINE __m256d high(__m256i v)
{
	return _mm256_cvtepi32_pd(_mm256_extracti128_si256(v, 1));
}

/* Four bytes of each channel, weighted, to a sum of each. */
INLINE __m256i weigh(__m256i bytes, int weights)
{
	return _mm256_madd_epi16(
		_mm256_maddubs_epi16(bytes, _mm256_set1_epi32(weights)),
		_mm256_set1_epi16(1));
}

#define WEIGHTS(a, b, c, d) \
	(int)((uint32_t)(uint8_t)(a) | (uint32_t)(uint8_t)(b) << 8 | \
	      (uint32_t)(uint8_t)(c) << 16 | (uint32_t)(uint8_t)(d) << 24)

/* Two rows. */
struct rows {
	__m256d first;
	__m256d second;
};

/* Four pixels of each of two rows along x. */
INLINE struct rows along2(const uint8_t *p, size_t stride, __m256d t)
{
	const __m256i channels = _mm256_setr_epi8(
		0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1, 0, 3, 6,
		9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
	__m256i b = _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_loadu_si128((const __m128i *)(const void *)p)),
		_mm_loadu_si128((const __m128i *)(const void *)(p + stride)),
		1);
	__m256i p1, p2, p3, p4;

	b = _mm256_shuffle_epi8(b, channels);
	p1 = _mm256_and_si256(_mm256_srli_epi32(b, 8), _mm256_set1_epi32(255));
	p2 = weigh(b, WEIGHTS(-1, 0, 1, 0));
	p3 = weigh(b, WEIGHTS(2, -2, 1, -1));
	p4 = weigh(b, WEIGHTS(-1, 1, -1, 1));
	return (struct rows){
		cubic(low(p1), low(p2), low(p3), low(p4), t),
		cubic(high(p1), high(p2), high(p3), high(p4), t),
	};
}

INLINE __m128i bicubic(const struct places *at, const uint8_t *pixels,
		       size_t stride, int k)
{
	const uint8_t *p = pixels + at->at[k];
	__m256d t = _mm256_set1_pd(at->dx[k]), a, b;
	struct rows v = along2(p, stride, t);
	struct rows w = along2(p + 2 * stride, stride, t);

	a = _mm256_sub_pd(v.first, v.second);
	a = _mm256_add_pd(_mm256_add_pd(a, a), w.first);
	a = _mm256_sub_pd(a, w.second);
	b = _mm256_sub_pd(_mm256_sub_pd(v.second, v.first), w.first);
	b = _mm256_add_pd(b, w.second);
	a = cubic(v.second, _mm256_sub_pd(w.first, v.first), a, b,
		  _mm256_set1_pd(at->dy[k]));
	a = _mm256_max_pd(a, _mm256_setzero_pd());
	return _mm256_cvttpd_epi32(_mm256_min_pd(a, _mm256_set1_pd(255)));
}

#include "ops/x86/warp_body.h"

void tsi_warp_kernel_init_avx2(struct tsi_warp_kernel *k)
{
	k->affine = vec_affine;
	k->perspective = vec_perspective;
	k->fixed = vec_fixed;
	k->bilinear = vec_bilinear;
	k->bicubic = vec_bicubic;
}
