/* SPDX-License-Identifier: MIT */
/*
 * simd.c - what a 64-bit Arm processor has, which needn't be asked: NEON.
 */
#include "pixel/simd.h"

bool tsi_simd_has(enum tsi_simd simd)
{
	return simd != TSI_SIMD_AVX2 && simd != TSI_SIMD_AVX512;
}

bool tsi_simd_has_bits(void)
{
	return false;
}

bool tsi_simd_has_wide(void)
{
	return false;
}
