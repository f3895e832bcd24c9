/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - the network on a 64-bit Arm processor: plain C, one number
 * after the other.
 */
#include "order/permutation_kernel.h"

void tsi_permutation_kernel_init_arm(struct tsi_permutation_kernel *k,
				     enum tsi_simd level)
{
	(void)k;
	(void)level;
}
