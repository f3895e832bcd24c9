/* SPDX-License-Identifier: MIT */
/*
 * gather.h - how blocks are packed as blocks.h has them, the reverse of
 * expand.h: at each level of vector instructions, with the same bytes from each.
 */
#ifndef TSI_PACKED_GATHER_H
#define TSI_PACKED_GATHER_H

#include <stdint.h>

#include "base/simd.h"

/* What may be written behind the values. */
#define TSI_JPEG_GATHER_SLACK 64

struct tsi_gather_kernel {
	/* Bit i is set where coef[i] isn't zero. */
	uint64_t (*mask)(const int16_t *coef);
	/*
	 * Up to n blocks: their masks, DCs and values, as far as the first
	 * block that has a coefficient, but for DC, that no byte has room for.
	 * Returns how many blocks were packed; *values is then behind their
	 * values.  What the masks and DCs of other blocks are is left open.
	 */
	uint32_t (*blocks)(const int16_t (*coef)[64], uint32_t n,
			   uint8_t *masks, uint8_t *dc, uint8_t **values);
};

void tsi_gather_kernel_init(struct tsi_gather_kernel *k, enum tsi_simd level);
void tsi_gather_kernel_init_x86(struct tsi_gather_kernel *k,
				enum tsi_simd level);
void tsi_gather_kernel_init_arm(struct tsi_gather_kernel *k,
				enum tsi_simd level);

#endif
