/* SPDX-License-Identifier: MIT */
/*
 * small_avx2.c - blocks to fewer samples, two and four at once.
 *
 * Each half of a vector belongs to a block of its own.
 */
#include "jpeg/small.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define TARGET __attribute__((target("avx2")))
#define INLINE TARGET static inline __attribute__((always_inline))

#include "jpeg/x86/init.h"
#include "jpeg/x86/row.h"

INLINE __m256i times(__m256i pairs, int low, int high)
{
	return _mm256_madd_epi16(
		pairs,
		_mm256_set1_epi32((int)((uint32_t)high << 16 | (uint16_t)low)));
}

/* ------------------------------------------------------------------------
 * 4 x 4
 */

struct four {
	__m256i v[4];
};

/* From in0 and the pairs (in2, in6), (in1, in3), (in5, in7). */
INLINE struct four sums(__m256i even, __m256i p26, __m256i p13, __m256i p57,
			const int shift)
{
	const __m256i round = _mm256_set1_epi32(1 << (shift - 1));
	__m256i turn = times(p26, S_1_847, -S_0_765);
	__m256i inner = _mm256_add_epi32(times(p13, S_1_061, -S_2_172),
					 times(p57, S_1_451, -S_0_211));
	__m256i outer = _mm256_add_epi32(times(p13, S_2_562, S_0_899),
					 times(p57, -S_0_601, -S_0_509));
	__m256i a, b;
	struct four f;

	even = _mm256_add_epi32(even, round);
	a = _mm256_add_epi32(even, turn);
	b = _mm256_sub_epi32(even, turn);
	f.v[0] = _mm256_srai_epi32(_mm256_add_epi32(a, outer), shift);
	f.v[1] = _mm256_srai_epi32(_mm256_add_epi32(b, inner), shift);
	f.v[2] = _mm256_srai_epi32(_mm256_sub_epi32(b, inner), shift);
	f.v[3] = _mm256_srai_epi32(_mm256_sub_epi32(a, outer), shift);
	return f;
}

/* Words in the upper half of double words, times 2 to the 14th. */
INLINE __m256i even4(__m256i upper)
{
	return _mm256_srai_epi32(upper, 2);
}

/* Columns to rows: r[0..7], of which r[4] is missing, to four rows. */
INLINE struct four down4(const __m256i r[8])
{
	const __m256i zero = _mm256_setzero_si256();
	struct four lo = sums(even4(_mm256_unpacklo_epi16(zero, r[0])),
			      _mm256_unpacklo_epi16(r[2], r[6]),
			      _mm256_unpacklo_epi16(r[1], r[3]),
			      _mm256_unpacklo_epi16(r[5], r[7]), 12);
	struct four hi = sums(even4(_mm256_unpackhi_epi16(zero, r[0])),
			      _mm256_unpackhi_epi16(r[2], r[6]),
			      _mm256_unpackhi_epi16(r[1], r[3]),
			      _mm256_unpackhi_epi16(r[5], r[7]), 12);

	for (int i = 0; i < 4; i++)
		lo.v[i] = _mm256_packs_epi32(lo.v[i], hi.v[i]);
	return lo;
}

/* Four rows of eight words to 16 bytes of each block, row by row. */
INLINE __m256i across4(struct four f)
{
	/* Words in the order (4, 0), (2, 6), (1, 3), (5, 7). */
	const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		8, 9, 0, 1, 4, 5, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
	/* Bytes of columns to those of rows. */
	const __m256i turn = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
	__m256i a = _mm256_shuffle_epi8(f.v[0], order);
	__m256i b = _mm256_shuffle_epi8(f.v[1], order);
	__m256i c = _mm256_shuffle_epi8(f.v[2], order);
	__m256i d = _mm256_shuffle_epi8(f.v[3], order);
	__m256i ab = _mm256_unpacklo_epi32(a, b);
	__m256i cd = _mm256_unpacklo_epi32(c, d);
	__m256i AB = _mm256_unpackhi_epi32(a, b);
	__m256i CD = _mm256_unpackhi_epi32(c, d);
	__m256i first = _mm256_unpacklo_epi64(ab, cd);

	f = sums(even4(_mm256_and_si256(first, upper)),
		 _mm256_unpackhi_epi64(ab, cd), _mm256_unpacklo_epi64(AB, CD),
		 _mm256_unpackhi_epi64(AB, CD), 19);
	a = _mm256_packs_epi32(f.v[0], f.v[1]);
	b = _mm256_packs_epi32(f.v[2], f.v[3]);
	a = _mm256_shuffle_epi8(_mm256_packs_epi16(a, b), turn);
	return _mm256_add_epi8(a, _mm256_set1_epi8((char)128));
}

/* Blocks a and b side by side, which may be the same. */
TARGET static void pair4(const int16_t *a, const int16_t *b,
			 const uint16_t *quant, uint8_t *out, size_t stride)
{
	__m256i r[8], v;
	__m128i top, bottom;

	r[0] = row(a, b, quant, 0);
	if (wild(r[0])) {
		tsi_jpeg_small_4((const int16_t(*)[64])(const void *)b, NULL, 1,
				 quant, out + 4, stride);
		tsi_jpeg_small_4((const int16_t(*)[64])(const void *)a, NULL, 1,
				 quant, out, stride);
		return;
	}
	for (int y = 1; y < 8; y++)
		r[y] = row(a, b, quant, y);
	v = across4(down4(r));
	top = _mm_unpacklo_epi32(_mm256_castsi256_si128(v),
				 _mm256_extracti128_si256(v, 1));
	bottom = _mm_unpackhi_epi32(_mm256_castsi256_si128(v),
				    _mm256_extracti128_si256(v, 1));
	_mm_storel_epi64((void *)out, top);
	_mm_storel_epi64((void *)(out + stride), _mm_srli_si128(top, 8));
	_mm_storel_epi64((void *)(out + 2 * stride), bottom);
	_mm_storel_epi64((void *)(out + 3 * stride), _mm_srli_si128(bottom, 8));
}

void tsi_jpeg_small_4_avx2(const int16_t (*coef)[64], const uint8_t *last,
			   uint32_t n, const uint16_t *quant, uint8_t *out,
			   size_t stride)
{
	(void)last;
	for (uint32_t i = 0; i < n; i += 2, out += 8)
		pair4(coef[i], coef[i + 1 < n ? i + 1 : i], quant, out, stride);
}

/* ------------------------------------------------------------------------
 * 2 x 2
 */

/* From pairs of words (in1, in3) and (in5, in7). */
INLINE __m256i odd2(__m256i p13, __m256i p57)
{
	return _mm256_add_epi32(times(p13, S_3_624, -S_1_272),
				times(p57, S_0_850, -S_0_720));
}

/* The words at even places of a, each below that of b; those at odd places. */
INLINE __m256i evens(__m256i a, __m256i b)
{
	return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}

INLINE __m256i odds(__m256i a, __m256i b)
{
	return _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
}

INLINE __m256i shifted(__m256i v, const int bits)
{
	return _mm256_srai_epi32(
		_mm256_add_epi32(v, _mm256_set1_epi32(1 << (bits - 1))), bits);
}

/* Four double words of each block: two samples of one row, two of the next. */
INLINE __m256i pair2(const int16_t *a, const int16_t *b, const uint16_t *quant)
{
	const __m256i factors = _mm256_broadcastsi128_si256(
		_mm_setr_epi16(S_3_624, -S_1_272, S_0_850, -S_0_720, S_3_624,
			       -S_1_272, S_0_850, -S_0_720));
	const __m256i signs =
		_mm256_broadcastsi128_si256(_mm_setr_epi32(1, -1, 1, -1));
	const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
	__m256i r0 = row(a, b, quant, 0), r1 = row(a, b, quant, 1);
	__m256i r3 = row(a, b, quant, 3), r5 = row(a, b, quant, 5);
	__m256i r7 = row(a, b, quant, 7);
	__m256i even = _mm256_srai_epi32(_mm256_slli_epi32(r0, 16), 1);
	__m256i odd = odd2(evens(r1, r3), evens(r5, r7));
	/* Column 0 of both rows: double words 0 and 2. */
	__m256i first =
		shifted(_mm256_unpacklo_epi64(_mm256_add_epi32(even, odd),
					      _mm256_sub_epi32(even, odd)),
			13);
	__m256i rest;

	/* Columns 1, 3, 5 and 7. */
	even = _mm256_srai_epi32(_mm256_and_si256(r0, upper), 1);
	odd = odd2(odds(r1, r3), odds(r5, r7));
	rest = _mm256_packs_epi32(shifted(_mm256_add_epi32(even, odd), 13),
				  shifted(_mm256_sub_epi32(even, odd), 13));
	rest = _mm256_madd_epi16(rest, factors);
	rest = _mm256_add_epi32(rest, _mm256_shuffle_epi32(rest, 0xb1));
	first = _mm256_slli_epi32(_mm256_shuffle_epi32(first, 0xa0), 15);
	return shifted(_mm256_add_epi32(first, _mm256_sign_epi32(rest, signs)),
		       20);
}

/* Four blocks side by side, some of which may be the same. */
TARGET static void four2(const int16_t *const block[4], const uint16_t *quant,
			 uint8_t *out, size_t stride)
{
	__m256i ab = pair2(block[0], block[1], quant);
	__m256i cd = pair2(block[2], block[3], quant);
	__m256i v = _mm256_packs_epi32(ab, cd);
	__m128i rows;

	v = _mm256_packs_epi16(v, v);
	v = _mm256_add_epi8(v, _mm256_set1_epi8((char)128));
	/* A row of a block is a word: of blocks 0 and 2 here, 1 and 3 there. */
	rows = _mm_unpacklo_epi16(_mm256_castsi256_si128(v),
				  _mm256_extracti128_si256(v, 1));
	rows = _mm_shuffle_epi32(rows, 0xd8);
	_mm_storel_epi64((void *)out, rows);
	_mm_storel_epi64((void *)(out + stride), _mm_srli_si128(rows, 8));
}

void tsi_jpeg_small_2_avx2(const int16_t (*coef)[64], const uint8_t *last,
			   uint32_t n, const uint16_t *quant, uint8_t *out,
			   size_t stride)
{
	(void)last;
	for (uint32_t i = 0; i < n; i += 4, out += 8) {
		const int16_t *block[4];

		for (uint32_t k = 0; k < 4; k++)
			block[k] = coef[i + k < n ? i + k : n - 1];
		four2(block, quant, out, stride);
	}
}
