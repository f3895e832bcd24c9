/* SPDX-License-Identifier: MIT */
/*
 * expand.c - packed blocks expanded by plain C, or by what a level of vector
 * instructions has.
 */
#include "packed/expand.h"

#include "jpeg/zigzag.h"

#include <string.h>

static void blocks_scalar(const uint8_t *masks, const uint8_t *dc,
			  const uint8_t *values, uint32_t n,
			  int16_t (*coef)[64], uint8_t *last)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t top = 0;
		uint64_t mask;

		memcpy(&mask, masks + 8 * (size_t)i, sizeof(mask));
		memset(coef[i], 0, sizeof(coef[i]));
		memcpy(coef[i], dc + 2 * (size_t)i, sizeof(coef[i][0]));
		for (; mask; mask &= mask - 1) {
			int at = __builtin_ctzll(mask);

			coef[i][at] = (int8_t)*values++;
			if (tsi_jpeg_zigzag_of[at] > top)
				top = tsi_jpeg_zigzag_of[at];
		}
		last[i] = top;
	}
}

void tsi_expand_kernel_init(struct tsi_expand_kernel *k, enum tsi_simd level)
{
	k->blocks = blocks_scalar;
	TSI_SIMD_INIT(tsi_expand_kernel_init, k, level);
}
