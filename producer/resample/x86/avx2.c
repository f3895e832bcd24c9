/* SPDX-License-Identifier: MIT */
/*
 * avx2.c - the resampler in AVX2.
 *
 * A weight has 23 bits and a multiply-add of words takes 15: AVX2 splits the
 * weight into w = high * 2^11 + low, 0 <= low < 2^11, and sums both halves
 * apart.  A weight is above -2^23 and below 2^23, so high fits a word, and two
 * products of a byte and a word fit a double word: the multiply-add is exact.
 * Its sums are taken modulo 2^32, where they may overflow, but not their total:
 * taps.h says that it fits.  Shifted by 22 it fits a word, and so saturates
 * where it is packed and not before.
 *
 * This file knows nothing of images but rows of bytes.
 */
#include "resample/x86/init.h"

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define SPLIT 11

/* Each four weights become the words [h0 h1] [h2 h3] [l0 l1] [l2 l3]. */
static void pack_words(struct tsi_taps *t)
{
	for (size_t i = 0; i < (size_t)t->n * t->pad; i += 4) {
		const int32_t *weight = t->weight + i;
		int16_t w[8];

		for (int k = 0; k < 4; k++) {
			w[k] = (int16_t)(weight[k] >> SPLIT);
			w[4 + k] = (int16_t)(weight[k] & ((1 << SPLIT) - 1));
		}
		memcpy(t->packed + i * 4, w, sizeof(w));
	}
}

struct sums {
	__m256i high;
	__m256i low;
};

/* Two of a group's words all over; a load, where a shuffle would cost more. */
AVX2 static inline __m256i pair(const uint8_t *packed, int i)
{
	int32_t both;

	memcpy(&both, packed + 4 * i, sizeof(both));
	return _mm256_set1_epi32(both);
}

/* Add four pixels of each of two rows, channel by channel. */
AVX2 static inline struct sums add4(struct sums s, const uint8_t *a,
				    const uint8_t *b, const uint8_t *packed)
{
	const __m256i pair01 = _mm256_setr_epi8(
		0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 0, -1,
		4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
	const __m256i pair23 = _mm256_setr_epi8(
		8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1, 8,
		-1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
	__m256i p = _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_loadu_si128((const __m128i *)(const void *)a)),
		_mm_loadu_si128((const __m128i *)(const void *)b), 1);
	__m256i p01 = _mm256_shuffle_epi8(p, pair01);
	__m256i p23 = _mm256_shuffle_epi8(p, pair23);

	s.high = _mm256_add_epi32(
		s.high,
		_mm256_add_epi32(_mm256_madd_epi16(p01, pair(packed, 0)),
				 _mm256_madd_epi16(p23, pair(packed, 1))));
	s.low = _mm256_add_epi32(
		s.low,
		_mm256_add_epi32(_mm256_madd_epi16(p01, pair(packed, 2)),
				 _mm256_madd_epi16(p23, pair(packed, 3))));
	return s;
}

AVX2 static inline struct sums zero(void)
{
	return (struct sums){ _mm256_setzero_si256(),
			      _mm256_set1_epi32(1 << (TSI_WEIGHT_BITS - 1)) };
}

AVX2 static inline __m256i whole(struct sums s)
{
	return _mm256_srai_epi32(
		_mm256_add_epi32(_mm256_slli_epi32(s.high, SPLIT), s.low),
		TSI_WEIGHT_BITS);
}

AVX2 static inline __m256i pixel2(const struct tsi_taps *t, uint32_t i,
				  const uint8_t *a, const uint8_t *b)
{
	const uint8_t *packed = t->packed + (size_t)i * t->pad * 4;
	size_t at = (size_t)t->first[i] * 4;
	struct sums s = add4(zero(), a + at, b + at, packed);

	for (uint32_t k = 4; k < t->count[i]; k += 4)
		s = add4(s, a + at + k * 4, b + at + k * 4, packed + k * 4);
	return whole(s);
}

/* Two rows at once, one in each half of a register; they may be the same. */
AVX2 static void across2(const struct tsi_taps *t, const uint8_t *a,
			 const uint8_t *b, uint8_t *da, uint8_t *db)
{
	const __m256i drop4th = _mm256_setr_epi8(
		0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2,
		4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);

	for (uint32_t i = 0; i < t->n; i += 4) {
		/* Beyond the end the last one is computed again. */
		uint32_t last = t->n - 1;
		__m256i v0 = pixel2(t, i, a, b);
		__m256i v1 = pixel2(t, i + 1 < last ? i + 1 : last, a, b);
		__m256i v2 = pixel2(t, i + 2 < last ? i + 2 : last, a, b);
		__m256i v3 = pixel2(t, i + 3 < last ? i + 3 : last, a, b);
		__m256i v = _mm256_packus_epi16(_mm256_packus_epi32(v0, v1),
						_mm256_packus_epi32(v2, v3));

		v = _mm256_shuffle_epi8(v, drop4th);
		_mm_storeu_si128((__m128i *)(void *)(da + (size_t)i * 3),
				 _mm256_castsi256_si128(v));
		_mm_storeu_si128((__m128i *)(void *)(db + (size_t)i * 3),
				 _mm256_extracti128_si256(v, 1));
	}
}

AVX2 static void avx2_across(const struct tsi_taps *t, const uint8_t *src,
			     size_t src_stride, uint32_t rows, uint8_t *dst,
			     size_t dst_stride)
{
	while (rows) {
		size_t next = rows > 1;

		across2(t, src, src + next * src_stride, dst,
			dst + next * dst_stride);
		rows -= 1 + (uint32_t)next;
		src += (1 + next) * src_stride;
		dst += (1 + next) * dst_stride;
	}
}

/* Eight sums of bytes interleaved with those of the next row. */
AVX2 static inline struct sums add2(struct sums s, __m256i pairs, __m256i high,
				    __m256i low)
{
	s.high = _mm256_add_epi32(s.high, _mm256_madd_epi16(pairs, high));
	s.low = _mm256_add_epi32(s.low, _mm256_madd_epi16(pairs, low));
	return s;
}

/* 32 bytes of an output row. */
AVX2 static inline __m256i down32(const uint8_t *packed, uint32_t count,
				  const uint8_t *src, size_t stride)
{
	const __m256i none = _mm256_setzero_si256();
	struct sums s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();

	for (uint32_t k = 0; k < count; k += 2) {
		/* A row too many has weight 0; it need not exist. */
		const uint8_t *odd = src + (k + 1 < count ? stride : 0);
		const uint8_t *w = packed + (k / 4) * 16 + (k % 4) * 2;
		int32_t half[2];
		__m256i a =
			_mm256_loadu_si256((const __m256i *)(const void *)src);
		__m256i b =
			_mm256_loadu_si256((const __m256i *)(const void *)odd);
		__m256i even0 = _mm256_unpacklo_epi8(a, b);
		__m256i even1 = _mm256_unpackhi_epi8(a, b);
		__m256i high, low;

		memcpy(&half[0], w, 4);
		memcpy(&half[1], w + 8, 4);
		high = _mm256_set1_epi32(half[0]);
		low = _mm256_set1_epi32(half[1]);
		s0 = add2(s0, _mm256_unpacklo_epi8(even0, none), high, low);
		s1 = add2(s1, _mm256_unpackhi_epi8(even0, none), high, low);
		s2 = add2(s2, _mm256_unpacklo_epi8(even1, none), high, low);
		s3 = add2(s3, _mm256_unpackhi_epi8(even1, none), high, low);
		src += 2 * stride;
	}
	return _mm256_packus_epi16(_mm256_packus_epi32(whole(s0), whole(s1)),
				   _mm256_packus_epi32(whole(s2), whole(s3)));
}

AVX2 static void avx2_down(const struct tsi_taps *t, uint32_t i,
			   const uint8_t *src, size_t stride, uint8_t *dst,
			   size_t bytes)
{
	const uint8_t *packed = t->packed + (size_t)i * t->pad * 4;
	size_t b = 0;

	for (; b + 32 <= bytes; b += 32)
		_mm256_storeu_si256(
			(__m256i *)(void *)(dst + b),
			down32(packed, t->count[i], src + b, stride));
	if (b < bytes) {
		__m256i v = down32(packed, t->count[i], src + b, stride);

		memcpy(dst + b, &v, bytes - b);
	}
}

void tsi_resample_kernel_init_avx2(struct tsi_resample_kernel *k)
{
	k->pack = pack_words;
	k->across = avx2_across;
	k->down = avx2_down;
}
