/* SPDX-License-Identifier: MIT */
/*
 * small_neon.c - blocks to fewer samples, one at once.
 *
 * What rounds is added before a shift, not by it: NEON's rounding shifts don't
 * wrap, and sums of damaged files do.  Loops over vectors are unrolled, so that
 * these stay in registers.
 */
#include "jpeg/small.h"

#include <arm_neon.h>
#include <string.h>

#include "jpeg/arm/row.h"
#include "jpeg/arm/small_neon.h"

#define INLINE static inline __attribute__((always_inline))

/* a * x + b * y; double words wrap. */
INLINE int32x4_t dot(int a, int16x4_t x, int b, int16x4_t y)
{
	return vmlal_n_s16(vmull_n_s16(x, (int16_t)a), y, (int16_t)b);
}

/* ------------------------------------------------------------------------
 * 4 x 4
 */

struct four {
	int32x4_t v[4];
};

/* in[4] isn't looked at; `round` is added to each of the sums. */
INLINE struct four sums(const int16x4_t in[8], const int round)
{
	int32x4_t even = vaddq_s32(vshll_n_s16(in[0], 14), vdupq_n_s32(round));
	int32x4_t turn = dot(S_1_847, in[2], -S_0_765, in[6]);
	int32x4_t inner = vaddq_s32(dot(S_1_061, in[1], -S_2_172, in[3]),
				    dot(S_1_451, in[5], -S_0_211, in[7]));
	int32x4_t outer = vaddq_s32(dot(S_2_562, in[1], S_0_899, in[3]),
				    dot(-S_0_601, in[5], -S_0_509, in[7]));
	int32x4_t a = vaddq_s32(even, turn), b = vsubq_s32(even, turn);
	struct four f;

	f.v[0] = vaddq_s32(a, outer);
	f.v[1] = vaddq_s32(b, inner);
	f.v[2] = vsubq_s32(b, inner);
	f.v[3] = vsubq_s32(a, outer);
	return f;
}

/* Columns to rows: four rows of eight words. */
INLINE void down4(const int16x8_t r[8], int16x8_t mid[4])
{
	int16x4_t low[8], high[8];
	struct four a, b;

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		low[i] = vget_low_s16(r[i]);
		high[i] = vget_high_s16(r[i]);
	}
	a = sums(low, 1 << 11);
	b = sums(high, 1 << 11);
#pragma GCC unroll 8
	for (int i = 0; i < 4; i++)
		mid[i] = vcombine_s16(vqshrn_n_s32(a.v[i], 12),
				      vqshrn_n_s32(b.v[i], 12));
}

/* Four rows of eight words to columns of four. */
INLINE void turn4(const int16x8_t mid[4], int16x4_t in[8])
{
	int16x8x2_t p = vtrnq_s16(mid[0], mid[1]);
	int16x8x2_t q = vtrnq_s16(mid[2], mid[3]);

#pragma GCC unroll 8
	for (int i = 0; i < 2; i++) {
		int32x4x2_t t = vtrnq_s32(vreinterpretq_s32_s16(p.val[i]),
					  vreinterpretq_s32_s16(q.val[i]));

#pragma GCC unroll 8
		for (int k = 0; k < 2; k++) {
			int16x8_t v = vreinterpretq_s16_s32(t.val[k]);

			in[i + 2 * k] = vget_low_s16(v);
			in[4 + i + 2 * k] = vget_high_s16(v);
		}
	}
}

/* 16 sums of columns, shifted by 19, to 16 bytes, row by row. */
INLINE uint8x16_t bytes4(struct four f)
{
	/* Bytes of columns to those of rows. */
	static const uint8_t turn[16] = { 0, 4, 8,  12, 1, 5, 9,  13,
					  2, 6, 10, 14, 3, 7, 11, 15 };
	/* 16 of the 19 bits lose nothing: but the last three saturate. */
	int16x8_t a =
		vcombine_s16(vshrn_n_s32(f.v[0], 16), vshrn_n_s32(f.v[1], 16));
	int16x8_t b =
		vcombine_s16(vshrn_n_s32(f.v[2], 16), vshrn_n_s32(f.v[3], 16));
	int8x16_t v = vcombine_s8(vqshrn_n_s16(a, 3), vqshrn_n_s16(b, 3));

	return vqtbl1q_u8(vaddq_u8(vreinterpretq_u8_s8(v), vdupq_n_u8(128)),
			  vld1q_u8(turn));
}

static void block4(const int16_t *coef, const uint16_t *quant, uint8_t *out,
		   size_t stride)
{
	int16x8_t r[8], mid[4];
	int16x4_t in[8];
	uint8_t v[16];

	r[0] = row(coef, quant, 0);
	if (wild(r[0])) {
		tsi_jpeg_small_4((const int16_t(*)[64])(const void *)coef, NULL,
				 1, quant, out, stride);
		return;
	}
#pragma GCC unroll 8
	for (int y = 1; y < 8; y++)
		r[y] = row(coef, quant, y);
	down4(r, mid);
	turn4(mid, in);
	vst1q_u8(v, bytes4(sums(in, 1 << 18)));
#pragma GCC unroll 8
	for (size_t y = 0; y < 4; y++)
		memcpy(out + y * stride, v + 4 * y, 4);
}

void tsi_jpeg_small_4_neon(const int16_t (*coef)[64], const uint8_t *last,
			   uint32_t n, const uint16_t *quant, uint8_t *out,
			   size_t stride)
{
	(void)last;
	for (uint32_t i = 0; i < n; i++, out += 4)
		block4(coef[i], quant, out, stride);
}

/* ------------------------------------------------------------------------
 * 2 x 2
 */

/* From rows 1, 3, 5 and 7 of a block, a half of each. */
INLINE int32x4_t odd2(int16x4_t r1, int16x4_t r3, int16x4_t r5, int16x4_t r7)
{
	return vaddq_s32(dot(S_3_624, r1, -S_1_272, r3),
			 dot(S_0_850, r5, -S_0_720, r7));
}

INLINE int32x4_t shifted13(int32x4_t v)
{
	return vshrq_n_s32(vaddq_s32(v, vdupq_n_s32(1 << 12)), 13);
}

/* Two samples of a row, from its first sum and the saturated others. */
INLINE void row2(int32x4_t low, int32x4_t high, uint8_t *out)
{
	static const int16_t factor[8] = { 0, S_3_624, 0, -S_1_272,
					   0, S_0_850, 0, -S_0_720 };
	int16x4_t a = vqmovn_s32(low), b = vqmovn_s32(high);
	uint32_t odd = (uint32_t)vaddvq_s32(vmlal_s16(
		vmull_s16(a, vld1_s16(factor)), b, vld1_s16(factor + 4)));
	uint32_t even = ((uint32_t)vgetq_lane_s32(low, 0) << 15) + (1u << 19);

#pragma GCC unroll 8
	for (int i = 0; i < 2; i++) {
		int32_t v = (int32_t)(i ? even - odd : even + odd) >> 20;

		v = v > 127 ? 127 : v < -128 ? -128 : v;
		out[i] = (uint8_t)(v + 128);
	}
}

static void block2(const int16_t *coef, const uint16_t *quant, uint8_t *out,
		   size_t stride)
{
	int16x8_t r0 = row(coef, quant, 0), r1 = row(coef, quant, 1);
	int16x8_t r3 = row(coef, quant, 3), r5 = row(coef, quant, 5);
	int16x8_t r7 = row(coef, quant, 7);
	int32x4_t even = vshll_n_s16(vget_low_s16(r0), 15);
	int32x4_t even_high = vshll_n_s16(vget_high_s16(r0), 15);
	int32x4_t odd = odd2(vget_low_s16(r1), vget_low_s16(r3),
			     vget_low_s16(r5), vget_low_s16(r7));
	int32x4_t odd_high = odd2(vget_high_s16(r1), vget_high_s16(r3),
				  vget_high_s16(r5), vget_high_s16(r7));

	row2(shifted13(vaddq_s32(even, odd)),
	     shifted13(vaddq_s32(even_high, odd_high)), out);
	row2(shifted13(vsubq_s32(even, odd)),
	     shifted13(vsubq_s32(even_high, odd_high)), out + stride);
}

void tsi_jpeg_small_2_neon(const int16_t (*coef)[64], const uint8_t *last,
			   uint32_t n, const uint16_t *quant, uint8_t *out,
			   size_t stride)
{
	(void)last;
	for (uint32_t i = 0; i < n; i++, out += 2)
		block2(coef[i], quant, out, stride);
}
