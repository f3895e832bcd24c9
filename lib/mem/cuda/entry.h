/* SPDX-License-Identifier: MIT */
/*
 * entry.h - a function of the driver by its name, in each toolkit's way.
 *
 * For call.c, and for tests of the runtime.
 */
#ifndef TSI_MEM_CUDA_ENTRY_H
#define TSI_MEM_CUDA_ENTRY_H

#include <stddef.h>

#include <cuda_runtime_api.h>

/* The interface that is asked for of the driver, the oldest we build with. */
#define TSI_CUDA_API 11080

/* Before 12.5 the interface is the toolkit's own; 11 can't tell why not. */
#if CUDART_VERSION >= 12050
#define TSI_CUDA_ENTRY(name, out) \
	cudaGetDriverEntryPointByVersion(name, out, TSI_CUDA_API, \
					 cudaEnableDefault, NULL)
#elif CUDART_VERSION >= 12000
#define TSI_CUDA_ENTRY(name, out) \
	cudaGetDriverEntryPoint(name, out, cudaEnableDefault, NULL)
#else
#define TSI_CUDA_ENTRY(name, out) \
	cudaGetDriverEntryPoint(name, out, cudaEnableDefault)
#endif

/* *out is set on success only. */
static inline cudaError_t tsi_cuda_entry(const char *name, void **out)
{
	void *fn = NULL;
	cudaError_t e = TSI_CUDA_ENTRY(name, &fn);

	if (e == cudaSuccess && !fn)
		e = cudaErrorSymbolNotFound;
	if (e == cudaSuccess)
		*out = fn;
	return e;
}

#endif
