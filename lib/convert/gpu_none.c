/*
 * gpu_none.c - what stands for a GPU's conversions in a build without CUDA.
 */
#include "convert/gpu.h"

#include "base/err.h"

int tsi_convert_gpu(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, uint64_t height, uint64_t width, void *dst)
{
	(void)device;
	(void)s;
	(void)spec;
	(void)src;
	(void)count;
	(void)height;
	(void)width;
	(void)dst;
	return tsi_err(TSOCK_ENOTSUP, "this build has no CUDA: build it again "
				      "with CUDA=1 where the CUDA toolkit is");
}
