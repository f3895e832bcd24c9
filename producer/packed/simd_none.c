/* SPDX-License-Identifier: MIT */
/*
 * simd_none.c - what the packed form needs where there is no vector code.
 */
#include "packed/expand.h"

uint64_t tsi_jpeg_mask_of(const int16_t *coef)
{
	uint64_t mask = 0;

	for (int i = 0; i < 64; i++)
		mask |= (uint64_t)(coef[i] != 0) << i;
	return mask;
}
