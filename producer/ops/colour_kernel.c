/* SPDX-License-Identifier: MIT */
/*
 * colour_kernel.c - operations on colours in plain C, and those that a level of
 * vector instructions has.
 */
#include "ops/colour_kernel.h"

#define COLOUR
#include "ops/colour_body.h"

void tsi_colour_kernel_init(struct tsi_colour_kernel *k, enum tsi_simd level)
{
	*k = colour_kernel;
	TSI_SIMD_INIT(tsi_colour_kernel_init, k, level);
}
