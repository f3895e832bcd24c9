/* SPDX-License-Identifier: MIT */
/*
 * cuda_runtime.h - just enough of CUDA C++ for a C++ compiler to make
 * kernels.cu into plain functions.  For test_kernels.cpp alone.
 */
#ifndef ONHOST_CUDA_RUNTIME_H
#define ONHOST_CUDA_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __shared__
#define __launch_bounds__(threads, blocks)
#define __align__(n) __attribute__((aligned(n)))
#define __syncthreads() ((void)0)

struct dim3 {
	unsigned x;
	explicit dim3(unsigned n = 1) : x(n)
	{
	}
};

/* As on the device: a store that isn't aligned is an error. */
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(8) uint2 {
	unsigned x, y;
};

static inline uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d)
{
	return uint4{ a, b, c, d };
}

static inline uint2 make_uint2(unsigned a, unsigned b)
{
	return uint2{ a, b };
}

static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
	uint64_t v = static_cast<uint64_t>(y) << 32 | x;
	unsigned r = 0;

	for (unsigned i = 0; i < 4; i++)
		r |= static_cast<unsigned>(v >> 8 * (selector >> 4 * i & 7) &
					   255)
		     << 8 * i;
	return r;
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high,
				       unsigned shift)
{
	uint64_t v = static_cast<uint64_t>(high) << 32 | low;

	return static_cast<unsigned>(v >> (shift & 31));
}

template <class T> static inline T __ldg(const T *p)
{
	return *p;
}

template <class T> static inline void __stcs(T *p, T v)
{
	*p = v;
}

static inline float __fdiv_rn(float a, float b)
{
	return a / b;
}

static inline float __fsub_rn(float a, float b)
{
	return a - b;
}

static inline unsigned __float_as_uint(float f)
{
	unsigned u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

extern dim3 threadIdx, blockIdx, gridDim;

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum {
	cudaSuccess = 0,
	cudaDevAttrMultiProcessorCount = 16,
	cudaMemcpyDeviceToDevice = 3,
};

int cudaGetDevice(int *device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
						  const void *kernel,
						  int threads, size_t shared);
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args,
		     size_t shared, cudaStream_t stream);
int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind,
		    cudaStream_t stream);

#endif
