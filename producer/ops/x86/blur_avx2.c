/* SPDX-License-Identifier: MIT */
/*
 * blur_avx2.c - blurs, and rows that change their form, in AVX2.
 */
#include "ops/x86/warp_init.h"

#include <immintrin.h>
#include <string.h>

#include "ops/warp_box.h"

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Boxes: sums of up to 127 bytes are words.  A weight has 25 bits and a
 * multiply-add of words takes 15: it is split into high * 2^12 + low.
 */

#define BOX_REACH 63
#define SPLIT 12

INLINE __m256i load32(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* 32 bytes as words, in the order of unpacking. */
struct words {
	__m256i low;
	__m256i high;
};

INLINE struct words load_words(const uint8_t *p)
{
	const __m256i none = _mm256_setzero_si256();
	__m256i v = load32(p);

	return (struct words){ _mm256_unpacklo_epi8(v, none),
			       _mm256_unpackhi_epi8(v, none) };
}

INLINE struct words plus(struct words a, struct words b)
{
	return (struct words){ _mm256_add_epi16(a.low, b.low),
			       _mm256_add_epi16(a.high, b.high) };
}

INLINE struct words minus(struct words a, struct words b)
{
	return (struct words){ _mm256_sub_epi16(a.low, b.low),
			       _mm256_sub_epi16(a.high, b.high) };
}

INLINE struct words times(struct words a, uint32_t n)
{
	__m256i v = _mm256_set1_epi16((short)n);

	return (struct words){ _mm256_mullo_epi16(a.low, v),
			       _mm256_mullo_epi16(a.high, v) };
}

/* The weights of a pair of words, a sum and that of the ends. */
struct weights {
	__m256i high;
	__m256i low;
};

INLINE struct weights weights_of(const struct tsi_warp_box *b)
{
	const uint32_t mask = (1 << SPLIT) - 1;

	return (struct weights){
		_mm256_set1_epi32(
			(int)(b->near >> SPLIT | b->far >> SPLIT << 16)),
		_mm256_set1_epi32(
			(int)((b->near & mask) | (b->far & mask) << 16)),
	};
}

/* Pairs to bytes, as double words. */
INLINE __m256i weigh(__m256i pairs, struct weights w)
{
	__m256i v = _mm256_slli_epi32(_mm256_madd_epi16(pairs, w.high), SPLIT);

	v = _mm256_add_epi32(v, _mm256_madd_epi16(pairs, w.low));
	v = _mm256_add_epi32(v, _mm256_set1_epi32(1 << 23));
	return _mm256_srli_epi32(v, 24);
}

INLINE __m256i weigh_words(__m256i sum, __m256i ends, struct weights w)
{
	return _mm256_packus_epi32(weigh(_mm256_unpacklo_epi16(sum, ends), w),
				   weigh(_mm256_unpackhi_epi16(sum, ends), w));
}

INLINE void store_box(struct words sum, struct words ends, struct weights w,
		      uint8_t *dst)
{
	__m256i v = _mm256_packus_epi16(weigh_words(sum.low, ends.low, w),
					weigh_words(sum.high, ends.high, w));

	_mm256_storeu_si256((__m256i *)(void *)dst, v);
}

/* The sum of the first place. */
INLINE struct words first_sum(const struct tsi_warp_box *b, const uint8_t *src,
			      size_t stride, uint32_t n)
{
	uint32_t last = n - 1, whole = b->radius < last ? b->radius : last;
	struct words sum = times(load_words(src), b->radius + 1);

	for (uint32_t i = 1; i <= whole; i++)
		sum = plus(sum, load_words(src + i * stride));
	return plus(sum,
		    times(load_words(src + last * stride), b->radius - whole));
}

/* 32 lines. */
AVX2 static void box32(const struct tsi_warp_box *b, const uint8_t *src,
		       size_t src_stride, uint8_t *dst, size_t dst_stride,
		       uint32_t n)
{
	struct words sum = first_sum(b, src, src_stride, n);
	struct words before = load_words(src);
	struct weights w = weights_of(b);
	uint32_t last = n - 1;

	for (uint32_t i = 0; i < n; i++, dst += dst_stride) {
		uint32_t end = i + b->radius + 1;
		uint32_t first = i < b->radius ? 0 : i - b->radius;
		struct words behind = load_words(
			src + (size_t)(end < last ? end : last) * src_stride);

		store_box(sum, plus(before, behind), w, dst);
		before = load_words(src + (size_t)first * src_stride);
		sum = plus(sum, minus(behind, before));
	}
}

AVX2 static void avx2_box(const struct tsi_warp_box *b, const uint8_t *src,
			  size_t src_stride, uint8_t *dst, size_t dst_stride,
			  uint32_t n, unsigned lanes)
{
	if (b->radius > BOX_REACH) {
		tsi_warp_box(b, src, src_stride, dst, dst_stride, n, lanes);
		return;
	}
	for (unsigned i = 0; i < lanes; i += 32)
		box32(b, src + i, src_stride, dst + i, dst_stride, n);
}

/* ------------------------------------------------------------------------
 * Bytes transposed
 */

/* Sixteen rows of sixteen bytes: each round interleaves those eight apart. */
INLINE void interleave(const __m128i a[16], __m128i b[16])
{
	for (int i = 0; i < 8; i++) {
		b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
		b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
	}
}

AVX2 static void transpose16(const uint8_t *src, size_t src_stride,
			     uint8_t *dst, size_t dst_stride)
{
	__m128i a[16], b[16];

	for (int i = 0; i < 16; i++, src += src_stride)
		a[i] = _mm_loadu_si128((const __m128i *)(const void *)src);
	interleave(a, b);
	interleave(b, a);
	interleave(a, b);
	interleave(b, a);
	for (int i = 0; i < 16; i++, dst += dst_stride)
		_mm_storeu_si128((__m128i *)(void *)dst, a[i]);
}

static void transpose_part(const uint8_t *src, size_t src_stride,
			   uint32_t width, uint32_t height, uint8_t *dst,
			   size_t dst_stride)
{
	for (uint32_t x = 0; x < width; x++)
		for (uint32_t y = 0; y < height; y++)
			dst[x * dst_stride + y] = src[y * src_stride + x];
}

AVX2 static void avx2_transpose(const uint8_t *src, size_t src_stride,
				uint32_t width, uint32_t height, uint8_t *dst,
				size_t dst_stride)
{
	for (uint32_t y = 0; y < height; y += 16) {
		uint32_t h = height - y < 16 ? height - y : 16;

		for (uint32_t x = 0; x < width; x += 16) {
			uint32_t w = width - x < 16 ? width - x : 16;
			const uint8_t *p = src + y * src_stride + x;
			uint8_t *q = dst + x * dst_stride + y;

			if (w == 16 && h == 16)
				transpose16(p, src_stride, q, dst_stride);
			else
				transpose_part(p, src_stride, w, h, q,
					       dst_stride);
		}
	}
}

/* ------------------------------------------------------------------------
 * Taps
 */

AVX2 static void avx2_floats(const uint8_t *src, size_t n, float *dst)
{
	for (size_t i = 0; i < n; i += 8) {
		__m128i v = _mm_loadl_epi64(
			(const __m128i *)(const void *)(src + i));

		_mm256_storeu_ps(dst + i,
				 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)));
	}
}

/* Sums of 32 numbers. */
struct sums {
	__m256 a;
	__m256 b;
	__m256 c;
	__m256 d;
};

INLINE __m256 product(const float *p, __m256 tap)
{
	return _mm256_mul_ps(_mm256_loadu_ps(p), tap);
}

INLINE struct sums first_product(const float *p, float tap)
{
	__m256 t = _mm256_set1_ps(tap);

	return (struct sums){ product(p, t), product(p + 8, t),
			      product(p + 16, t), product(p + 24, t) };
}

INLINE __m256 add1(__m256 sum, const float *p, const float *q, __m256 tap)
{
	__m256 v = _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(q));

	return _mm256_add_ps(sum, _mm256_mul_ps(v, tap));
}

INLINE struct sums add_product(struct sums s, const float *p, const float *q,
			       float tap)
{
	__m256 t = _mm256_set1_ps(tap);

	return (struct sums){ add1(s.a, p, q, t), add1(s.b, p + 8, q + 8, t),
			      add1(s.c, p + 16, q + 16, t),
			      add1(s.d, p + 24, q + 24, t) };
}

AVX2 static void avx2_across(const float *src, size_t step, const float *tap,
			     uint32_t radius, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 32) {
		struct sums s = first_product(src + i, tap[0]);

		for (size_t j = 1; j <= radius; j++)
			s = add_product(s, src + i - j * step,
					src + i + j * step, tap[j]);
		_mm256_storeu_ps(dst + i, s.a);
		_mm256_storeu_ps(dst + i + 8, s.b);
		_mm256_storeu_ps(dst + i + 16, s.c);
		_mm256_storeu_ps(dst + i + 24, s.d);
	}
}

INLINE __m256i rounded(struct sums s)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i a = _mm256_packus_epi32(_mm256_cvtps_epi32(s.a),
					_mm256_cvtps_epi32(s.b));
	__m256i b = _mm256_packus_epi32(_mm256_cvtps_epi32(s.c),
					_mm256_cvtps_epi32(s.d));

	return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
}

AVX2 static void avx2_down(const float *const *row, const float *tap,
			   uint32_t radius, uint8_t *dst, size_t n)
{
	int reach = (int)radius;

	for (size_t i = 0; i < n; i += 32) {
		struct sums s = first_product(row[0] + i, tap[0]);
		__m256i v;

		for (int j = 1; j <= reach; j++)
			s = add_product(s, row[-j] + i, row[j] + i, tap[j]);
		v = rounded(s);
		if (i + 32 <= n)
			_mm256_storeu_si256((__m256i *)(void *)(dst + i), v);
		else
			memcpy(dst + i, &v, n - i);
	}
}

/* ------------------------------------------------------------------------
 * Pixels
 */

AVX2 static void avx2_widen(const uint8_t *src, size_t n, uint8_t *dst)
{
	const __m128i four = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8,
					   -1, 9, 10, 11, -1);

	for (size_t i = 0; i < n; i += 4, src += 12, dst += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)src);

		_mm_storeu_si128((__m128i *)(void *)dst,
				 _mm_shuffle_epi8(v, four));
	}
}

void tsi_warp_kernel_init_blur_avx2(struct tsi_warp_kernel *k)
{
	k->box = avx2_box;
	k->transpose = avx2_transpose;
	k->floats = avx2_floats;
	k->across = avx2_across;
	k->down = avx2_down;
	k->widen = avx2_widen;
}
