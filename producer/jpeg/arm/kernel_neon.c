/* SPDX-License-Identifier: MIT */
/*
 * kernel_neon.c - a block at once, and rows 16 samples at once.
 *
 * What rounds is added before a shift, not by it: NEON's rounding shifts don't
 * wrap, and sums of damaged files do.  Loops over vectors are unrolled, so that
 * these stay in registers.
 */
#include "jpeg/kernel.h"

#include <arm_neon.h>
#include <string.h>

#include "jpeg/cosines.h"
#include "jpeg/arm/row.h"
#include "jpeg/arm/small_neon.h"

#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Blocks
 */

/* Eight double words of a pass: half of the columns or rows. */
struct half {
	int32x4_t v[8];
};

/* a * x + b * y; double words wrap. */
INLINE int32x4_t dot(int a, int16x4_t x, int b, int16x4_t y)
{
	return vmlal_n_s16(vmull_n_s16(x, (int16_t)a), y, (int16_t)b);
}

INLINE struct half butterfly(const int32x4_t e[4], const int32x4_t o[4])
{
	struct half h;

#pragma GCC unroll 8
	for (int i = 0; i < 4; i++) {
		h.v[i] = vaddq_s32(e[i], o[i]);
		h.v[7 - i] = vsubq_s32(e[i], o[i]);
	}
	return h;
}

/* Sums of eight rows, or columns; `round` is added to each of them. */
INLINE struct half sums(const int16x4_t in[8], const int round)
{
	const int32x4_t more = vdupq_n_s32(round);
	int16x4_t z3 = vadd_s16(in[3], in[7]), z4 = vadd_s16(in[1], in[5]);
	int32x4_t even2 = dot(F_0_541, in[2], F_0_541 - F_1_847, in[6]);
	int32x4_t even3 = dot(F_0_541 + F_0_765, in[2], F_0_541, in[6]);
	int32x4_t odd3 = dot(F_1_175 - F_1_961, z3, F_1_175, z4);
	int32x4_t odd4 = dot(F_1_175, z3, F_1_175 - F_0_390, z4);
	int32x4_t even0, even1, e[4], o[4];

	even0 = vaddq_s32(vshll_n_s16(vadd_s16(in[0], in[4]), 13), more);
	even1 = vaddq_s32(vshll_n_s16(vsub_s16(in[0], in[4]), 13), more);
	e[0] = vaddq_s32(even0, even3);
	e[1] = vaddq_s32(even1, even2);
	e[2] = vsubq_s32(even1, even2);
	e[3] = vsubq_s32(even0, even3);
	o[0] = vaddq_s32(dot(-F_0_899, in[7], F_1_501 - F_0_899, in[1]), odd4);
	o[1] = vaddq_s32(dot(-F_2_562, in[5], F_3_072 - F_2_562, in[3]), odd3);
	o[2] = vaddq_s32(dot(F_2_053 - F_2_562, in[5], -F_2_562, in[3]), odd4);
	o[3] = vaddq_s32(dot(F_0_298 - F_0_899, in[7], -F_0_899, in[1]), odd3);
	return butterfly(e, o);
}

/* As sums(), where in[4] to in[7] are 0. */
INLINE struct half sums4(const int16x4_t in[4], const int round)
{
	const int odd1 = F_1_175 - F_0_390, odd3 = F_1_175 - F_1_961;
	int32x4_t even = vaddq_s32(vshll_n_s16(in[0], 13), vdupq_n_s32(round));
	int32x4_t even2 = vmull_n_s16(in[2], F_0_541);
	int32x4_t even3 = vmull_n_s16(in[2], F_0_541 + F_0_765);
	int32x4_t e[4], o[4];

	e[0] = vaddq_s32(even, even3);
	e[1] = vaddq_s32(even, even2);
	e[2] = vsubq_s32(even, even2);
	e[3] = vsubq_s32(even, even3);
	o[0] = dot(odd1 + F_1_501 - F_0_899, in[1], F_1_175, in[3]);
	o[1] = dot(F_1_175, in[1], odd3 + F_3_072 - F_2_562, in[3]);
	o[2] = dot(odd1, in[1], F_1_175 - F_2_562, in[3]);
	o[3] = dot(F_1_175 - F_0_899, in[1], odd3, in[3]);
	return butterfly(e, o);
}

/* Rows of words to columns. */
INLINE void turn(int16x8_t r[8])
{
	int32x4x2_t b[4];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i += 4) {
		int16x8x2_t p = vtrnq_s16(r[i], r[i + 1]);
		int16x8x2_t q = vtrnq_s16(r[i + 2], r[i + 3]);

#pragma GCC unroll 8
		for (int k = 0; k < 2; k++)
			b[i / 2 + k] =
				vtrnq_s32(vreinterpretq_s32_s16(p.val[k]),
					  vreinterpretq_s32_s16(q.val[k]));
	}
#pragma GCC unroll 8
	for (int k = 0; k < 4; k++) {
		int64x2_t up = vreinterpretq_s64_s32(b[k % 2].val[k / 2]);
		int64x2_t low = vreinterpretq_s64_s32(b[2 + k % 2].val[k / 2]);

		r[k] = vreinterpretq_s16_s64(vzip1q_s64(up, low));
		r[4 + k] = vreinterpretq_s16_s64(vzip2q_s64(up, low));
	}
}

/* Columns of sums, shifted by 18, to rows of bytes. */
INLINE void store_block(const struct half *up, const struct half *low,
			uint8_t *out, size_t stride)
{
	int16x8_t r[8];

	/* 16 of the 18 bits lose nothing, so that but the last two saturate. */
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		r[i] = vcombine_s16(vshrn_n_s32(up->v[i], 16),
				    vshrn_n_s32(low->v[i], 16));
	turn(r);
#pragma GCC unroll 8
	for (int y = 0; y < 8; y++, out += stride) {
		uint8x8_t v = vreinterpret_u8_s8(vqshrn_n_s16(r[y], 2));

		vst1_u8(out, vadd_u8(v, vdup_n_u8(128)));
	}
}

/* Half h of the rows: four columns. */
INLINE struct half sums_of(const int16x8_t r[8], const int h, const int round)
{
	int16x4_t in[8];

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		in[i] = h ? vget_high_s16(r[i]) : vget_low_s16(r[i]);
	return sums(in, round);
}

INLINE void transform(int16x8_t r[8], uint8_t *out, size_t stride)
{
	struct half up = sums_of(r, 0, 1 << 10), low = sums_of(r, 1, 1 << 10);

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		r[i] = vcombine_s16(vqshrn_n_s32(up.v[i], 11),
				    vqshrn_n_s32(low.v[i], 11));
	turn(r);
	up = sums_of(r, 0, 1 << 17);
	low = sums_of(r, 1, 1 << 17);
	store_block(&up, &low, out, stride);
}

/*
 * Shorter for blocks of which but the first four coefficients of the first
 * four rows are set.
 */
INLINE void transform4(const int16x8_t r[4], uint8_t *out, size_t stride)
{
	int16x4_t in[4], high[4];
	int16x8_t mid[8];
	struct half up, low;

#pragma GCC unroll 8
	for (int i = 0; i < 4; i++)
		in[i] = vget_low_s16(r[i]);
	up = sums4(in, 1 << 10);
	/* Rows 0 to 3 of the sums in lower halves, 4 to 7 in upper ones. */
#pragma GCC unroll 8
	for (int i = 0; i < 4; i++)
		mid[i] = vcombine_s16(vqshrn_n_s32(up.v[i], 11),
				      vqshrn_n_s32(up.v[4 + i], 11));
#pragma GCC unroll 8
	for (int i = 4; i < 8; i++)
		mid[i] = vdupq_n_s16(0);
	turn(mid);
#pragma GCC unroll 8
	for (int i = 0; i < 4; i++) {
		in[i] = vget_low_s16(mid[i]);
		high[i] = vget_low_s16(mid[4 + i]);
	}
	up = sums4(in, 1 << 17);
	low = sums4(high, 1 << 17);
	store_block(&up, &low, out, stride);
}

static void block(const int16_t *coef, unsigned last, const uint16_t *quant,
		  uint8_t *out, size_t stride)
{
	int16x8_t r[8];

	r[0] = row(coef, quant, 0);
	if (wild(r[0])) {
		uint8_t full = 63;

		/* libjpeg's shortcut depends on what a block holds, not on
		 * last. */
		tsi_jpeg_kernel_scalar.idct(
			(const int16_t(*)[64])(const void *)coef, &full, 1,
			quant, out, stride);
		return;
	}
#pragma GCC unroll 8
	for (int y = 1; y < 4; y++)
		r[y] = row(coef, quant, y);
	if (last <= 9) {
		transform4(r, out, stride);
		return;
	}
#pragma GCC unroll 8
	for (int y = 4; y < 8; y++)
		r[y] = row(coef, quant, y);
	transform(r, out, stride);
}

static void neon_idct(const int16_t (*coef)[64], const uint8_t *last,
		      uint32_t n, const uint16_t *quant, uint8_t *out,
		      size_t stride)
{
	for (uint32_t i = 0; i < n; i++, out += 8) {
		if (last[i])
			block(coef[i], last[i], quant, out, stride);
		else
			tsi_jpeg_kernel_scalar.idct(coef + i, last + i, 1,
						    quant, out, stride);
	}
}

/* ------------------------------------------------------------------------
 * Rows
 */

/* Three times a's bytes and once b's, as words: half h of them. */
INLINE uint16x8_t between(uint8x16_t a, uint8x16_t b, const int h)
{
	uint8x8_t x = h ? vget_high_u8(a) : vget_low_u8(a);
	uint8x8_t y = h ? vget_high_u8(b) : vget_low_u8(b);

	return vmlal_u8(vmovl_u8(y), x, vdup_n_u8(3));
}

static void neon_twice(const uint8_t *in, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 16) {
		uint8x16_t v = vld1q_u8(in + i);

		vst2q_u8(out + 2 * i, ((uint8x16x2_t){ { v, v } }));
	}
}

/* (a + bias) / 4, of both halves; bias is 1 or 2. */
INLINE uint8x16_t quarter(uint16x8_t low, uint16x8_t high, uint16x8_t bias)
{
	return vcombine_u8(vshrn_n_u16(vaddq_u16(low, bias), 2),
			   vshrn_n_u16(vaddq_u16(high, bias), 2));
}

static void neon_h2v1(const uint8_t *in, uint8_t *out, size_t n)
{
	const uint16x8_t one = vdupq_n_u16(1), two = vdupq_n_u16(2);

	for (size_t i = 0; i < n; i += 16) {
		uint8x16_t here = vld1q_u8(in + i);
		uint8x16_t before = vld1q_u8(in + i - 1);
		uint8x16_t after = vld1q_u8(in + i + 1);
		uint8x16x2_t v;

		v.val[0] = quarter(between(here, before, 0),
				   between(here, before, 1), one);
		v.val[1] = quarter(between(here, after, 0),
				   between(here, after, 1), two);
		vst2q_u8(out + 2 * i, v);
	}
}

/* Eight samples between two rows, which begin `at` samples further on. */
INLINE uint16x8_t column(const uint8_t *near, const uint8_t *far, ptrdiff_t at)
{
	return vmlal_u8(vmovl_u8(vld1_u8(far + at)), vld1_u8(near + at),
			vdup_n_u8(3));
}

static void neon_h2v2(const uint8_t *near, const uint8_t *far, uint8_t *out,
		      size_t n)
{
	const uint16x8_t seven = vdupq_n_u16(7), eight = vdupq_n_u16(8);

	for (size_t i = 0; i < n; i += 8) {
		ptrdiff_t at = (ptrdiff_t)i;
		uint16x8_t here = vmulq_n_u16(column(near, far, at), 3);
		uint16x8_t even = vaddq_u16(here, column(near, far, at - 1));
		uint16x8_t odd = vaddq_u16(here, column(near, far, at + 1));
		uint8x8x2_t v;

		v.val[0] = vshrn_n_u16(vaddq_u16(even, eight), 4);
		v.val[1] = vshrn_n_u16(vaddq_u16(odd, seven), 4);
		vst2_u8(out + 2 * i, v);
	}
}

static void neon_h1v2(const uint8_t *near, const uint8_t *far, unsigned bias,
		      uint8_t *out, size_t n)
{
	const uint16x8_t more = vdupq_n_u16((uint16_t)bias);

	for (size_t i = 0; i < n; i += 16) {
		uint8x16_t a = vld1q_u8(near + i), b = vld1q_u8(far + i);

		vst1q_u8(out + i,
			 quarter(between(a, b, 0), between(a, b, 1), more));
	}
}

/*
 * 1.402 and 1.772 are 1 + 0.402 and 2 - 0.228: these are the remainders with 15
 * fractional bits, and give libjpeg's integers for each of 256 samples.
 */
#define TO_RED 13173
#define TO_BLUE (-7471)

/* -0.34414 * b + 0.28586 * r, rounded; r itself is subtracted after that. */
INLINE int16x4_t green(int16x4_t b, int16x4_t r)
{
	return vrshrn_n_s32(dot(-22554, b, 65536 - 46802, r), 16);
}

/* Eight pixels: red, green and blue at p[0], p[1] and p[2]. */
INLINE void colours(uint8x8_t y, uint8x8_t cb, uint8x8_t cr, uint8x8_t p[3])
{
	const uint8x8_t middle = vdup_n_u8(128);
	int16x8_t l = vreinterpretq_s16_u16(vmovl_u8(y));
	int16x8_t b = vreinterpretq_s16_u16(vsubl_u8(cb, middle));
	int16x8_t r = vreinterpretq_s16_u16(vsubl_u8(cr, middle));
	int16x8_t red = vaddq_s16(r, vqrdmulhq_n_s16(r, TO_RED));
	int16x8_t blue =
		vaddq_s16(vaddq_s16(b, b), vqrdmulhq_n_s16(b, TO_BLUE));
	int16x8_t rest =
		vcombine_s16(green(vget_low_s16(b), vget_low_s16(r)),
			     green(vget_high_s16(b), vget_high_s16(r)));

	p[0] = vqmovun_s16(vaddq_s16(l, red));
	p[1] = vqmovun_s16(vaddq_s16(vsubq_s16(l, r), rest));
	p[2] = vqmovun_s16(vaddq_s16(l, blue));
}

static void neon_ycc(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
		     uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint8x8x4_t p;

		colours(vld1_u8(y + i), vld1_u8(cb + i), vld1_u8(cr + i),
			p.val);
		p.val[3] = vdup_n_u8(255);
		vst4_u8(out + 4 * i, p);
	}
}

static void neon_rgb(const uint8_t *r, const uint8_t *g, const uint8_t *b,
		     uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 16) {
		uint8x16x4_t p = { { vld1q_u8(r + i), vld1q_u8(g + i),
				     vld1q_u8(b + i), vdupq_n_u8(255) } };

		vst4q_u8(out + 4 * i, p);
	}
}

void tsi_jpeg_kernel_init_arm(struct tsi_jpeg_kernel *k, enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	k->idct = neon_idct;
	k->idct4 = tsi_jpeg_small_4_neon;
	k->idct2 = tsi_jpeg_small_2_neon;
	k->twice = neon_twice;
	k->h2v1 = neon_h2v1;
	k->h2v2 = neon_h2v2;
	k->h1v2 = neon_h1v2;
	k->ycc = neon_ycc;
	k->rgb = neon_rgb;
}
