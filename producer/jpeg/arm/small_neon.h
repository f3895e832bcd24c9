/* SPDX-License-Identifier: MIT */
/*
 * small_neon.h - blocks to fewer samples (small.h), with NEON.
 */
#ifndef TSI_JPEG_ARM_SMALL_NEON_H
#define TSI_JPEG_ARM_SMALL_NEON_H

#include "jpeg/kernel.h"

tsi_jpeg_idct_fn tsi_jpeg_small_4_neon;
tsi_jpeg_idct_fn tsi_jpeg_small_2_neon;

#endif
