/* SPDX-License-Identifier: MIT */
/*
 * expand.h - how packed blocks are expanded, at each level of vector
 * instructions, with the same blocks from each.
 */
#ifndef TSI_PACKED_EXPAND_H
#define TSI_PACKED_EXPAND_H

#include <stdint.h>

#include "base/simd.h"

struct tsi_expand_kernel {
	/*
	 * n blocks of these masks, each of whose bit 0 is 0, and DCs; last: as
	 * jpeg/blocks.h has it.  Masks and DCs may lie at any address.  Reads up
	 * to 64 bytes behind the values.
	 */
	void (*blocks)(const uint8_t *masks, const uint8_t *dc,
		       const uint8_t *values, uint32_t n, int16_t (*coef)[64],
		       uint8_t *last);
};

void tsi_expand_kernel_init(struct tsi_expand_kernel *k, enum tsi_simd level);
void tsi_expand_kernel_init_x86(struct tsi_expand_kernel *k,
				enum tsi_simd level);
void tsi_expand_kernel_init_arm(struct tsi_expand_kernel *k,
				enum tsi_simd level);

#endif
