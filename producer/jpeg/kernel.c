/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - the transforms and rows that a level of vector instructions has.
 */
#include "jpeg/kernel.h"

void tsi_jpeg_kernel_init(struct tsi_jpeg_kernel *k, enum tsi_simd level)
{
	*k = tsi_jpeg_kernel_scalar;
	TSI_SIMD_INIT(tsi_jpeg_kernel_init, k, level);
}
