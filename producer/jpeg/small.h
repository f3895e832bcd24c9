/* SPDX-License-Identifier: MIT */
/*
 * small.h - blocks of 8 x 8 coefficients to 4 x 4, 2 x 2 or 1 x 1 samples:
 * a JPEG at half, a quarter or an eighth of its size.
 *
 * Bytes are those of libjpeg-turbo's jpeg_idct_4x4(), _2x2() and _1x1(), with
 * any coefficients: where words of 16 bits wrap and saturate they do so as in
 * its vector code for x86 (1x1: as in its C code, which has no other).
 * Formulas: libjpeg-turbo's jidctred.c and jidctred-sse2.asm, restated.
 */
#ifndef TSI_JPEG_SMALL_H
#define TSI_JPEG_SMALL_H

#include "jpeg/kernel.h"

/* Coefficients left out: row and column 4 of 4 x 4, 2, 4 and 6 of 2 x 2. */
tsi_jpeg_idct_fn tsi_jpeg_small_4;
tsi_jpeg_idct_fn tsi_jpeg_small_2;
tsi_jpeg_idct_fn tsi_jpeg_small_1;

/* Cosines: 13 fractional bits. */
#define S_0_211 1730
#define S_0_509 4176
#define S_0_601 4926
#define S_0_720 5906
#define S_0_765 6270
#define S_0_850 6967
#define S_0_899 7373
#define S_1_061 8697
#define S_1_272 10426
#define S_1_451 11893
#define S_1_847 15137
#define S_2_172 17799
#define S_2_562 20995
#define S_3_624 29692

#endif
