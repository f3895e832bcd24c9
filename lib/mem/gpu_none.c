/* SPDX-License-Identifier: MIT */
/*
 * gpu_none.c - what stands for GPUs in a build without CUDA.
 *
 * Looking for a GPU says that there is no CUDA.  So nothing is ever asked of
 * one: the rest of gpu.h is left out, but for what rings name.
 */
#include "mem/gpu.h"

#include "base/err.h"

static int none(void)
{
	return tsi_err(TSOCK_ENOTSUP,
		       "this build has no CUDA: build it again with CUDA=1 "
		       "where the CUDA toolkit is");
}

int tsi_gpu_count(unsigned *n)
{
	(void)n;
	return none();
}

int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out)
{
	(void)device;
	(void)out;
	return none();
}

int tsi_gpu_find(const uint8_t *uuid, unsigned *device)
{
	(void)uuid;
	(void)device;
	return none();
}

/* ---- for rings, which have a GPU's memory only if one was found ---- */

int tsi_gpu_mem_create(unsigned device, enum tsock_transport transport,
		       uint64_t bytes, struct tsi_gpu_mem *out)
{
	(void)device;
	(void)transport;
	(void)bytes;
	(void)out;
	return none();
}

int tsi_gpu_mem_grant(const struct tsi_gpu_mem *m, unsigned device)
{
	(void)m;
	(void)device;
	return none();
}

void tsi_gpu_mem_close(struct tsi_gpu_mem *m)
{
	(void)m;
}

int tsi_gpu_pin(unsigned device, void *base, uint64_t bytes)
{
	(void)device;
	(void)base;
	(void)bytes;
	return none();
}

void tsi_gpu_unpin(void *base)
{
	(void)base;
}
