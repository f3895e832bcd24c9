/* SPDX-License-Identifier: MIT */
/*
 * entry.h - a function of the driver by its name.
 *
 * The driver's own cuGetProcAddress() is asked, for the interface of the oldest
 * toolkit that we build with.  (The runtime's function for that asks for the
 * toolkit's own interface in 11.8 to 12.4, which an older driver of the same
 * major version need not know.)  For call.c, and for tests of the runtime.
 */
#ifndef TSI_MEM_CUDA_ENTRY_H
#define TSI_MEM_CUDA_ENTRY_H

#include <stdint.h>
#include <string.h>

#include <cuda.h>
#include <dlfcn.h>

#define TSI_CUDA_API 11080

/* The function exported under this name since CUDA 11.3; since 12.0 the headers
 * mean another one by it. */
typedef CUresult tsi_cuda_find_fn(const char *name, void **fn, int version,
				  uint64_t flags);

/* NULL: there is no driver, or it is older than that. */
static inline tsi_cuda_find_fn *tsi_cuda_find(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	void *fn = lib ? dlsym(lib, "cuGetProcAddress") : NULL;
	tsi_cuda_find_fn *find;

	memcpy(&find, &fn, sizeof(fn));
	return find;
}

/* *out is set on success only. */
static inline CUresult tsi_cuda_entry(const char *name, void **out)
{
	tsi_cuda_find_fn *find = tsi_cuda_find();
	void *fn = NULL;
	CUresult r =
		find ? find(name, &fn, TSI_CUDA_API, 0) : CUDA_ERROR_NOT_FOUND;

	if (r == CUDA_SUCCESS && !fn)
		r = CUDA_ERROR_NOT_FOUND;
	if (r == CUDA_SUCCESS)
		*out = fn;
	return r;
}

#endif
