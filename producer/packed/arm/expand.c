/* SPDX-License-Identifier: MIT */
/*
 * expand.c - packed blocks by NEON's table look-ups.
 */
#include "packed/expand.h"

#include <arm_neon.h>
#include <pthread.h>
#include <string.h>

#include "jpeg/zigzag.h"

/*
 * For a byte of a mask: which of the next eight values goes to the upper half
 * of each of eight words (255: none, and so it is in the lower halves), how
 * many there are, and the highest zigzag position that it sets as each of a
 * block's eight rows.
 */
static struct {
	uint8_t shuffle[256][16];
	uint8_t count[256];
	uint8_t top[8][256];
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_shuffles(void)
{
	memset(table.shuffle, 255, sizeof(table.shuffle));
	for (unsigned m = 0; m < 256; m++) {
		uint8_t n = 0;

		for (unsigned i = 0; i < 8; i++) {
			if (!(m >> i & 1))
				continue;
			table.shuffle[m][2 * i + 1] = n++;
			/* Positions grow along a row. */
			for (unsigned y = 0; y < 8; y++)
				table.top[y][m] = tsi_jpeg_zigzag_of[8 * y + i];
		}
		table.count[m] = n;
	}
}

static void blocks_neon(const uint8_t *masks, const uint8_t *dc,
			const uint8_t *values, uint32_t n, int16_t (*coef)[64],
			uint8_t *last)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *mask = masks + 8 * (size_t)i;
		uint8_t top = 0;

		for (unsigned y = 0; y < 8; y++) {
			uint8x16_t how = vld1q_u8(table.shuffle[mask[y]]);
			uint8x16_t v =
				vcombine_u8(vld1_u8(values), vdup_n_u8(0));
			int16x8_t w = vreinterpretq_s16_u8(vqtbl1q_u8(v, how));

			vst1q_s16(coef[i] + 8 * y, vshrq_n_s16(w, 8));
			values += table.count[mask[y]];
			if (table.top[y][mask[y]] > top)
				top = table.top[y][mask[y]];
		}
		memcpy(coef[i], dc + 2 * (size_t)i, sizeof(coef[i][0]));
		last[i] = top;
	}
}

void tsi_expand_kernel_init_arm(struct tsi_expand_kernel *k,
				enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	pthread_once(&once, fill_shuffles);
	k->blocks = blocks_neon;
}
