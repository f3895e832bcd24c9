/* SPDX-License-Identifier: MIT */
/*
 * resample_kernel.h - what resample.c and its kernels share.
 */
#ifndef TSI_IMAGE_RESAMPLE_KERNEL_H
#define TSI_IMAGE_RESAMPLE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define TSI_WEIGHT_BITS 22

/*
 * Weights of an axis: output i is the sum of weight[i * pad + k] times source
 * pixel first[i] + k, for k < count[i]; behind count[i] they are 0.  packed
 * holds the same in the kernel's own form, 16 bytes for each four weights.
 */
struct tsi_taps {
	uint32_t n;
	uint32_t pad; /* a multiple of 4 */
	uint32_t *first;
	uint32_t *count;
	int32_t *weight;
	void *packed; /* aligned to 16 */
};

struct tsi_resample_kernel {
	const char *name;
	/* Four weights to 16 bytes. */
	void (*pack)(const int32_t *weight, void *packed);
	/*
	 * Rows of four-byte pixels to rows of three-byte pixels.  May write
	 * TSI_ROW_SLACK bytes behind the end of a row of dst.
	 */
	void (*across)(const struct tsi_taps *t, const uint8_t *src,
		       size_t src_stride, uint32_t rows, uint8_t *dst,
		       size_t dst_stride);
	/*
	 * Output row i of t from t->count[i] rows at src; writes exactly
	 * bytes.  May read TSI_ROW_SLACK bytes behind a source row.
	 */
	void (*down)(const struct tsi_taps *t, uint32_t i, const uint8_t *src,
		     size_t stride, uint8_t *dst, size_t bytes);
};

extern const struct tsi_resample_kernel tsi_resample_scalar;

/* NULL where this processor can't run it. */
const struct tsi_resample_kernel *tsi_resample_avx2(void);

#endif
