/* SPDX-License-Identifier: MIT */
/*
 * colour_kernel.h - the inner loops of operations on colours: what the files of
 * these operations and the versions for each processor share.
 */
#ifndef TSI_OPS_COLOUR_KERNEL_H
#define TSI_OPS_COLOUR_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

/*
 * All may read and write up to TSI_CANVAS_SLACK bytes behind the end of what
 * they are given, unless they say something else.
 *
 * A blend with d is d + alpha * (v - d) in float32, 0 or less being 0, and 255
 * or more 255, and truncated.
 */
struct tsi_colour_kernel {
	/* n values are those that the table has for them. */
	void (*look_up)(const uint8_t *table, uint8_t *p, size_t n);
	/* n pixels of three, and a table for each channel. */
	void (*look_up3)(const uint8_t (*tables)[256], uint8_t *p, size_t n);
	/* The luminances of n pixels of three; dst may be src. */
	void (*luminance)(const uint8_t *src, uint8_t *dst, size_t n);
	/* n values, each three times. */
	void (*spread)(const uint8_t *src, uint8_t *dst, size_t n);
	/* The sum of n values; reads nothing behind them. */
	uint64_t (*sum)(const uint8_t *p, size_t n);
	/*
	 * The least and the greatest of n values, value i belonging to channel
	 * i % 3; 255 and 0 of a channel without any.  Reads no other.
	 */
	void (*extremes)(const uint8_t *p, size_t n, uint8_t low[3],
			 uint8_t high[3]);
	/* n pixels of three, each blended with its luminance. */
	void (*saturate)(float alpha, uint8_t *p, size_t n);
	/* n values, each blended with that at d. */
	void (*blend)(float alpha, const uint8_t *d, uint8_t *p, size_t n);
	/*
	 * n values of a row that has a row above it and one below, all `row`
	 * bytes: each blended with the mean of its neighbours, which are `step`
	 * bytes from it to the left and the right, and of five times itself,
	 * rounded.
	 */
	void (*smooth)(float alpha, const uint8_t *src, size_t row, size_t step,
		       uint8_t *dst, size_t n);
	/* n pixels of three, whose hue, a byte, is turned by this. */
	void (*hue)(uint8_t by, uint8_t *p, size_t n);
	/*
	 * sum[i] += weight * p[i], rounded after the product.  May read and
	 * write to the next multiple of 16 numbers.
	 */
	void (*weigh)(float weight, const uint8_t *p, float *sum, size_t n);
	/* n sums, truncated.  May read to the next multiple of 64 numbers. */
	void (*truncate)(const float *sum, uint8_t *dst, size_t n);
};

void tsi_colour_kernel_init(struct tsi_colour_kernel *k, enum tsi_simd level);
void tsi_colour_kernel_init_x86(struct tsi_colour_kernel *k,
				enum tsi_simd level);
void tsi_colour_kernel_init_arm(struct tsi_colour_kernel *k,
				enum tsi_simd level);

#endif
