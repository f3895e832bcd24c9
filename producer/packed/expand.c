/* SPDX-License-Identifier: MIT */
/*
 * expand.c - which kernel expands packed blocks, and the one for any
 * processor.
 */
#include "packed/expand.h"

#include "jpeg/zigzag.h"

#include <string.h>

static void blocks_scalar(const uint8_t *masks, const uint8_t *dc,
			  const uint8_t *values, uint32_t n,
			  int16_t (*coef)[64], uint8_t *last)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t top = 0;
		uint64_t mask;

		memcpy(&mask, masks + 8 * (size_t)i, sizeof(mask));
		memset(coef[i], 0, sizeof(coef[i]));
		memcpy(coef[i], dc + 2 * (size_t)i, sizeof(coef[i][0]));
		for (; mask; mask &= mask - 1) {
			int at = __builtin_ctzll(mask);

			coef[i][at] = (int8_t)*values++;
			if (tsi_jpeg_zigzag_of[at] > top)
				top = tsi_jpeg_zigzag_of[at];
		}
		last[i] = top;
	}
}

const struct tsi_jpeg_expand tsi_jpeg_expand_scalar = {
	.name = "scalar",
	.blocks = blocks_scalar,
};

#ifdef __x86_64__

static bool has_vbmi2(void)
{
	return __builtin_cpu_supports("avx512vbmi2");
}

#else

static bool has_vbmi2(void)
{
	return false;
}

#endif

const struct tsi_jpeg_expand *tsi_jpeg_expand_choose(enum tsi_simd simd)
{
	switch (simd) {
	case TSI_SIMD_AVX512:
		return tsi_simd_has(simd) && has_vbmi2()
			       ? tsi_jpeg_expand_avx512
			       : NULL;
	case TSI_SIMD_AVX2:
		return tsi_simd_has(simd) ? tsi_jpeg_expand_avx2 : NULL;
	case TSI_SIMD_NEON:
		return tsi_simd_has(simd) ? tsi_jpeg_expand_neon : NULL;
	case TSI_SIMD_SCALAR:
		return &tsi_jpeg_expand_scalar;
	default:
		break;
	}
	if (tsi_simd_has(TSI_SIMD_AVX512) && has_vbmi2())
		return tsi_jpeg_expand_avx512;
	if (tsi_simd_has(TSI_SIMD_AVX2))
		return tsi_jpeg_expand_avx2;
	return tsi_simd_has(TSI_SIMD_NEON) ? tsi_jpeg_expand_neon
					   : &tsi_jpeg_expand_scalar;
}
