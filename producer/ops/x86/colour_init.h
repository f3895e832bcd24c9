/* SPDX-License-Identifier: MIT */
/*
 * colour_init.h - the slots that each of an x86-64 processor's levels fills.
 */
#ifndef TSI_OPS_X86_COLOUR_INIT_H
#define TSI_OPS_X86_COLOUR_INIT_H

#include "ops/colour_kernel.h"

void tsi_colour_kernel_init_avx2(struct tsi_colour_kernel *k);
void tsi_colour_kernel_init_avx512(struct tsi_colour_kernel *k);

#endif
