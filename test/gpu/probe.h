/* SPDX-License-Identifier: MIT */
/*
 * probe.h - what the questions of probe.c have in common.  Each is asked in a
 * process of its own, and ends it where it can't go on.
 */
#ifndef TEST_GPU_PROBE_H
#define TEST_GPU_PROBE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mem/cuda/entry.h"

#define BYTES ((size_t)2 << 20)

#define must(call) \
	do { \
		cudaError_t e_ = (cudaError_t)(call); \
		if (e_ != cudaSuccess) { \
			printf("%s: %s", #call, cudaGetErrorName(e_)); \
			exit(0); \
		} \
	} while (0)

static inline void *driver(const char *name)
{
	void *fn = NULL;

	if (tsi_cuda_entry(name, &fn) != CUDA_SUCCESS) {
		printf("the driver has no %s", name);
		exit(0);
	}
	return fn;
}

#define CU(name) ((__typeof__(&name))driver(#name))

static inline const char *name_of(cudaError_t e)
{
	return cudaGetErrorName(e);
}

/* ---- probe_ipc.c ---- */

void probe_write_to_read_only(void);
void probe_vmm_after_a_kill(void);
void probe_legacy_after_a_kill(void);
void probe_own_memory_opened(void);

/*
 * The other process: it makes memory, hands it over through a socket, and stays
 * until it is killed.
 */
void probe_serve_vmm(int sock);
void probe_serve_legacy(int sock);

#endif
