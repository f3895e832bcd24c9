/* SPDX-License-Identifier: MIT */
/*
 * gather.c - blocks packed by NEON's table look-ups.
 */
#include "packed/gather.h"

#include <arm_neon.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static uint64_t mask_neon(const int16_t *coef)
{
	static const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128,
					 1, 2, 4, 8, 16, 32, 64, 128 };
	uint8x16_t v[4];

#pragma GCC unroll 8
	for (int i = 0; i < 4; i++) {
		int16x8_t a = vld1q_s16(coef + 16 * i);
		int16x8_t b = vld1q_s16(coef + 16 * i + 8);
		uint8x16_t set = vcombine_u8(vmovn_u16(vtstq_s16(a, a)),
					     vmovn_u16(vtstq_s16(b, b)));

		v[i] = vandq_u8(set, vld1q_u8(bit));
	}
	/* Eight bits of a row into a byte, in three steps. */
	v[0] = vpaddq_u8(v[0], v[1]);
	v[2] = vpaddq_u8(v[2], v[3]);
	v[0] = vpaddq_u8(v[0], v[2]);
	v[0] = vpaddq_u8(v[0], v[0]);
	return vgetq_lane_u64(vreinterpretq_u64_u8(v[0]), 0);
}

/* For a byte of a mask: which of eight bytes it takes, and how many. */
static struct {
	uint8_t taken[256][8];
	uint8_t count[256];
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_taken(void)
{
	for (unsigned m = 0; m < 256; m++) {
		uint8_t n = 0;

		for (uint8_t i = 0; i < 8; i++)
			if (m >> i & 1)
				table.taken[m][n++] = i;
		table.count[m] = n;
	}
}

/* A block's rows as bytes; false: a coefficient but DC needs more. */
static bool rows_of(const int16_t *coef, int8x8_t row[8])
{
	uint16x8_t odd = vdupq_n_u16(0);

#pragma GCC unroll 8
	for (unsigned y = 0; y < 8; y++) {
		int16x8_t v = vld1q_s16(coef + 8 * y);

		/* DC stands apart. */
		if (!y)
			v = vsetq_lane_s16(0, v, 0);
		row[y] = vmovn_s16(v);
		odd = vorrq_u16(odd, vmvnq_u16(vceqq_s16(vmovl_s8(row[y]), v)));
	}
	return vmaxvq_u16(odd) == 0;
}

static uint32_t blocks_neon(const int16_t (*coef)[64], uint32_t n,
			    uint8_t *masks, uint8_t *dc, uint8_t **values)
{
	uint8_t *to = *values;
	uint32_t i = 0;

	for (; i < n; i++) {
		uint64_t mask = mask_neon(coef[i]) & ~UINT64_C(1);
		int8x8_t row[8];

		if (!rows_of(coef[i], row))
			break;
#pragma GCC unroll 8
		for (unsigned y = 0; y < 8; y++) {
			uint8_t m = (uint8_t)(mask >> 8 * y);
			uint8x8_t which = vld1_u8(table.taken[m]);

			vst1_u8(to,
				vtbl1_u8(vreinterpret_u8_s8(row[y]), which));
			to += table.count[m];
		}
		memcpy(masks + 8 * (size_t)i, &mask, sizeof(mask));
		memcpy(dc + 2 * (size_t)i, coef[i], sizeof(coef[i][0]));
	}
	*values = to;
	return i;
}

void tsi_gather_kernel_init_arm(struct tsi_gather_kernel *k,
				enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	pthread_once(&once, fill_taken);
	k->mask = mask_neon;
	k->blocks = blocks_neon;
}
