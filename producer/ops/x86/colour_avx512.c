/* SPDX-License-Identifier: MIT */
/*
 * colour_avx512.c - operations on colours, compiled for AVX-512.
 */
#include "ops/x86/colour_init.h"

#define COLOUR \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi," \
			      "prefer-vector-width=512")))
#include "ops/colour_body.h"

void tsi_colour_kernel_init_avx512(struct tsi_colour_kernel *k)
{
	*k = colour_kernel;
}
