/* SPDX-License-Identifier: MIT */
/*
 * colour_kernel.h - the inner loops of operations on colours: what the files of
 * these operations and the versions for each processor share.
 *
 * All versions are made of the same text (colour_body.h), which compilers make
 * vector code of; so their bytes are the same.
 */
#ifndef TSI_OPS_COLOUR_KERNEL_H
#define TSI_OPS_COLOUR_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"

struct tsi_colour_kernel {
	/* Luminances of n pixels of three channels. */
	void (*gray)(const uint8_t *rgb, size_t n, uint8_t *gray);
	/* n values, each three times. */
	void (*spread)(const uint8_t *gray, size_t n, uint8_t *rgb);
	/* n bytes blended with d. */
	void (*constant)(uint8_t *p, size_t n, int d, float alpha);
	/* n bytes blended with those at d. */
	void (*blend)(uint8_t *p, const uint8_t *d, size_t n, float alpha);
	/*
	 * n bytes of a row smoothed, with those of the rows above and below and
	 * those `step` bytes beside.
	 */
	void (*smooth)(const uint8_t *above, const uint8_t *row,
		       const uint8_t *below, size_t step, size_t n,
		       uint8_t *to);
	/* n bytes, those from least on inverted; from 0 to 256. */
	void (*solarize)(uint8_t *p, size_t n, unsigned least);
	/* n bytes, of which these bits stay. */
	void (*mask)(uint8_t *p, size_t n, uint8_t bits);
	/* n bytes, `add` added to those below 128. */
	void (*add)(uint8_t *p, size_t n, int add);
	/* n pixels, `by` added to the byte of their hue. */
	void (*hue)(uint8_t *rgb, size_t n, uint8_t by);
};

void tsi_colour_kernel_init(struct tsi_colour_kernel *k, enum tsi_simd level);
void tsi_colour_kernel_init_x86(struct tsi_colour_kernel *k,
				enum tsi_simd level);
void tsi_colour_kernel_init_arm(struct tsi_colour_kernel *k,
				enum tsi_simd level);

#endif
