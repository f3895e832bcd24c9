/* SPDX-License-Identifier: MIT */
/*
 * expand.c - packed blocks by AVX2's shuffles, and by VPEXPANDB.
 */
#include "packed/expand.h"

#include <immintrin.h>
#include <pthread.h>
#include <string.h>

#include "jpeg/zigzag.h"

/*
 * For a byte of a mask: which of the next eight values goes to the upper half
 * of each of eight words (0x80: none, and so it is in the lower halves), and
 * the highest zigzag position that it sets as each of a block's eight rows.
 */
static struct {
	uint8_t shuffle[256][16];
	uint8_t top[8][256];
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_shuffles(void)
{
	memset(table.shuffle, 0x80, sizeof(table.shuffle));
	for (unsigned m = 0; m < 256; m++) {
		uint8_t n = 0;

		for (unsigned i = 0; i < 8; i++) {
			if (!(m >> i & 1))
				continue;
			table.shuffle[m][2 * i + 1] = n++;
			/* Positions grow along a row. */
			for (unsigned y = 0; y < 8; y++)
				table.top[y][m] = tsi_jpeg_zigzag_of[8 * y + i];
		}
	}
}

__attribute__((target("avx2,popcnt"))) static void
blocks_avx2(const uint8_t *masks, const uint8_t *dc, const uint8_t *values,
	    uint32_t n, int16_t (*coef)[64], uint8_t *last)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *mask = masks + 8 * (size_t)i;
		__m128i *to = (__m128i *)(void *)coef[i];
		uint8_t top = 0;

		for (unsigned y = 0; y < 8; y++) {
			__m128i how, v;

			memcpy(&how, table.shuffle[mask[y]], sizeof(how));
			v = _mm_loadl_epi64((const void *)values);
			v = _mm_shuffle_epi8(v, how);
			_mm_storeu_si128(to + y, _mm_srai_epi16(v, 8));
			values += __builtin_popcount(mask[y]);
			if (table.top[y][mask[y]] > top)
				top = table.top[y][mask[y]];
		}
		memcpy(coef[i], dc + 2 * (size_t)i, sizeof(coef[i][0]));
		last[i] = top;
	}
}

#define AVX512 \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi," \
			      "avx512vbmi2,popcnt")))

/* The greatest of the bytes of z. */
AVX512 static inline uint8_t greatest(__m512i z)
{
	__m256i y = _mm256_max_epu8(_mm512_castsi512_si256(z),
				    _mm512_extracti64x4_epi64(z, 1));
	__m128i x = _mm_max_epu8(_mm256_castsi256_si128(y),
				 _mm256_extracti128_si256(y, 1));

	/* There is an instruction for the least of eight words. */
	x = _mm_xor_si128(x, _mm_set1_epi8(-1));
	x = _mm_min_epu8(x, _mm_srli_epi16(x, 8));
	return (uint8_t)~_mm_cvtsi128_si32(
		_mm_minpos_epu16(_mm_and_si128(x, _mm_set1_epi16(0xff))));
}

AVX512 static void blocks_avx512(const uint8_t *masks, const uint8_t *dc,
				 const uint8_t *values, uint32_t n,
				 int16_t (*coef)[64], uint8_t *last)
{
	const __m512i zigzag = _mm512_loadu_si512(tsi_jpeg_zigzag_of);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t mask;
		__m512i v;

		memcpy(&mask, masks + 8 * (size_t)i, sizeof(mask));
		v = _mm512_maskz_expand_epi8(mask, _mm512_loadu_si512(values));
		_mm512_storeu_si512(
			coef[i],
			_mm512_cvtepi8_epi16(_mm512_castsi512_si256(v)));
		_mm512_storeu_si512(
			coef[i] + 32,
			_mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(v, 1)));
		values += __builtin_popcountll(mask);
		memcpy(coef[i], dc + 2 * (size_t)i, sizeof(coef[i][0]));
		last[i] = greatest(_mm512_maskz_mov_epi8(mask, zigzag));
	}
}

void tsi_expand_kernel_init_x86(struct tsi_expand_kernel *k,
				enum tsi_simd level)
{
	if (level < TSI_SIMD_AVX2)
		return;
	pthread_once(&once, fill_shuffles);
	k->blocks = blocks_avx2;
	if (level >= TSI_SIMD_AVX512)
		k->blocks = blocks_avx512;
}
