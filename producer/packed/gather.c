/* SPDX-License-Identifier: MIT */
/*
 * gather.c - blocks packed by plain C, or by what a level of vector instructions
 * has.
 */
#include "packed/gather.h"

#include <stdbool.h>
#include <string.h>

static uint64_t mask_scalar(const int16_t *coef)
{
	uint64_t mask = 0;

	for (int i = 0; i < 64; i++)
		mask |= (uint64_t)(coef[i] != 0) << i;
	return mask;
}

/* False: a value needs more than a byte. */
static bool block_scalar(const int16_t *coef, uint64_t mask, uint8_t **values)
{
	uint8_t *to = *values;

	for (; mask; mask &= mask - 1) {
		int16_t v = coef[__builtin_ctzll(mask)];

		if (v != (int8_t)v)
			return false;
		*to++ = (uint8_t)(int8_t)v;
	}
	*values = to;
	return true;
}

static uint32_t blocks_scalar(const int16_t (*coef)[64], uint32_t n,
			      uint8_t *masks, uint8_t *dc, uint8_t **values)
{
	uint32_t i = 0;

	for (; i < n; i++) {
		uint64_t mask = mask_scalar(coef[i]) & ~UINT64_C(1);

		if (!block_scalar(coef[i], mask, values))
			break;
		memcpy(masks + 8 * (size_t)i, &mask, sizeof(mask));
		memcpy(dc + 2 * (size_t)i, coef[i], sizeof(coef[i][0]));
	}
	return i;
}

void tsi_gather_kernel_init(struct tsi_gather_kernel *k, enum tsi_simd level)
{
	k->mask = mask_scalar;
	k->blocks = blocks_scalar;
	TSI_SIMD_INIT(tsi_gather_kernel_init, k, level);
}
