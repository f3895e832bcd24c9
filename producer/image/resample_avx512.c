/* SPDX-License-Identifier: MIT */
/*
 * resample_avx512.c - the resampler in AVX-512 with VNNI.
 *
 * A weight of 23 bits is split into three signed bytes, w = c * 2^16 + b * 2^8 +
 * a, and VNNI adds four products of bytes at once.  Three sums apart don't
 * overflow: the greatest is a sum of weights times 255 before the shift, below
 * 2^31.
 *
 * Rows in planes need no more than one load and one permutation of bytes for
 * four source pixels of 16 output pixels each.
 *
 * This file knows nothing of images but rows of bytes.
 */
#include "image/resample_kernel.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#define AVX512 \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl," \
			      "avx512vbmi,avx512vnni")))
#define INLINE AVX512 static inline __attribute__((always_inline))
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)

/* The three bytes of each of four weights: all a, all b, all c. */
static void split(const int32_t *weight, int8_t a[4], int8_t b[4], int8_t c[4])
{
	for (int k = 0; k < 4; k++) {
		int32_t w = weight[k];

		a[k] = (int8_t)(w & 255);
		w = (w - a[k]) >> 8;
		b[k] = (int8_t)(w & 255);
		c[k] = (int8_t)((w - b[k]) >> 8);
	}
}

/* Of each four weights a, b and c; four bytes are free. */
static void pack(struct tsi_taps *t)
{
	for (size_t i = 0; i < (size_t)t->n * t->pad; i += 4) {
		int8_t w[16] = { 0 };

		split(t->weight + i, w, w + 4, w + 8);
		memcpy(t->packed + i * 4, w, sizeof(w));
	}
}

struct sums {
	__m512i a;
	__m512i b;
	__m512i c;
};

INLINE struct sums zero(void)
{
	return (struct sums){ _mm512_set1_epi32(1 << (TSI_WEIGHT_BITS - 1)),
			      _mm512_setzero_si512(), _mm512_setzero_si512() };
}

INLINE struct sums add(struct sums s, __m512i bytes, __m512i a, __m512i b,
		       __m512i c)
{
	s.a = _mm512_dpbusd_epi32(s.a, bytes, a);
	s.b = _mm512_dpbusd_epi32(s.b, bytes, b);
	s.c = _mm512_dpbusd_epi32(s.c, bytes, c);
	return s;
}

INLINE __m512i whole(struct sums s)
{
	__m512i v = _mm512_add_epi32(s.a, _mm512_slli_epi32(s.b, 8));

	v = _mm512_add_epi32(v, _mm512_slli_epi32(s.c, 16));
	return _mm512_srli_epi32(v, TSI_WEIGHT_BITS);
}

/* The i-th four bytes of a group all over. */
INLINE __m512i all(const uint8_t *packed, int i)
{
	int32_t four;

	memcpy(&four, packed + 4 * i, sizeof(four));
	return _mm512_set1_epi32(four);
}

/* ------------------------------------------------------------------------
 * Pixels of four bytes
 */

INLINE __m128i load16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Output pixel i of four rows, a row in each lane. */
INLINE __m512i pixel4(const struct tsi_taps *t, uint32_t i,
		      const uint8_t *const row[4])
{
	const __m512i channels = _mm512_broadcast_i32x4(_mm_setr_epi8(
		0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	const uint8_t *packed = t->packed + (size_t)i * t->pad * 4;
	size_t at = (size_t)t->first[i] * 4;
	struct sums s = zero();

	for (uint32_t k = 0; k < t->count[i]; k += 4) {
		__m512i p = _mm512_castsi128_si512(load16(row[0] + at));

		p = _mm512_inserti32x4(p, load16(row[1] + at), 1);
		p = _mm512_inserti32x4(p, load16(row[2] + at), 2);
		p = _mm512_inserti32x4(p, load16(row[3] + at), 3);
		s = add(s, _mm512_shuffle_epi8(p, channels), all(packed, 0),
			all(packed, 1), all(packed, 2));
		packed += 16;
		at += 16;
	}
	return whole(s);
}

/* Four rows at once, some of which may be the same. */
AVX512 static void across4(const struct tsi_taps *t,
			   const uint8_t *const row[4], uint8_t *const to[4])
{
	const __m512i drop4th = _mm512_broadcast_i32x4(_mm_setr_epi8(
		0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
	uint32_t last = t->n - 1;

	for (uint32_t i = 0; i < t->n; i += 4) {
		/* Beyond the end the last one is computed again. */
		__m512i v0 = pixel4(t, i, row);
		__m512i v1 = pixel4(t, i + 1 < last ? i + 1 : last, row);
		__m512i v2 = pixel4(t, i + 2 < last ? i + 2 : last, row);
		__m512i v3 = pixel4(t, i + 3 < last ? i + 3 : last, row);
		__m512i v = _mm512_packus_epi16(_mm512_packus_epi32(v0, v1),
						_mm512_packus_epi32(v2, v3));
		size_t at = (size_t)i * 3;

		v = _mm512_shuffle_epi8(v, drop4th);
		_mm_storeu_si128((__m128i *)(void *)(to[3] + at),
				 _mm512_extracti32x4_epi32(v, 3));
		_mm_storeu_si128((__m128i *)(void *)(to[2] + at),
				 _mm512_extracti32x4_epi32(v, 2));
		_mm_storeu_si128((__m128i *)(void *)(to[1] + at),
				 _mm512_extracti32x4_epi32(v, 1));
		_mm_storeu_si128((__m128i *)(void *)(to[0] + at),
				 _mm512_castsi512_si128(v));
	}
}

static void across(const struct tsi_taps *t, const uint8_t *src,
		   size_t src_stride, uint32_t rows, uint8_t *dst,
		   size_t dst_stride)
{
	for (uint32_t y = 0; y < rows; y += 4) {
		const uint8_t *row[4];
		uint8_t *to[4];

		for (uint32_t k = 0; k < 4; k++) {
			uint32_t at = y + k < rows ? y + k : rows - 1;

			row[k] = src + at * src_stride;
			to[k] = dst + at * dst_stride;
		}
		across4(t, row, to);
	}
}

/* ------------------------------------------------------------------------
 * Down
 */

/* 64 bytes of an output row. */
INLINE __m512i down64(const uint8_t *packed, uint32_t count, const uint8_t *src,
		      size_t stride)
{
	struct sums s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();

	for (uint32_t k = 0; k < count; k += 4, packed += 16) {
		/* Rows too many have weight 0; they need not exist. */
		uint32_t last = count - 1 - k;
		__m512i r0 = LOAD(src);
		__m512i r1 = LOAD(src + (last < 1 ? 0 : 1) * stride);
		__m512i r2 = LOAD(src + (last < 2 ? 0 : 2) * stride);
		__m512i r3 = LOAD(src + (last < 3 ? 0 : 3) * stride);
		__m512i lo01 = _mm512_unpacklo_epi8(r0, r1);
		__m512i hi01 = _mm512_unpackhi_epi8(r0, r1);
		__m512i lo23 = _mm512_unpacklo_epi8(r2, r3);
		__m512i hi23 = _mm512_unpackhi_epi8(r2, r3);
		__m512i a = all(packed, 0), b = all(packed, 1);
		__m512i c = all(packed, 2);

		s0 = add(s0, _mm512_unpacklo_epi16(lo01, lo23), a, b, c);
		s1 = add(s1, _mm512_unpackhi_epi16(lo01, lo23), a, b, c);
		s2 = add(s2, _mm512_unpacklo_epi16(hi01, hi23), a, b, c);
		s3 = add(s3, _mm512_unpackhi_epi16(hi01, hi23), a, b, c);
		src += 4 * stride;
	}
	return _mm512_packus_epi16(_mm512_packus_epi32(whole(s0), whole(s1)),
				   _mm512_packus_epi32(whole(s2), whole(s3)));
}

AVX512 static void down(const struct tsi_taps *t, uint32_t i,
			const uint8_t *src, size_t stride, uint8_t *dst,
			size_t bytes)
{
	const uint8_t *packed = t->packed + (size_t)i * t->pad * 4;
	size_t at = 0;

	for (; at + 64 <= bytes; at += 64)
		STORE(dst + at, down64(packed, t->count[i], src + at, stride));
	if (at < bytes)
		_mm512_mask_storeu_epi8(
			dst + at, (__mmask64)-1 >> (64 - (bytes - at)),
			down64(packed, t->count[i], src + at, stride));
}

/* ------------------------------------------------------------------------
 * Planes
 */

/*
 * Of each 16 outputs: 64 bytes that say which bytes behind the first of all
 * their pixels their first four are, then for each four weights the a, b and c
 * of all 16.
 */
static size_t group_bytes(const struct tsi_taps *t)
{
	return 64 + (size_t)t->pad * 48;
}

static void pack_plane(struct tsi_taps *t)
{
	uint8_t *to = t->packed;

	memset(to, 0, (t->n + 15) / 16 * group_bytes(t));
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t lane = i % 16;
		const int32_t *w = t->weight + (size_t)i * t->pad;
		uint32_t first = t->first[i] - t->origin[i / 16];

		for (uint32_t k = 0; k < 4; k++)
			to[4 * lane + k] = (uint8_t)(first + k);
		for (uint32_t k = 0; k < t->pad; k += 4) {
			int8_t *at = (int8_t *)to + 64 + 48 * k + 4 * lane;

			split(w + k, at, at + 64, at + 128);
		}
		if (lane == 15)
			to += group_bytes(t);
	}
}

/* 16 outputs of some rows that need no more than four pixels each. */
INLINE void plane_few(const uint8_t *packed, const uint8_t *src,
		      size_t src_stride, uint32_t rows, uint8_t *dst,
		      size_t dst_stride)
{
	const __m512i order = LOAD(packed), a = LOAD(packed + 64);
	const __m512i b = LOAD(packed + 128), c = LOAD(packed + 192);

	for (; rows; rows--, src += src_stride, dst += dst_stride) {
		__m512i p = _mm512_permutexvar_epi8(order, LOAD(src));

		_mm_storeu_si128(
			(__m128i *)(void *)dst,
			_mm512_cvtusepi32_epi8(whole(add(zero(), p, a, b, c))));
	}
}

INLINE void plane_many(const uint8_t *packed, uint32_t pad, const uint8_t *src,
		       size_t src_stride, uint32_t rows, uint8_t *dst,
		       size_t dst_stride)
{
	const __m512i order = LOAD(packed);

	for (; rows; rows--, src += src_stride, dst += dst_stride) {
		const uint8_t *w = packed + 64;
		struct sums s = zero();

		for (uint32_t k = 0; k < pad; k += 4, w += 192) {
			__m512i p =
				_mm512_permutexvar_epi8(order, LOAD(src + k));

			s = add(s, p, LOAD(w), LOAD(w + 64), LOAD(w + 128));
		}
		_mm_storeu_si128((__m128i *)(void *)dst,
				 _mm512_cvtusepi32_epi8(whole(s)));
	}
}

AVX512 static void across_plane(const struct tsi_taps *t, const uint8_t *src,
				size_t src_stride, uint32_t rows, uint8_t *dst,
				size_t dst_stride)
{
	const uint8_t *packed = t->packed;

	for (uint32_t i = 0; i < t->n; i += 16, packed += group_bytes(t)) {
		const uint8_t *from = src + t->origin[i / 16];

		if (t->pad == 4)
			plane_few(packed, from, src_stride, rows, dst + i,
				  dst_stride);
		else
			plane_many(packed, t->pad, from, src_stride, rows,
				   dst + i, dst_stride);
	}
}

/* 16 pixels at once. */
AVX512 static void weave(const uint8_t *src, size_t plane, uint8_t *dst,
			 size_t n)
{
	static const uint8_t order[64] = {
		0,  16, 32, 1,  17, 33, 2,  18, 34, 3,  19, 35, 4,  20, 36, 5,
		21, 37, 6,  22, 38, 7,  23, 39, 8,  24, 40, 9,  25, 41, 10, 26,
		42, 11, 27, 43, 12, 28, 44, 13, 29, 45, 14, 30, 46, 15, 31, 47,
	};

	for (size_t i = 0; i < n; i += 16, dst += 48) {
		size_t bytes = (n - i < 16 ? n - i : 16) * 3;
		__m512i v = _mm512_castsi128_si512(load16(src + i));

		v = _mm512_inserti32x4(v, load16(src + plane + i), 1);
		v = _mm512_inserti32x4(v, load16(src + 2 * plane + i), 2);
		_mm512_mask_storeu_epi8(
			dst, (__mmask64)-1 >> (64 - bytes),
			_mm512_permutexvar_epi8(LOAD(order), v));
	}
}

static const struct tsi_resample_kernel kernel_avx512 = {
	.name = "avx512",
	.pack = pack,
	.across = across,
	.down = down,
	.pack_plane = pack_plane,
	.across_plane = across_plane,
	.weave = weave,
};

const struct tsi_resample_kernel *tsi_resample_avx512(void)
{
	return &kernel_avx512;
}

#else

const struct tsi_resample_kernel *tsi_resample_avx512(void)
{
	return NULL;
}

#endif
