/* SPDX-License-Identifier: MIT */
/*
 * warp_kernel.h - the inner loops of operations that move pixels: what the
 * files of these operations and the versions for each processor share.
 */
#ifndef TSI_OPS_WARP_KERNEL_H
#define TSI_OPS_WARP_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

/*
 * A picture that pixels are taken from.  Its rows have no gaps; bytes behind it
 * may be read (TSI_CANVAS_SLACK).
 */
struct tsi_warp_source {
	const uint8_t *pixels;
	uint32_t width;
	uint32_t height;
	unsigned channels; /* 3 or 1 */
};

/*
 * The weights of a box blur, as fractions of 2^24: `near` for each of the
 * 2 * radius + 1 values in the middle, `far` for the two beside them.
 */
struct tsi_warp_box {
	uint32_t radius;
	uint32_t near;
	uint32_t far;
};

/* Most lines that go through a box blur side by side. */
#define TSI_WARP_LANES 96

/* The greatest radius of taps. */
#define TSI_WARP_REACH 512

struct tsi_warp_kernel {
	/*
	 * Where n pixels of a row come from, from this column on: x[i], y[i] by
	 * their centres.  affine: m has six numbers; perspective: eight.  May
	 * write to the next multiple of 8.
	 */
	void (*affine)(const double *m, uint32_t column, uint32_t row,
		       uint32_t n, double *x, double *y);
	void (*perspective)(const double *m, uint32_t column, uint32_t row,
			    uint32_t n, double *x, double *y);
	/*
	 * n pixels of the source, all inside of it, the i-th being that of
	 * column (x + i * dx) >> 16 and row (y + i * dy) >> 16.  Writes exactly
	 * those.
	 */
	void (*fixed)(const struct tsi_warp_source *s, int64_t x, int64_t y,
		      int64_t dx, int64_t dy, uint32_t n, uint8_t *dst);
	/*
	 * n pixels of the source at these places; those that lie outside of it
	 * stay as they are at dst.  Writes exactly the others.
	 */
	void (*bilinear)(const struct tsi_warp_source *s, const double *x,
			 const double *y, uint32_t n, uint8_t *dst);
	void (*bicubic)(const struct tsi_warp_source *s, const double *x,
			const double *y, uint32_t n, uint8_t *dst);
	/*
	 * Up to TSI_WARP_LANES lines of n values side by side, those of one
	 * line src_stride apart; the first and last ones of a line count as
	 * repeated.  May read and write to the next multiple of 32 lanes.
	 */
	void (*box)(const struct tsi_warp_box *b, const uint8_t *src,
		    size_t src_stride, uint8_t *dst, size_t dst_stride,
		    uint32_t n, unsigned lanes);
	/* dst[x * dst_stride + y] = src[y * src_stride + x], all of them. */
	void (*transpose)(const uint8_t *src, size_t src_stride, uint32_t width,
			  uint32_t height, uint8_t *dst, size_t dst_stride);
	/*
	 * n bytes as numbers.  May read and write to the next multiple of 16.
	 */
	void (*floats)(const uint8_t *src, size_t n, float *dst);
	/*
	 * A symmetrical filter along a row: tap[0] times src[i], and for each j
	 * up to radius tap[j] times the sum of src[i - j * step] and
	 * src[i + j * step], added in this order.  May read and write to the
	 * next multiple of 32.
	 */
	void (*across)(const float *src, size_t step, const float *tap,
		       uint32_t radius, float *dst, size_t n);
	/*
	 * The same filter across rows: the rows before the middle one are
	 * row[-j], those after it row[j].  Results are rounded, halves to even.
	 * May read to the next multiple of 32; writes exactly n bytes.
	 */
	void (*down)(const float *const *row, const float *tap, uint32_t radius,
		     uint8_t *dst, size_t n);
	/*
	 * n pixels of three bytes to four, of which the last is anything.  May
	 * write to the next multiple of 16 pixels, and read
	 * TSI_CANVAS_SLACK bytes behind.
	 */
	void (*widen)(const uint8_t *src, size_t n, uint8_t *dst);
};

void tsi_warp_kernel_init(struct tsi_warp_kernel *k, enum tsi_simd level);
void tsi_warp_kernel_init_x86(struct tsi_warp_kernel *k, enum tsi_simd level);
void tsi_warp_kernel_init_arm(struct tsi_warp_kernel *k, enum tsi_simd level);

#endif
