/* SPDX-License-Identifier: MIT */
/*
 * expand.h - the kernels that expand packed blocks: one for each kind of
 * processor, with the same blocks from each.
 */
#ifndef TSI_PACKED_EXPAND_H
#define TSI_PACKED_EXPAND_H

#include "packed/blocks.h"

/* Bit i is set where coef[i] isn't zero. */
uint64_t tsi_jpeg_mask_of(const int16_t *coef);

/* The rest are NULL in builds for other processors. */
extern const struct tsi_jpeg_expand tsi_jpeg_expand_scalar;
extern const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx2;
/* Needs VBMI2 beside what TSI_SIMD_AVX512 stands for. */
extern const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx512;
extern const struct tsi_jpeg_expand *const tsi_jpeg_expand_neon;

#endif
