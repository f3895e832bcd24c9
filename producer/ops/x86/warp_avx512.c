/* SPDX-License-Identifier: MIT */
/*
 * warp_avx512.c - places and pixels of maps in AVX-512 with VBMI and VNNI.
 *
 * Places are computed eight at a time, and two pixels' channels are the lanes
 * of a register of doubles: as in warp_avx2.c otherwise.
 */
#include "ops/x86/warp_init.h"

#include <immintrin.h>
#include <string.h>

#define TARGET \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl," \
			      "avx512vbmi,avx512vnni")))
#define VEC __m512d
#define LANES 8
#define OP(name) _mm512_##name
#define INLINE TARGET static inline __attribute__((always_inline))

INLINE __m512d centres(uint32_t column)
{
	return _mm512_add_pd(
		_mm512_set1_pd(column),
		_mm512_setr_pd(0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5));
}

/* ------------------------------------------------------------------------
 * Pixels: those four places apart are made together.
 */

/* Eight places: the pixel before each, and how far behind its centre it is. */
struct places {
	__m512d x; /* whole */
	__m512d y;
	__m512d dx;
	__m512d dy;
	uint32_t at[8]; /* offset in bytes */
};

INLINE void split(struct places *p, __m512d x, __m512d y)
{
	const __m512d half = _mm512_set1_pd(0.5);

	x = _mm512_sub_pd(x, half);
	y = _mm512_sub_pd(y, half);
	p->x = _mm512_floor_pd(x);
	p->y = _mm512_floor_pd(y);
	p->dx = _mm512_sub_pd(x, p->x);
	p->dy = _mm512_sub_pd(y, p->y);
}

/* A bit for each of eight that is from least on, and below the end. */
INLINE __mmask8 within(__m512d x, __m512d y, double least, double x_end,
		       double y_end)
{
	__m512d low = _mm512_set1_pd(least);
	__mmask8 m = _mm512_cmp_pd_mask(x, low, _CMP_GE_OQ);

	m = _mm512_mask_cmp_pd_mask(m, y, low, _CMP_GE_OQ);
	m = _mm512_mask_cmp_pd_mask(m, x, _mm512_set1_pd(x_end), _CMP_LT_OQ);
	return _mm512_mask_cmp_pd_mask(m, y, _mm512_set1_pd(y_end), _CMP_LT_OQ);
}

/* Offsets of the pixels `back` columns and rows before. */
INLINE void offsets(const struct tsi_warp_source *s, struct places *p, int back)
{
	__m256i less = _mm256_set1_epi32(back);
	__m256i x = _mm256_sub_epi32(_mm512_cvttpd_epi32(p->x), less);
	__m256i y = _mm256_sub_epi32(_mm512_cvttpd_epi32(p->y), less);
	__m256i o = _mm256_add_epi32(
		_mm256_mullo_epi32(y, _mm256_set1_epi32((int)s->width)), x);

	o = _mm256_mullo_epi32(o, _mm256_set1_epi32(3));
	_mm256_storeu_si256((__m256i *)(void *)p->at, o);
}

/* The k-th and the one four behind it, for the channels of two pixels. */
INLINE __m512d both(__m512d v, int k)
{
	const __m512i first = _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4);

	return _mm512_permutexvar_pd(
		_mm512_add_epi64(first, _mm512_set1_epi64(k)), v);
}

/* Store eight pixels: v0 to v3 have pixels 0 to 3 in their low lanes, and 4 to 7
 * in their high ones. */
INLINE void store(__m256i v0, __m256i v1, __m256i v2, __m256i v3, uint8_t *dst)
{
	const __m256i drop4th = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
	__m256i p = _mm256_packus_epi16(_mm256_packus_epi32(v0, v1),
					_mm256_packus_epi32(v2, v3));
	__m128i high;
	int32_t last;

	p = _mm256_shuffle_epi8(p, drop4th);
	high = _mm256_extracti128_si256(p, 1);
	last = _mm_extract_epi32(high, 2);
	_mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(p));
	_mm_storel_epi64((__m128i *)(void *)(dst + 12), high);
	memcpy(dst + 20, &last, 4);
}

/* Eight bytes of each of two pixels. */
INLINE __m256i load2(const uint8_t *p, const uint8_t *q)
{
	return _mm256_castsi128_si256(_mm_unpacklo_epi64(
		_mm_loadl_epi64((const __m128i *)(const void *)p),
		_mm_loadl_epi64((const __m128i *)(const void *)q)));
}

INLINE __m512d between(__m256i v, __m512d t)
{
	/* A byte's place in each double word; the others become 0. */
	const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11);
	const __m256i next = _mm256_setr_epi32(3, 4, 5, 6, 11, 12, 13, 14);
	__m256i a = _mm256_maskz_permutexvar_epi8(0x11111111, first, v);
	__m256i b = _mm256_maskz_permutexvar_epi8(0x11111111, next, v);
	__m512d d = _mm512_cvtepi32_pd(_mm256_sub_epi32(b, a));

	return _mm512_add_pd(_mm512_cvtepi32_pd(a), _mm512_mul_pd(d, t));
}

/* Places k and k + 4. */
INLINE __m256i bilinear(const struct places *at, const uint8_t *pixels,
			size_t stride, int k)
{
	const uint8_t *p = pixels + at->at[k], *q = pixels + at->at[k + 4];
	__m512d dx = both(at->dx, k);
	__m512d v = between(load2(p, q), dx);
	__m512d w = between(load2(p + stride, q + stride), dx);

	w = _mm512_mul_pd(_mm512_sub_pd(w, v), both(at->dy, k));
	return _mm512_cvttpd_epi32(_mm512_add_pd(v, w));
}

INLINE __m512d cubic(__m512d p, __m512d q, __m512d r, __m512d s, __m512d t)
{
	r = _mm512_add_pd(r, _mm512_mul_pd(t, s));
	q = _mm512_add_pd(q, _mm512_mul_pd(t, r));
	return _mm512_add_pd(p, _mm512_mul_pd(t, q));
}

INLINE __m512d low(__m512i v)
{
	return _mm512_cvtepi32_pd(_mm512_castsi512_si256(v));
}

INLINE __m512d high(__m512i v)
{
	return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1));
}

/* Four bytes of each channel, weighted, to a sum of each. */
INLINE __m512i weigh(__m512i bytes, int8_t a, int8_t b, int8_t c, int8_t d)
{
	int weights =
		(int)((uint32_t)(uint8_t)a | (uint32_t)(uint8_t)b << 8 |
		      (uint32_t)(uint8_t)c << 16 | (uint32_t)(uint8_t)d << 24);

	return _mm512_dpbusd_epi32(_mm512_setzero_si512(), bytes,
				   _mm512_set1_epi32(weights));
}

INLINE __m128i load16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Two rows in each register. */
struct rows {
	__m512d first;
	__m512d second;
};

/* Four pixels of each of four rows along x. */
INLINE struct rows along4(const uint8_t *p, size_t stride, __m512d t)
{
	const __m512i channels = _mm512_broadcast_i32x4(_mm_setr_epi8(
		0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
	__m512i b = _mm512_castsi128_si512(load16(p));
	__m512i p1, p2, p3, p4;

	b = _mm512_inserti32x4(b, load16(p + stride), 1);
	b = _mm512_inserti32x4(b, load16(p + 2 * stride), 2);
	b = _mm512_inserti32x4(b, load16(p + 3 * stride), 3);
	b = _mm512_shuffle_epi8(b, channels);
	p1 = _mm512_and_si512(_mm512_srli_epi32(b, 8), _mm512_set1_epi32(255));
	p2 = weigh(b, -1, 0, 1, 0);
	p3 = weigh(b, 2, -2, 1, -1);
	p4 = weigh(b, -1, 1, -1, 1);
	return (struct rows){
		cubic(low(p1), low(p2), low(p3), low(p4), t),
		cubic(high(p1), high(p2), high(p3), high(p4), t),
	};
}

/* One place's number for both halves of a register. */
INLINE __m512d one(__m512d v, int k)
{
	return _mm512_permutexvar_pd(_mm512_set1_epi64(k), v);
}

/* Places k and k + 4. */
INLINE __m256i bicubic(const struct places *at, const uint8_t *pixels,
		       size_t stride, int k)
{
	struct rows v = along4(pixels + at->at[k], stride, one(at->dx, k));
	struct rows w =
		along4(pixels + at->at[k + 4], stride, one(at->dx, k + 4));
	__m512d v1 = _mm512_shuffle_f64x2(v.first, w.first, 0x44);
	__m512d v2 = _mm512_shuffle_f64x2(v.first, w.first, 0xee);
	__m512d v3 = _mm512_shuffle_f64x2(v.second, w.second, 0x44);
	__m512d v4 = _mm512_shuffle_f64x2(v.second, w.second, 0xee);
	__m512d a = _mm512_sub_pd(v1, v2), b;

	a = _mm512_add_pd(_mm512_add_pd(a, a), v3);
	a = _mm512_sub_pd(a, v4);
	b = _mm512_sub_pd(_mm512_sub_pd(v2, v1), v3);
	b = _mm512_add_pd(b, v4);
	a = cubic(v2, _mm512_sub_pd(v3, v1), a, b, both(at->dy, k));
	a = _mm512_max_pd(a, _mm512_setzero_pd());
	return _mm512_cvttpd_epi32(_mm512_min_pd(a, _mm512_set1_pd(255)));
}

#include "ops/x86/warp_body.h"

void tsi_warp_kernel_init_avx512(struct tsi_warp_kernel *k)
{
	k->affine = vec_affine;
	k->perspective = vec_perspective;
	k->bilinear = vec_bilinear;
	k->bicubic = vec_bicubic;
}
