/* SPDX-License-Identifier: MIT */
/*
 * avx_none.c - stands for the files with AVX2 and AVX-512 in a build without
 * them: they are never chosen.
 */
#include <stddef.h>

#include "packed/expand.h"
#include "packed/gather.h"
#include "jpeg/kernel.h"
#include "jpeg/lane.h"
#include "jpeg/unstuff.h"
#include "jpeg/wide.h"
#include "resample/kernel.h"

const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx2;
const struct tsi_jpeg_expand *const tsi_jpeg_expand_avx512;
const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx2;
const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx512;

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
