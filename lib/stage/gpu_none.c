/* SPDX-License-Identifier: MIT */
/*
 * gpu_none.c - what stands for the stages on GPUs in a build without CUDA.
 */
#include "stage/kind.h"

#include "base/err.h"

static int none(struct tsi_stage *st)
{
	(void)st;
	return tsi_err(TSOCK_ENOTSUP, "this build has no CUDA");
}

const struct tsi_stage_ops tsi_stage_upload = { .init = none };
const struct tsi_stage_ops tsi_stage_peer = { .init = none };
const struct tsi_stage_ops tsi_stage_gpu_convert = { .init = none };
