/* SPDX-License-Identifier: MIT */
/*
 * simd_none.c - stands for the files with vector code in a build without them:
 * nothing is there but what runs on any processor.
 */
#include "image/simd.h"

#include <stddef.h>

#include "image/jpeg_expand.h"
#include "image/jpeg_gather.h"
#include "image/jpeg_kernel.h"
#include "image/jpeg_lane.h"
#include "image/jpeg_unstuff.h"
#include "image/jpeg_wide.h"
#include "image/resample_kernel.h"

const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx2;
const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx512;
const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx2;
const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx512;

bool tsi_simd_has(enum tsi_simd simd)
{
	return simd == TSI_SIMD_SCALAR || simd == TSI_SIMD_BEST;
}

bool tsi_simd_has_bits(void)
{
	return false;
}

bool tsi_simd_has_wide(void)
{
	return false;
}

const struct tsi_wide_kernel *tsi_wide_avx512(void)
{
	return NULL;
}

const struct tsi_jpeg_kernel *tsi_jpeg_kernel_avx2(void)
{
	return NULL;
}

const struct tsi_jpeg_kernel *tsi_jpeg_kernel_avx512(void)
{
	return NULL;
}

const struct tsi_resample_kernel *tsi_resample_avx2(void)
{
	return NULL;
}

const struct tsi_resample_kernel *tsi_resample_avx512(void)
{
	return NULL;
}

tsi_lane_run_fn *tsi_lane_run_avx2(void)
{
	return NULL;
}

tsi_unstuff_fn *tsi_unstuff_avx2(void)
{
	return NULL;
}

uint64_t tsi_jpeg_mask_of(const int16_t *coef)
{
	uint64_t mask = 0;

	for (int i = 0; i < 64; i++)
		mask |= (uint64_t)(coef[i] != 0) << i;
	return mask;
}
