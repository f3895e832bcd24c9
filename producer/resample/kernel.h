/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - both passes of a resize: what resample.c and the versions for each
 * processor share.
 */
#ifndef TSI_RESAMPLE_KERNEL_H
#define TSI_RESAMPLE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"
#include "resample/taps.h"

/* What is there for planes serves no greater tsi_taps_spread(). */
#define TSI_PLANE_SPREAD 60

struct tsi_resample_kernel {
	/* Fill in t->packed, for across and down. */
	void (*pack)(struct tsi_taps *t);
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

	/* Levels without planes have NULL here. */

	/* Fill in t->packed, for across_plane; TSI_PLANE_SPREAD holds. */
	void (*pack_plane)(struct tsi_taps *t);
	/*
	 * As across, with one byte a pixel.  May read TSI_PLANE_SLACK
	 * bytes behind a row of src and write a row of dst to the next multiple
	 * of 16.
	 */
	void (*across_plane)(const struct tsi_taps *t, const uint8_t *src,
			     size_t src_stride, uint32_t rows, uint8_t *dst,
			     size_t dst_stride);
	/*
	 * Three planes, `plane` bytes apart, to n pixels of three bytes; writes
	 * exactly those.  May read TSI_ROW_SLACK bytes behind a plane.
	 */
	void (*weave)(const uint8_t *src, size_t plane, uint8_t *dst, size_t n);
};

void tsi_resample_kernel_init(struct tsi_resample_kernel *k,
			      enum tsi_simd level);
void tsi_resample_kernel_init_x86(struct tsi_resample_kernel *k,
				  enum tsi_simd level);
void tsi_resample_kernel_init_arm(struct tsi_resample_kernel *k,
				  enum tsi_simd level);

#endif
