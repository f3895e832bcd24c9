/* SPDX-License-Identifier: MIT */
/*
 * init.c - the conversions of an x86-64 processor, level by level.
 */
#include "convert/x86/init.h"

void tsi_convert_kernel_init_x86(struct tsi_convert_kernel *k,
				 enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		tsi_convert_kernel_init_avx2(k);
	if (level >= TSI_SIMD_AVX512)
		tsi_convert_kernel_init_avx512(k);
}
