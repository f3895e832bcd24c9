/* SPDX-License-Identifier: MIT */
/*
 * init.c - the passes of an x86-64 processor, level by level.
 */
#include "resample/x86/init.h"

void tsi_resample_kernel_init_x86(struct tsi_resample_kernel *k,
				  enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		tsi_resample_kernel_init_avx2(k);
	if (level >= TSI_SIMD_AVX512)
		tsi_resample_kernel_init_avx512(k);
}
