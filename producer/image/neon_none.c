/* SPDX-License-Identifier: MIT */
/*
 * neon_none.c - stands for the files with NEON in a build without them: they
 * are never chosen.
 */
#include <stddef.h>

#include "packed/expand.h"
#include "packed/gather.h"
#include "jpeg/kernel.h"
#include "jpeg/unstuff.h"
#include "resample/kernel.h"

const struct tsi_jpeg_expand *const tsi_jpeg_expand_neon;
const struct tsi_jpeg_gather *const tsi_jpeg_gather_neon;

const struct tsi_jpeg_kernel *tsi_jpeg_kernel_neon(void)
{
	return NULL;
}

const struct tsi_resample_kernel *tsi_resample_neon(void)
{
	return NULL;
}

tsi_unstuff_fn *tsi_unstuff_neon(void)
{
	return NULL;
}
