/* SPDX-License-Identifier: MIT */
/*
 * init.h - the slots that each of an x86-64 processor's levels fills.
 */
#ifndef TSI_JPEG_X86_INIT_H
#define TSI_JPEG_X86_INIT_H

#include "jpeg/entropy_kernel.h"
#include "jpeg/kernel.h"

void tsi_jpeg_kernel_init_avx2(struct tsi_jpeg_kernel *k);
void tsi_jpeg_kernel_init_avx512(struct tsi_jpeg_kernel *k);

tsi_jpeg_idct_fn tsi_jpeg_small_4_avx2;
tsi_jpeg_idct_fn tsi_jpeg_small_2_avx2;

tsi_unstuff_fn tsi_unstuff_avx2;
tsi_lane_run_fn tsi_lane_run_avx2;
tsi_wide_run_fn tsi_wide_run_avx512;
tsi_wide_settle_fn tsi_wide_settle_avx512;

#endif
