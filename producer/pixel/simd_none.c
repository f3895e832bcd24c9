/* SPDX-License-Identifier: MIT */
/*
 * simd_none.c - what runs on any processor, in a build without vector code.
 */
#include "pixel/simd.h"

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
