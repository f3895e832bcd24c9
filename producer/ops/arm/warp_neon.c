/* SPDX-License-Identifier: MIT */
/*
 * warp_neon.c - places of maps, and blurs, in NEON.
 */
#include "ops/warp_kernel.h"

#include <arm_neon.h>
#include <string.h>

#include "ops/warp_box.h"

#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Places, two at a time
 */

INLINE float64x2_t centres(uint32_t column)
{
	const double two[2] = { column + 0.5, column + 1.5 };

	return vld1q_f64(two);
}

/* a * u + b + c, where b doesn't change along a row. */
INLINE float64x2_t line(double a, float64x2_t u, double b, double c)
{
	float64x2_t v = vmulq_f64(vdupq_n_f64(a), u);

	return vaddq_f64(vaddq_f64(v, vdupq_n_f64(b)), vdupq_n_f64(c));
}

static void neon_affine(const double *m, uint32_t column, uint32_t row,
			uint32_t n, double *x, double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i += 2) {
		float64x2_t u = centres(column + i);

		vst1q_f64(x + i, line(m[0], u, m[1] * v, m[2]));
		vst1q_f64(y + i, line(m[3], u, m[4] * v, m[5]));
	}
}

static void neon_perspective(const double *m, uint32_t column, uint32_t row,
			     uint32_t n, double *x, double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i += 2) {
		float64x2_t u = centres(column + i);
		float64x2_t q = line(m[6], u, m[7] * v, 1);

		vst1q_f64(x + i, vdivq_f64(line(m[0], u, m[1] * v, m[2]), q));
		vst1q_f64(y + i, vdivq_f64(line(m[3], u, m[4] * v, m[5]), q));
	}
}

/* ------------------------------------------------------------------------
 * Boxes: sums of up to 257 bytes are words, and products double words.
 */

#define BOX_REACH 127

struct words {
	uint16x8_t low;
	uint16x8_t high;
};

INLINE struct words load_words(const uint8_t *p)
{
	uint8x16_t v = vld1q_u8(p);

	return (struct words){ vmovl_u8(vget_low_u8(v)),
			       vmovl_u8(vget_high_u8(v)) };
}

INLINE struct words plus(struct words a, struct words b)
{
	return (struct words){ vaddq_u16(a.low, b.low),
			       vaddq_u16(a.high, b.high) };
}

INLINE struct words minus(struct words a, struct words b)
{
	return (struct words){ vsubq_u16(a.low, b.low),
			       vsubq_u16(a.high, b.high) };
}

INLINE struct words times(struct words a, uint32_t n)
{
	return (struct words){ vmulq_n_u16(a.low, (uint16_t)n),
			       vmulq_n_u16(a.high, (uint16_t)n) };
}

/* Four sums and those of the ends, to the upper half of double words. */
INLINE uint16x4_t weigh(const struct tsi_warp_box *b, uint16x4_t sum,
			uint16x4_t ends)
{
	uint32x4_t v = vmulq_n_u32(vmovl_u16(sum), b->near);

	v = vmlaq_n_u32(v, vmovl_u16(ends), b->far);
	return vshrn_n_u32(vaddq_u32(v, vdupq_n_u32(1u << 23)), 16);
}

INLINE uint8x8_t weigh8(const struct tsi_warp_box *b, uint16x8_t sum,
			uint16x8_t ends)
{
	uint16x4_t low = weigh(b, vget_low_u16(sum), vget_low_u16(ends));
	uint16x4_t high = weigh(b, vget_high_u16(sum), vget_high_u16(ends));

	return vshrn_n_u16(vcombine_u16(low, high), 8);
}

/* The sum of the first place. */
INLINE struct words first_sum(const struct tsi_warp_box *b, const uint8_t *src,
			      size_t stride, uint32_t n)
{
	uint32_t last = n - 1, whole = b->radius < last ? b->radius : last;
	struct words sum = times(load_words(src), b->radius + 1);

	for (uint32_t i = 1; i <= whole; i++)
		sum = plus(sum, load_words(src + i * stride));
	return plus(sum,
		    times(load_words(src + last * stride), b->radius - whole));
}

/* 16 lines. */
static void box16(const struct tsi_warp_box *b, const uint8_t *src,
		  size_t src_stride, uint8_t *dst, size_t dst_stride,
		  uint32_t n)
{
	struct words sum = first_sum(b, src, src_stride, n);
	struct words before = load_words(src);
	uint32_t last = n - 1;

	for (uint32_t i = 0; i < n; i++, dst += dst_stride) {
		uint32_t end = i + b->radius + 1;
		uint32_t first = i < b->radius ? 0 : i - b->radius;
		struct words behind = load_words(
			src + (size_t)(end < last ? end : last) * src_stride);
		struct words ends = plus(before, behind);

		vst1_u8(dst, weigh8(b, sum.low, ends.low));
		vst1_u8(dst + 8, weigh8(b, sum.high, ends.high));
		before = load_words(src + (size_t)first * src_stride);
		sum = plus(sum, minus(behind, before));
	}
}

static void neon_box(const struct tsi_warp_box *b, const uint8_t *src,
		     size_t src_stride, uint8_t *dst, size_t dst_stride,
		     uint32_t n, unsigned lanes)
{
	if (b->radius > BOX_REACH) {
		tsi_warp_box(b, src, src_stride, dst, dst_stride, n, lanes);
		return;
	}
	for (unsigned i = 0; i < lanes; i += 16)
		box16(b, src + i, src_stride, dst + i, dst_stride, n);
}

/* ------------------------------------------------------------------------
 * Taps
 */

/* Sums of 8 numbers. */
struct sums {
	float32x4_t a;
	float32x4_t b;
};

INLINE struct sums first_product(const float *p, float tap)
{
	return (struct sums){ vmulq_n_f32(vld1q_f32(p), tap),
			      vmulq_n_f32(vld1q_f32(p + 4), tap) };
}

INLINE struct sums add_product(struct sums s, const float *p, const float *q,
			       float tap)
{
	float32x4_t a = vaddq_f32(vld1q_f32(p), vld1q_f32(q));
	float32x4_t b = vaddq_f32(vld1q_f32(p + 4), vld1q_f32(q + 4));

	return (struct sums){ vaddq_f32(s.a, vmulq_n_f32(a, tap)),
			      vaddq_f32(s.b, vmulq_n_f32(b, tap)) };
}

static void neon_across(const float *src, size_t step, const float *tap,
			uint32_t radius, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		struct sums s = first_product(src + i, tap[0]);

		for (size_t j = 1; j <= radius; j++)
			s = add_product(s, src + i - j * step,
					src + i + j * step, tap[j]);
		vst1q_f32(dst + i, s.a);
		vst1q_f32(dst + i + 4, s.b);
	}
}

static void neon_down(const float *const *row, const float *tap,
		      uint32_t radius, uint8_t *dst, size_t n)
{
	int reach = (int)radius;

	for (size_t i = 0; i < n; i += 8) {
		struct sums s = first_product(row[0] + i, tap[0]);
		uint16x8_t v;
		uint8_t bytes[8];

		for (int j = 1; j <= reach; j++)
			s = add_product(s, row[-j] + i, row[j] + i, tap[j]);
		v = vcombine_u16(vmovn_u32(vcvtnq_u32_f32(s.a)),
				 vmovn_u32(vcvtnq_u32_f32(s.b)));
		vst1_u8(bytes, vmovn_u16(v));
		memcpy(dst + i, bytes, n - i < 8 ? n - i : 8);
	}
}

/* ------------------------------------------------------------------------
 * Pixels
 */

static void neon_widen(const uint8_t *src, size_t n, uint8_t *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16, src += 48, dst += 64) {
		uint8x16x3_t v = vld3q_u8(src);
		uint8x16x4_t w = { { v.val[0], v.val[1], v.val[2], v.val[2] } };

		vst4q_u8(dst, w);
	}
	for (; i < n; i++, src += 3, dst += 4)
		memcpy(dst, src, 3);
}

void tsi_warp_kernel_init_arm(struct tsi_warp_kernel *k, enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	k->affine = neon_affine;
	k->perspective = neon_perspective;
	k->box = neon_box;
	k->across = neon_across;
	k->down = neon_down;
	k->widen = neon_widen;
}
