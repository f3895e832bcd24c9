/* SPDX-License-Identifier: MIT */
/*
 * avx512.c - the resampler in AVX-512 with VNNI.
 *
 * A weight of 24 bits is split into three signed bytes,
 * w = c * 2^16 + b * 2^8 + a, and VNNI adds four products of bytes at once.
 * A weight of at most 2^23 - 2^16 either way has bytes that fit.  VNNI adds its
 * four products exactly; sums are taken modulo 2^32, where they may overflow,
 * but not their total: taps.h says that it fits.
 *
 * Rows in planes need no more than one load and one permutation of bytes for
 * four source pixels of 16 output pixels each.
 *
 * This file knows nothing of images but rows of bytes.
 */
#include "resample/x86/init.h"

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

/* Each four weights become a, b and c; four bytes are free. */
static void pack_weights(struct tsi_taps *t)
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
	return _mm512_srai_epi32(v, TSI_WEIGHT_BITS);
}

/* As whole(), of no more than four products: one sum, shifted on its way. */
INLINE __m512i whole4(__m512i bytes, __m512i a, __m512i b, __m512i c)
{
	__m512i v = _mm512_set1_epi32(1 << (TSI_WEIGHT_BITS - 1 - 16));

	v = _mm512_slli_epi32(_mm512_dpbusd_epi32(v, bytes, c), 8);
	v = _mm512_slli_epi32(_mm512_dpbusd_epi32(v, bytes, b), 8);
	v = _mm512_dpbusd_epi32(v, bytes, a);
	return _mm512_srai_epi32(v, TSI_WEIGHT_BITS);
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

/* 64 bytes of four rows: those of each byte side by side. */
struct four {
	__m512i v[4];
};

/* Where a row doesn't exist the first one is read; its weight is 0. */
INLINE struct four load_rows(const uint8_t *src, size_t stride, uint32_t rows)
{
	__m512i r0 = LOAD(src), r1 = LOAD(src + (rows < 2 ? 0 : 1) * stride);
	__m512i r2 = LOAD(src + (rows < 3 ? 0 : 2) * stride);
	__m512i r3 = LOAD(src + (rows < 4 ? 0 : 3) * stride);
	__m512i lo01 = _mm512_unpacklo_epi8(r0, r1);
	__m512i hi01 = _mm512_unpackhi_epi8(r0, r1);
	__m512i lo23 = _mm512_unpacklo_epi8(r2, r3);
	__m512i hi23 = _mm512_unpackhi_epi8(r2, r3);
	struct four f;

	f.v[0] = _mm512_unpacklo_epi16(lo01, lo23);
	f.v[1] = _mm512_unpackhi_epi16(lo01, lo23);
	f.v[2] = _mm512_unpacklo_epi16(hi01, hi23);
	f.v[3] = _mm512_unpackhi_epi16(hi01, hi23);
	return f;
}

INLINE __m512i to_bytes(__m512i v0, __m512i v1, __m512i v2, __m512i v3)
{
	return _mm512_packus_epi16(_mm512_packus_epi32(v0, v1),
				   _mm512_packus_epi32(v2, v3));
}

/* 64 bytes of an output row, from up to four rows. */
INLINE __m512i down_few(const uint8_t *packed, uint32_t count,
			const uint8_t *src, size_t stride)
{
	struct four f = load_rows(src, stride, count);
	__m512i a = all(packed, 0), b = all(packed, 1), c = all(packed, 2);

	return to_bytes(whole4(f.v[0], a, b, c), whole4(f.v[1], a, b, c),
			whole4(f.v[2], a, b, c), whole4(f.v[3], a, b, c));
}

INLINE __m512i down_many(const uint8_t *packed, uint32_t count,
			 const uint8_t *src, size_t stride)
{
	struct sums s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();

	for (uint32_t k = 0; k < count; k += 4, packed += 16) {
		struct four f = load_rows(src, stride, count - k);
		__m512i a = all(packed, 0), b = all(packed, 1);
		__m512i c = all(packed, 2);

		s0 = add(s0, f.v[0], a, b, c);
		s1 = add(s1, f.v[1], a, b, c);
		s2 = add(s2, f.v[2], a, b, c);
		s3 = add(s3, f.v[3], a, b, c);
		src += 4 * stride;
	}
	return to_bytes(whole(s0), whole(s1), whole(s2), whole(s3));
}

INLINE __m512i down64(const uint8_t *packed, uint32_t count, const uint8_t *src,
		      size_t stride)
{
	return count <= 4 ? down_few(packed, count, src, stride)
			  : down_many(packed, count, src, stride);
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
 * For each 16 outputs: 64 bytes that say where their first four bytes are,
 * behind the first byte of all their pixels; then, for each four weights, a, b
 * and c of all 16.
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

/* 16 sums, which may be below 0 if lobed, to bytes at dst. */
INLINE void store_plane(uint8_t *dst, struct sums s, bool lobed)
{
	__m512i v = whole(s);

	if (lobed)
		v = _mm512_max_epi32(v, _mm512_setzero_si512());
	_mm_storeu_si128((__m128i *)(void *)dst, _mm512_cvtusepi32_epi8(v));
}

/* 16 outputs of some rows that need no more than four pixels each. */
INLINE void plane_few(const uint8_t *packed, bool lobed, const uint8_t *src,
		      size_t src_stride, uint32_t rows, uint8_t *dst,
		      size_t dst_stride)
{
	const __m512i order = LOAD(packed), a = LOAD(packed + 64);
	const __m512i b = LOAD(packed + 128), c = LOAD(packed + 192);

	for (; rows; rows--, src += src_stride, dst += dst_stride) {
		__m512i p = _mm512_permutexvar_epi8(order, LOAD(src));

		store_plane(dst, add(zero(), p, a, b, c), lobed);
	}
}

INLINE void plane_many(const uint8_t *packed, uint32_t pad, bool lobed,
		       const uint8_t *src, size_t src_stride, uint32_t rows,
		       uint8_t *dst, size_t dst_stride)
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
		store_plane(dst, s, lobed);
	}
}

INLINE void across_planes(const struct tsi_taps *t, bool lobed,
			  const uint8_t *src, size_t src_stride, uint32_t rows,
			  uint8_t *dst, size_t dst_stride)
{
	const uint8_t *packed = t->packed;

	for (uint32_t i = 0; i < t->n; i += 16, packed += group_bytes(t)) {
		const uint8_t *from = src + t->origin[i / 16];

		if (t->pad == 4)
			plane_few(packed, lobed, from, src_stride, rows,
				  dst + i, dst_stride);
		else
			plane_many(packed, t->pad, lobed, from, src_stride,
				   rows, dst + i, dst_stride);
	}
}

AVX512 static void across_plane(const struct tsi_taps *t, const uint8_t *src,
				size_t src_stride, uint32_t rows, uint8_t *dst,
				size_t dst_stride)
{
	if (t->lobed)
		across_planes(t, true, src, src_stride, rows, dst, dst_stride);
	else
		across_planes(t, false, src, src_stride, rows, dst, dst_stride);
}

/*
 * Where the bytes of 64 pixels come from: red and blue have the pixel's number,
 * green 64 more.
 */
static const uint8_t woven[192] = {
	0,  64,  0,  1,  65,  1,  2,  66,  2,  3,  67,  3,  4,  68,  4,
	5,  69,  5,  6,  70,  6,  7,  71,  7,  8,  72,  8,  9,  73,  9,
	10, 74,  10, 11, 75,  11, 12, 76,  12, 13, 77,  13, 14, 78,  14,
	15, 79,  15, 16, 80,  16, 17, 81,  17, 18, 82,  18, 19, 83,  19,
	20, 84,  20, 21, 85,  21, 22, 86,  22, 23, 87,  23, 24, 88,  24,
	25, 89,  25, 26, 90,  26, 27, 91,  27, 28, 92,  28, 29, 93,  29,
	30, 94,  30, 31, 95,  31, 32, 96,  32, 33, 97,  33, 34, 98,  34,
	35, 99,  35, 36, 100, 36, 37, 101, 37, 38, 102, 38, 39, 103, 39,
	40, 104, 40, 41, 105, 41, 42, 106, 42, 43, 107, 43, 44, 108, 44,
	45, 109, 45, 46, 110, 46, 47, 111, 47, 48, 112, 48, 49, 113, 49,
	50, 114, 50, 51, 115, 51, 52, 116, 52, 53, 117, 53, 54, 118, 54,
	55, 119, 55, 56, 120, 56, 57, 121, 57, 58, 122, 58, 59, 123, 59,
	60, 124, 60, 61, 125, 61, 62, 126, 62, 63, 127, 63,
};

/* 64 bytes of 64 pixels, of which the n first ones are stored. */
INLINE void weave64(__m512i r, __m512i g, __m512i b, const uint8_t *order,
		    __mmask64 blue, uint8_t *dst, size_t n)
{
	__m512i o = LOAD(order), v = _mm512_permutex2var_epi8(r, o, g);

	v = _mm512_mask_permutexvar_epi8(v, blue, o, b);
	if (n >= 64)
		STORE(dst, v);
	else if (n)
		_mm512_mask_storeu_epi8(dst, (__mmask64)-1 >> (64 - n), v);
}

AVX512 static void weave(const uint8_t *src, size_t plane, uint8_t *dst,
			 size_t n)
{
	for (size_t i = 0; i < n; i += 64, dst += 192) {
		__m512i r = LOAD(src + i), g = LOAD(src + plane + i);
		__m512i b = LOAD(src + 2 * plane + i);
		size_t bytes = 3 * (n - i);

		/* Each third byte is blue, and 64 is no multiple of three. */
		weave64(r, g, b, woven, 0x4924924924924924, dst, bytes);
		weave64(r, g, b, woven + 64, 0x2492492492492492, dst + 64,
			bytes < 64 ? 0 : bytes - 64);
		weave64(r, g, b, woven + 128, 0x9249249249249249, dst + 128,
			bytes < 128 ? 0 : bytes - 128);
	}
}

void tsi_resample_kernel_init_avx512(struct tsi_resample_kernel *k)
{
	k->pack = pack_weights;
	k->across = across;
	k->down = down;
	k->pack_plane = pack_plane;
	k->across_plane = across_plane;
	k->weave = weave;
}
