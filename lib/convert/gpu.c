/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - images converted by the GPU that they are on.
 */
#include "convert/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "convert/kernels.h"
#include "mem/cuda/device.h"
#include "mem/cuda/stream.h"

/* "750,800" as "7.5, 8.0". */
static void list_gpus(char *out, size_t size)
{
	const char *p = tsi_kernel_gpus();
	size_t at = 0;
	char *end;

	*out = '\0';
	for (; *p && at < size; p = *end ? end + 1 : end) {
		unsigned long n = strtoul(p, &end, 10);

		if (end == p)
			return;
		at += (size_t)snprintf(out + at, size - at, "%s%lu.%lu",
				       at ? ", " : "", n / 100, n / 10 % 10);
	}
}

static int launch_err(cudaError_t e, unsigned device)
{
	int major = 0, minor = 0;
	char has[96];

	if (e != cudaErrorNoKernelImageForDevice)
		return tsi_cuda_stream_err(e, device, "the conversion kernel");
	(void)cudaGetLastError();
	list_gpus(has, sizeof(has));
	if (tsi_cuda_attribute(device, cudaDevAttrComputeCapabilityMajor,
			       &major) ||
	    tsi_cuda_attribute(device, cudaDevAttrComputeCapabilityMinor,
			       &minor))
		major = minor = 0;
	return tsi_err(TSOCK_ENOTSUP,
		       "GPU %u has compute capability %d.%d, and this build's "
		       "kernels are for %s: build libtsock with a CUDA toolkit "
		       "that knows this GPU (cudaErrorNoKernelImageForDevice)",
		       device, major, minor, has);
}

/* With the device current. */
static int launch(unsigned device, tsi_gpu_stream s,
		  const struct tsi_kernel_convert *k)
{
	int err = tsi_cuda_stream_check(device, s);

	if (err || !k->count || !k->pixels)
		return err;
	return launch_err((cudaError_t)tsi_kernel_convert(k, s), device);
}

int tsi_convert_gpu(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, const uint64_t *shape, void *dst)
{
	const bool grey = shape[2] == 1;
	struct tsi_kernel_convert k = { .src = src,
					.dst = dst,
					.count = count,
					.channels = grey ? 1 : 3,
					.dtype = spec->dtype,
					.layout = spec->layout,
					.normalize = spec->normalize };
	uint64_t bytes;
	int err = tsi_view_spec_check(spec);

	if (err)
		return err;
	if (__builtin_mul_overflow(shape[0], shape[1], &k.pixels) ||
	    __builtin_mul_overflow(k.pixels, count, &bytes) ||
	    __builtin_mul_overflow(bytes, (uint64_t)12, &bytes))
		return tsi_err(
			TSOCK_EARG, "%llu images of %llu x %llu are no batch",
			(unsigned long long)count, (unsigned long long)shape[0],
			(unsigned long long)shape[1]);
	/* The values of one channel are in the same order in both layouts. */
	if (grey)
		k.layout = TSOCK_HWC;
	for (int c = 0; c < 3; c++) {
		k.mean[c] = spec->mean[grey ? 0 : c];
		k.std[c] = spec->std[grey ? 0 : c];
	}
	return TSI_CUDA_ON(device, launch(device, s, &k));
}
