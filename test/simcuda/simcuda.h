/* SPDX-License-Identifier: MIT */
/*
 * simcuda.h - what the simulation offers beyond CUDA's interface: kernels
 * written as host functions, what NCCL needs, and hooks for tests.
 */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "hooks.h"

#pragma GCC visibility push(default)

#define SIMCUDA_RANGES 4

/* Memory that a kernel touches: of a device, or page-locked. */
struct simcuda_range {
	const void *ptr;
	size_t len;
	bool write;
};

/*
 * A kernel runs in stream order on a thread of the simulation, in steps
 * 0 .. steps-1, with other streams' work in between.  range[i] is where range
 * i can be reached from the host, for the length of that step only.
 *
 * A range that the stream's device can't access so becomes the sticky
 * cudaErrorIllegalAddress when the kernel runs.
 */
struct simcuda_kernel {
	unsigned nranges, steps;
	struct simcuda_range range[SIMCUDA_RANGES];
	void (*run)(void *arg, char *const *range, unsigned step);
	void (*fini)(void *arg); /* once, whether it ran or not; may be NULL */
	void *arg;
};

/* The arg stays the caller's when this fails. */
cudaError_t simcuda_launch(cudaStream_t stream, const struct simcuda_kernel *k);

/* For libnccl_sim.so. */
struct simcuda_coll; /* one broadcast; every rank joins it once */

/* 0, or the code that SIMCUDA_FAULT asks for at this call. */
int simcuda_fault(const char *name);
int simcuda_stream_device(cudaStream_t s); /* ordinal, -1: no such stream */
bool simcuda_is_mig(int device);
bool simcuda_is_broken(int device); /* has a sticky error */
struct simcuda_coll *simcuda_coll_create(unsigned nranks, unsigned root);
/* The object is gone when all ranks have joined, or it was aborted. */
cudaError_t simcuda_coll_join(struct simcuda_coll *c, unsigned rank,
			      const void *send, void *recv, size_t bytes,
			      cudaStream_t stream);
/* Not all have joined, and won't: those that have needn't wait any more. */
void simcuda_coll_abort(struct simcuda_coll *c);
/* All ranks are aborted: work of theirs that didn't get on ends. */
void simcuda_coll_unstall(void);

#pragma GCC visibility pop

#endif
