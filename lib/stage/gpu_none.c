/* SPDX-License-Identifier: MIT */
/*
 * gpu_none.c - what stands for the stages on GPUs in a build without CUDA.
 */
#include "stage/kind.h"

#include "base/err.h"
#include "stage/download.h"

static int no_cuda(void)
{
	return tsi_err(TSOCK_ENOTSUP, "this build has no CUDA");
}

static int none(const struct tsi_stage_ops *ops,
		const struct tsi_stage_parts *p, struct tsi_stage **out)
{
	(void)ops;
	(void)p;
	(void)out;
	return no_cuda();
}

int tsi_downloads_create(struct tsi_downloads **out)
{
	*out = NULL;
	return 0;
}

void tsi_downloads_destroy(struct tsi_downloads *d)
{
	(void)d;
}

int tsi_download(struct tsi_downloads *d, const struct tsi_resident *r,
		 void *stream, const struct tsi_ring *to)
{
	(void)d;
	(void)r;
	(void)stream;
	(void)to;
	return no_cuda();
}

const struct tsi_stage_ops tsi_stage_upload = { .create = none };
const struct tsi_stage_ops tsi_stage_peer = { .create = none };
const struct tsi_stage_ops tsi_stage_gpu_convert = { .create = none };
