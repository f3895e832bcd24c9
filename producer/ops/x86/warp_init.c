/* SPDX-License-Identifier: MIT */
/*
 * warp_init.c - pixels that move on an x86-64 processor, level by level.
 */
#include "ops/x86/warp_init.h"

void tsi_warp_kernel_init_x86(struct tsi_warp_kernel *k, enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2) {
		tsi_warp_kernel_init_avx2(k);
		tsi_warp_kernel_init_blur_avx2(k);
	}
	if (level >= TSI_SIMD_AVX512)
		tsi_warp_kernel_init_avx512(k);
}
