/* SPDX-License-Identifier: MIT */
/*
 * simd_none.c - what runs on any processor, in a build without vector code.
 */
#include "image/simd.h"

#include "image/jpeg_expand.h"

bool tsi_simd_has(enum tsi_simd simd)
{
	return simd == TSI_SIMD_SCALAR || simd == TSI_SIMD_BEST;
}

bool tsi_simd_has_bits(void)
{
	return false;
}

bool tsi_simd_has_wide(void)
{
	return false;
}

uint64_t tsi_jpeg_mask_of(const int16_t *coef)
{
	uint64_t mask = 0;

	for (int i = 0; i < 64; i++)
		mask |= (uint64_t)(coef[i] != 0) << i;
	return mask;
}
