/* SPDX-License-Identifier: MIT */
/*
 * gather.c - blocks packed by AVX2's shuffles, and by VPCOMPRESSB.
 */
#include "packed/gather.h"

#include <immintrin.h>
#include <pthread.h>
#include <string.h>

static uint64_t mask_sse2(const int16_t *coef)
{
	const __m128i *p = (const void *)coef;
	const __m128i zero = _mm_setzero_si128();
	uint64_t none = 0;

	for (int i = 0; i < 4; i++) {
		__m128i a = _mm_cmpeq_epi16(_mm_loadu_si128(p + 2 * i), zero);
		__m128i b =
			_mm_cmpeq_epi16(_mm_loadu_si128(p + 2 * i + 1), zero);

		none |= (uint64_t)(uint16_t)_mm_movemask_epi8(
				_mm_packs_epi16(a, b))
			<< 16 * i;
	}
	return ~none;
}

/* For a byte of a mask: which of eight bytes it takes, one after the other. */
static uint8_t taken[256][8];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_taken(void)
{
	for (unsigned m = 0; m < 256; m++) {
		unsigned n = 0;

		for (uint8_t i = 0; i < 8; i++)
			if (m >> i & 1)
				taken[m][n++] = i;
	}
}

#define AVX2 __attribute__((target("avx2,popcnt")))

/* A row of eight bytes; returns how many of them the mask takes. */
AVX2 static inline unsigned put_row(uint64_t bytes, uint8_t mask, uint8_t *to)
{
	__m128i v = _mm_cvtsi64_si128((long long)bytes);

	v = _mm_shuffle_epi8(v, _mm_loadl_epi64((const void *)taken[mask]));
	_mm_storel_epi64((void *)to, v);
	return (unsigned)__builtin_popcount(mask);
}

/* 32 coefficients as bytes; *odd gets those for which there is no byte. */
AVX2 static inline __m256i bytes_of(__m256i a, __m256i b, __m256i *odd)
{
	const __m256i most = _mm256_set1_epi16(127);
	const __m256i least = _mm256_set1_epi16(-128);

	*odd = _mm256_or_si256(*odd, _mm256_cmpgt_epi16(a, most));
	*odd = _mm256_or_si256(*odd, _mm256_cmpgt_epi16(b, most));
	*odd = _mm256_or_si256(*odd, _mm256_cmpgt_epi16(least, a));
	*odd = _mm256_or_si256(*odd, _mm256_cmpgt_epi16(least, b));
	return _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
}

/* A bit for each byte that isn't zero. */
AVX2 static inline uint32_t mask_of(__m256i bytes)
{
	__m256i none = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());

	return ~(uint32_t)_mm256_movemask_epi8(none);
}

AVX2 static uint32_t blocks_avx2(const int16_t (*coef)[64], uint32_t n,
				 uint8_t *masks, uint8_t *dc, uint8_t **values)
{
	uint8_t *to = *values;
	uint32_t i = 0;

	for (; i < n; i++) {
		const __m256i *from = (const void *)coef[i];
		__m256i odd = _mm256_setzero_si256();
		__m256i first = _mm256_loadu_si256(from), v[2];
		uint64_t mask, row[8];

		/* DC stands apart. */
		first = _mm256_insert_epi16(first, 0, 0);
		v[0] = bytes_of(first, _mm256_loadu_si256(from + 1), &odd);
		v[1] = bytes_of(_mm256_loadu_si256(from + 2),
				_mm256_loadu_si256(from + 3), &odd);
		if (!_mm256_testz_si256(odd, odd))
			break;
		mask = mask_of(v[0]) | (uint64_t)mask_of(v[1]) << 32;
		memcpy(row, v, sizeof(row));
		for (unsigned y = 0; y < 8; y++)
			to += put_row(row[y], (uint8_t)(mask >> 8 * y), to);
		memcpy(masks + 8 * (size_t)i, &mask, sizeof(mask));
		memcpy(dc + 2 * (size_t)i, coef[i], sizeof(coef[i][0]));
	}
	*values = to;
	return i;
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,"
		      "avx512vbmi2,popcnt"))) static uint32_t
blocks_avx512(const int16_t (*coef)[64], uint32_t n, uint8_t *masks,
	      uint8_t *dc, uint8_t **values)
{
	uint8_t *to = *values;
	uint32_t i = 0;

	for (; i < n; i++) {
		/* DC stands apart. */
		__m512i a = _mm512_maskz_loadu_epi16(~(__mmask32)1, coef[i]);
		__m512i b = _mm512_loadu_si512(coef[i] + 32);
		__m256i low = _mm512_cvtepi16_epi8(a);
		__m256i high = _mm512_cvtepi16_epi8(b);
		__m512i v = _mm512_inserti64x4(_mm512_castsi256_si512(low),
					       high, 1);
		uint64_t mask = _mm512_test_epi8_mask(v, v);

		if (_mm512_cmpneq_epi16_mask(_mm512_cvtepi8_epi16(low), a) |
		    _mm512_cmpneq_epi16_mask(_mm512_cvtepi8_epi16(high), b))
			break;
		_mm512_storeu_si512(to, _mm512_maskz_compress_epi8(mask, v));
		to += __builtin_popcountll(mask);
		memcpy(masks + 8 * (size_t)i, &mask, sizeof(mask));
		memcpy(dc + 2 * (size_t)i, coef[i], sizeof(coef[i][0]));
	}
	*values = to;
	return i;
}

void tsi_gather_kernel_init_x86(struct tsi_gather_kernel *k,
				enum tsi_simd level)
{
	if (level < TSI_SIMD_AVX2)
		return;
	pthread_once(&once, fill_taken);
	k->mask = mask_sse2;
	k->blocks = blocks_avx2;
	if (level >= TSI_SIMD_AVX512)
		k->blocks = blocks_avx512;
}
