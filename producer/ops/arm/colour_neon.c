/* SPDX-License-Identifier: MIT */
/*
 * colour_neon.c - operations on colours, compiled for NEON.
 */
#include "ops/colour_kernel.h"

#define COLOUR
#include "ops/colour_body.h"

void tsi_colour_kernel_init_arm(struct tsi_colour_kernel *k,
				enum tsi_simd level)
{
	if (level >= TSI_SIMD_NEON)
		*k = colour_kernel;
}
