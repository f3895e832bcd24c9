/* SPDX-License-Identifier: MIT */
/*
 * warp_init.h - the slots that each of an x86-64 processor's levels fills.
 */
#ifndef TSI_OPS_X86_WARP_INIT_H
#define TSI_OPS_X86_WARP_INIT_H

#include "ops/warp_kernel.h"

void tsi_warp_kernel_init_avx2(struct tsi_warp_kernel *k);
void tsi_warp_kernel_init_avx512(struct tsi_warp_kernel *k);

/* The functions for blurs, and for rows that change their form. */
void tsi_warp_kernel_init_blur_avx2(struct tsi_warp_kernel *k);

#endif
