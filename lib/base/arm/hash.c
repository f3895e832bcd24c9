/* SPDX-License-Identifier: MIT */
/*
 * hash.c - XXH3 on a 64-bit Arm processor: xxhash.h itself has code for NEON,
 * which the compiler takes everywhere.
 */
#include "base/hash_impl.h"

void tsi_hash_kernel_init_arm(struct tsi_hash_kernel *k, enum tsi_simd level)
{
	(void)k;
	(void)level;
}
