/* SPDX-License-Identifier: MIT */
/*
 * colour_init.c - operations on colours on an x86-64 processor, level by level.
 */
#include "ops/x86/colour_init.h"

void tsi_colour_kernel_init_x86(struct tsi_colour_kernel *k,
				enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		tsi_colour_kernel_init_avx2(k);
	if (level >= TSI_SIMD_AVX512)
		tsi_colour_kernel_init_avx512(k);
}
