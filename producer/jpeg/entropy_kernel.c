/* SPDX-License-Identifier: MIT */
/*
 * entropy_kernel.c - how codes are read at a level of vector instructions.
 */
#include "jpeg/entropy_kernel.h"

static const struct tsi_entropy_kernel scalar = {
	.unstuff = tsi_unstuff_scalar,
	.run = tsi_lane_run_scalar,
};

void tsi_entropy_kernel_init(struct tsi_entropy_kernel *k, enum tsi_simd level)
{
	*k = scalar;
	TSI_SIMD_INIT(tsi_entropy_kernel_init, k, level);
}
