/* SPDX-License-Identifier: MIT */
/*
 * stream.h - work in a stream that may be the application's own.
 */
#ifndef TSI_MEM_CUDA_STREAM_H
#define TSI_MEM_CUDA_STREAM_H

#include "mem/cuda/call.h"
#include "mem/gpu.h"

/*
 * With the device current: may the stream be worked in?  TSOCK_ENOTSUP when it
 * is being captured, TSOCK_EARG when it is none of this device's.
 */
int tsi_cuda_stream_check(unsigned device, tsi_gpu_stream s);

/* tsi_cuda_err() for a call that names a stream. */
int tsi_cuda_stream_err(cudaError_t e, unsigned device, const char *call);

/* TSI_CUDA_CALL() for a call that queues work into stream s. */
#define TSI_CUDA_IN_STREAM(device, s, call, name) \
	TSI_CUDA_ON(device, \
		    tsi_cuda_stream_check(device, s) \
			    ?: tsi_cuda_stream_err(call, device, name))

#endif
