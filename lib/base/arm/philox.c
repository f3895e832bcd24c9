/* SPDX-License-Identifier: MIT */
/*
 * philox.c - philox on a 64-bit Arm processor: plain C, one counter after the
 * other.
 */
#include "base/philox_kernel.h"

void tsi_philox_kernel_init_arm(struct tsi_philox_kernel *k,
				enum tsi_simd level)
{
	(void)k;
	(void)level;
}
