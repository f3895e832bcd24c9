/* SPDX-License-Identifier: MIT */
/*
 * simd.c - the choice among the vector instructions that there are.
 */
#include "pixel/simd.h"

enum tsi_simd tsi_simd_best(void)
{
	if (tsi_simd_has(TSI_SIMD_AVX512))
		return TSI_SIMD_AVX512;
	if (tsi_simd_has(TSI_SIMD_AVX2))
		return TSI_SIMD_AVX2;
	return tsi_simd_has(TSI_SIMD_NEON) ? TSI_SIMD_NEON : TSI_SIMD_SCALAR;
}
