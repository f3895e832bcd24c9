/* SPDX-License-Identifier: MIT */
/*
 * init.h - the slots that each of an x86-64 processor's levels fills.
 */
#ifndef TSI_CONVERT_X86_INIT_H
#define TSI_CONVERT_X86_INIT_H

#include "convert/impl.h"

void tsi_convert_kernel_init_avx2(struct tsi_convert_kernel *k);
void tsi_convert_kernel_init_avx512(struct tsi_convert_kernel *k);

#endif
