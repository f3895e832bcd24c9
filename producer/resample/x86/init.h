/* SPDX-License-Identifier: MIT */
/*
 * init.h - the slots that each of an x86-64 processor's levels fills.
 */
#ifndef TSI_RESAMPLE_X86_INIT_H
#define TSI_RESAMPLE_X86_INIT_H

#include "resample/kernel.h"

void tsi_resample_kernel_init_avx2(struct tsi_resample_kernel *k);
void tsi_resample_kernel_init_avx512(struct tsi_resample_kernel *k);

#endif
