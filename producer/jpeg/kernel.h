/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the transform of blocks, and rows of samples to rows of pixels:
 * what pixels.c and the versions for each processor share.
 *
 * Samples are bytes.  A kernel may read TSI_JPEG_SLACK bytes before and behind
 * a row of samples and write as many behind the end of its output, or twice as
 * many behind pixels of four bytes.
 */
#ifndef TSI_JPEG_KERNEL_H
#define TSI_JPEG_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

#define TSI_JPEG_SLACK 64

/*
 * n neighbouring blocks, n > 0, to rows of samples, `stride` bytes apart.
 * last: as blocks.h has it.  May write TSI_JPEG_SLACK bytes behind the end
 * of each row.
 */
typedef void tsi_jpeg_idct_fn(const int16_t (*coef)[64], const uint8_t *last,
			      uint32_t n, const uint16_t *quant, uint8_t *out,
			      size_t stride);

struct tsi_jpeg_kernel {
	/* To 8 rows of 8 * n samples: libjpeg's jsimd_idct_islow. */
	tsi_jpeg_idct_fn *idct;
	/* To 4, 2 or 1 rows of as many samples a block: small.h. */
	tsi_jpeg_idct_fn *idct4;
	tsi_jpeg_idct_fn *idct2;
	tsi_jpeg_idct_fn *idct1;
	/* n samples to 2 * n: each of them twice. */
	void (*twice)(const uint8_t *in, uint8_t *out, size_t n);
	/*
	 * n samples to 2 * n: each beside a quarter of its neighbours.  in[-1]
	 * and in[n] are there; beyond the image they repeat its edge.
	 */
	void (*h2v1)(const uint8_t *in, uint8_t *out, size_t n);
	/* As h2v1, between two rows, of which `near` counts three times. */
	void (*h2v2)(const uint8_t *near, const uint8_t *far, uint8_t *out,
		     size_t n);
	/* Three quarters of near, one of far; bias: 1 or 2, for rounding. */
	void (*h1v2)(const uint8_t *near, const uint8_t *far, unsigned bias,
		     uint8_t *out, size_t n);
	/* n pixels, four bytes each. */
	void (*ycc)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
		    uint8_t *out, size_t n);
	void (*rgb)(const uint8_t *r, const uint8_t *g, const uint8_t *b,
		    uint8_t *out, size_t n);
	/*
	 * As ycc, but to three planes: red at out, green and blue `plane`
	 * and 2 * plane bytes behind.  NULL: not written for this processor.
	 */
	void (*ycc_planes)(const uint8_t *y, const uint8_t *cb,
			   const uint8_t *cr, uint8_t *out, size_t plane,
			   size_t n);
};

/* Plain C, which gives the bytes that every other version has to give. */
extern const struct tsi_jpeg_kernel tsi_jpeg_kernel_scalar;

void tsi_jpeg_kernel_init(struct tsi_jpeg_kernel *k, enum tsi_simd level);
void tsi_jpeg_kernel_init_x86(struct tsi_jpeg_kernel *k, enum tsi_simd level);
void tsi_jpeg_kernel_init_arm(struct tsi_jpeg_kernel *k, enum tsi_simd level);

#endif
