/* SPDX-License-Identifier: MIT */
/*
 * gather.c - which kernel packs blocks, and the one for any processor.
 */
#include "packed/gather.h"

#include <stdbool.h>
#include <string.h>

#include "packed/expand.h"

/* False: a value needs more than a byte. */
static bool block_scalar(const int16_t *coef, uint64_t mask, uint8_t **values)
{
	uint8_t *to = *values;

	for (; mask; mask &= mask - 1) {
		int16_t v = coef[__builtin_ctzll(mask)];

		if (v != (int8_t)v)
			return false;
		*to++ = (uint8_t)(int8_t)v;
	}
	*values = to;
	return true;
}

static uint32_t blocks_scalar(const int16_t (*coef)[64], uint32_t n,
			      uint8_t *masks, uint8_t *dc, uint8_t **values)
{
	uint32_t i = 0;

	for (; i < n; i++) {
		uint64_t mask = tsi_jpeg_mask_of(coef[i]) & ~UINT64_C(1);

		if (!block_scalar(coef[i], mask, values))
			break;
		memcpy(masks + 8 * (size_t)i, &mask, sizeof(mask));
		memcpy(dc + 2 * (size_t)i, coef[i], sizeof(coef[i][0]));
	}
	return i;
}

static const struct tsi_jpeg_gather scalar = {
	.name = "scalar",
	.blocks = blocks_scalar,
};

const struct tsi_jpeg_gather *tsi_jpeg_gather_choose(enum tsi_simd simd)
{
	/* They need what those that expand need. */
	bool avx2 = tsi_jpeg_expand_choose(TSI_SIMD_AVX2) != NULL;
	bool avx512 = tsi_jpeg_expand_choose(TSI_SIMD_AVX512) != NULL;
	bool neon = tsi_jpeg_expand_choose(TSI_SIMD_NEON) != NULL;

	switch (simd) {
	case TSI_SIMD_AVX512:
		return avx512 ? tsi_jpeg_gather_avx512 : NULL;
	case TSI_SIMD_AVX2:
		return avx2 ? tsi_jpeg_gather_avx2 : NULL;
	case TSI_SIMD_NEON:
		return neon ? tsi_jpeg_gather_neon : NULL;
	case TSI_SIMD_SCALAR:
		return &scalar;
	default:
		break;
	}
	if (avx512)
		return tsi_jpeg_gather_avx512;
	if (avx2)
		return tsi_jpeg_gather_avx2;
	return neon ? tsi_jpeg_gather_neon : &scalar;
}
