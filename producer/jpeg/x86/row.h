/* SPDX-License-Identifier: MIT */
/*
 * row.h - a row of two blocks in one vector, included by files that
 * have defined INLINE, for functions of AVX2.
 */
#ifndef TSI_JPEG_X86_ROW_H
#define TSI_JPEG_X86_ROW_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

/* Row y of both blocks, times the quantisers. */
INLINE __m256i row(const int16_t *a, const int16_t *b, const uint16_t *quant,
		   int y)
{
	__m128i lo = _mm_load_si128((const __m128i *)(const void *)(a + 8 * y));
	__m128i hi = _mm_load_si128((const __m128i *)(const void *)(b + 8 * y));
	__m128i q =
		_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * y));

	return _mm256_mullo_epi16(
		_mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1),
		_mm256_broadcastsi128_si256(q));
}

/* Does the shortcut of blocks with but one row, which wraps, matter? */
INLINE bool wild(__m256i row0)
{
	return !_mm256_testz_si256(_mm256_abs_epi16(row0),
				   _mm256_set1_epi16((short)0xe000));
}

#endif
