/* SPDX-License-Identifier: MIT */
/*
 * simd.c - what a 64-bit Arm processor has, which needn't be asked: NEON.
 */
#include "base/simd.h"

void tsi_simd_init_arm(struct tsi_simd_levels *l, enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	l->best = TSI_SIMD_NEON;
	l->name[TSI_SIMD_NEON] = "neon";
}
