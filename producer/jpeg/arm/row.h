/* SPDX-License-Identifier: MIT */
/*
 * row.h - a row of a block in one vector of NEON.
 */
#ifndef TSI_JPEG_ARM_ROW_H
#define TSI_JPEG_ARM_ROW_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

/* Row y, times the quantisers; words wrap. */
static inline int16x8_t row(const int16_t *coef, const uint16_t *quant, int y)
{
	uint16x8_t c = vreinterpretq_u16_s16(vld1q_s16(coef + 8 * y));

	return vreinterpretq_s16_u16(vmulq_u16(c, vld1q_u16(quant + 8 * y)));
}

/* Does the shortcut of blocks with but one row, which wraps, matter? */
static inline bool wild(int16x8_t row0)
{
	return vmaxvq_u16(vreinterpretq_u16_s16(vabsq_s16(row0))) >= 0x2000;
}

#endif
