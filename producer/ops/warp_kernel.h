/* SPDX-License-Identifier: MIT */
/*
 * warp_kernel.h - the inner loops of operations that move pixels: what warp.c
 * and the versions for each processor share.
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

struct tsi_warp_kernel {
	/*
	 * Where n pixels of a row come from, from this column on: x[i], y[i] by
	 * their centres.  affine: m has six numbers; perspective: eight.
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
};

void tsi_warp_kernel_init(struct tsi_warp_kernel *k, enum tsi_simd level);

#endif
