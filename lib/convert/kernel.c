/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - the conversions that a level of vector instructions has.
 */
#include "convert/impl.h"

void tsi_convert_kernel_init(struct tsi_convert_kernel *k, enum tsi_simd level)
{
	*k = tsi_convert_scalar;
	TSI_SIMD_INIT(tsi_convert_kernel_init, k, level);
}
