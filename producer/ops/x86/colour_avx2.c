/* SPDX-License-Identifier: MIT */
/*
 * colour_avx2.c - operations on colours, compiled for AVX2.
 */
#include "ops/x86/colour_init.h"

#define COLOUR __attribute__((target("avx2")))
#include "ops/colour_body.h"

void tsi_colour_kernel_init_avx2(struct tsi_colour_kernel *k)
{
	*k = colour_kernel;
}
