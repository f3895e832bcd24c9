/* SPDX-License-Identifier: MIT */
/*
 * vmm.h - GPU memory that crosses processes as a descriptor, for
 * tsi_gpu_mem_create(), _open() and _close().
 */
#ifndef TSI_MEM_CUDA_VMM_H
#define TSI_MEM_CUDA_VMM_H

#include "mem/gpu.h"

/* Sizes are multiples of this.  Only for devices that have VMM. */
int tsi_cuda_vmm_granularity(unsigned device, uint64_t *bytes);

int tsi_cuda_vmm_create(unsigned device, uint64_t bytes,
			struct tsi_gpu_mem *out);
int tsi_cuda_vmm_open(unsigned device, int fd, uint64_t bytes, bool twice,
		      struct tsi_gpu_mem *out);

/* tsi_gpu_mem_grant() for what was created here. */
int tsi_cuda_vmm_grant(const struct tsi_gpu_mem *m, unsigned device);

/* With the device current. */
void tsi_cuda_vmm_close(struct tsi_gpu_mem *m);

#endif
