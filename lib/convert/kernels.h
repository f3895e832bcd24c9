/* SPDX-License-Identifier: MIT */
/*
 * kernels.h - the work that the GPU itself does, as plain C.
 *
 * kernels.cu is the only file with device code; a simulated GPU implements the
 * functions on the host.  Nothing is checked here: the caller has made the
 * device's context current, and knows that the numbers make sense and that both
 * buffers are large enough.
 */
#ifndef TSI_CONVERT_KERNELS_H
#define TSI_CONVERT_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * count images of pixels pixels each, one after the other without padding.
 * src: u8 [count, pixels, channels], at any address.  dst: [count, pixels,
 * channels] (HWC) or [count, channels, pixels] (CHW) of dtype, at a multiple of
 * its size.  Images of one channel are HWC, and all of mean and std are its.
 */
struct tsi_kernel_convert {
	const void *src;
	void *dst;
	uint64_t count;
	uint64_t pixels;
	uint64_t channels;  /* 3 or 1 */
	uint32_t dtype;     /* TSOCK_U8, F16, BF16 or F32 */
	uint32_t layout;    /* enum tsock_layout */
	uint32_t normalize; /* enum tsock_normalize; RAW for U8 */
	float mean[3], std[3];
};

/* Into a cudaStream_t; returns the launch's cudaError_t, 0 if it is queued. */
int tsi_kernel_convert(const struct tsi_kernel_convert *k, void *stream);

/* Compute capabilities that the kernels are for, times 100: "750,800". */
const char *tsi_kernel_gpus(void);

#ifdef __cplusplus
}
#endif

#endif
