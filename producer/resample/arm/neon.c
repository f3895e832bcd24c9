/* SPDX-License-Identifier: MIT */
/*
 * neon.c - the resampler in NEON, whose multiply-add of double words
 * takes the weights as they are.
 *
 * This file knows nothing of images but rows of bytes.
 */
#include "resample/kernel.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* It uses the weights as they are. */
static void neon_pack(struct tsi_taps *t)
{
	(void)t;
}

INLINE uint32x4_t zero(void)
{
	return vdupq_n_u32(1u << (TSI_WEIGHT_BITS - 1));
}

/*
 * Eight sums, of signed numbers, to bytes: 16 of the 22 bits lose nothing, the
 * others saturate.
 */
INLINE uint8x8_t whole(uint32x4_t a, uint32x4_t b)
{
	int16x8_t v = vcombine_s16(vshrn_n_s32(vreinterpretq_s32_u32(a), 16),
				   vshrn_n_s32(vreinterpretq_s32_u32(b), 16));

	return vqshrun_n_s16(v, TSI_WEIGHT_BITS - 16);
}

/* The four channels of output pixel i. */
INLINE uint32x4_t pixel(const struct tsi_taps *t, uint32_t i,
			const uint8_t *src)
{
	const int32_t *weight = t->weight + (size_t)i * t->pad;
	const uint8_t *p = src + (size_t)t->first[i] * 4;
	uint32x4_t even = zero(), odd = vdupq_n_u32(0);

	for (uint32_t k = 0; k < t->count[i]; k += 4) {
		uint32x4_t w = vreinterpretq_u32_s32(vld1q_s32(weight + k));
		uint8x16_t v = vld1q_u8(p + (size_t)k * 4);
		uint16x8_t p01 = vmovl_u8(vget_low_u8(v));
		uint16x8_t p23 = vmovl_u8(vget_high_u8(v));

		even = vmlaq_laneq_u32(even, vmovl_u16(vget_low_u16(p01)), w,
				       0);
		odd = vmlaq_laneq_u32(odd, vmovl_u16(vget_high_u16(p01)), w, 1);
		even = vmlaq_laneq_u32(even, vmovl_u16(vget_low_u16(p23)), w,
				       2);
		odd = vmlaq_laneq_u32(odd, vmovl_u16(vget_high_u16(p23)), w, 3);
	}
	return vaddq_u32(even, odd);
}

static void across1(const struct tsi_taps *t, const uint8_t *src, uint8_t *dst)
{
	/* Behind twelve bytes of four pixels, zeros. */
	static const uint8_t drop4th[16] = {
		0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255
	};
	const uint8x16_t drop = vld1q_u8(drop4th);

	for (uint32_t i = 0; i < t->n; i += 4) {
		/* Beyond the end the last one is computed again. */
		uint32_t last = t->n - 1;
		uint32x4_t v0 = pixel(t, i, src);
		uint32x4_t v1 = pixel(t, i + 1 < last ? i + 1 : last, src);
		uint32x4_t v2 = pixel(t, i + 2 < last ? i + 2 : last, src);
		uint32x4_t v3 = pixel(t, i + 3 < last ? i + 3 : last, src);
		uint8x16_t v = vcombine_u8(whole(v0, v1), whole(v2, v3));

		vst1q_u8(dst + (size_t)i * 3, vqtbl1q_u8(v, drop));
	}
}

static void neon_across(const struct tsi_taps *t, const uint8_t *src,
			size_t src_stride, uint32_t rows, uint8_t *dst,
			size_t dst_stride)
{
	for (; rows; rows--, src += src_stride, dst += dst_stride)
		across1(t, src, dst);
}

/* 16 bytes of an output row. */
INLINE uint8x16_t down16(const int32_t *weight, uint32_t count,
			 const uint8_t *src, size_t stride)
{
	uint32x4_t s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();

	for (uint32_t k = 0; k < count; k++, src += stride) {
		uint32_t w = (uint32_t)weight[k];
		uint8x16_t v = vld1q_u8(src);
		uint16x8_t low = vmovl_u8(vget_low_u8(v));
		uint16x8_t high = vmovl_u8(vget_high_u8(v));

		s0 = vmlaq_n_u32(s0, vmovl_u16(vget_low_u16(low)), w);
		s1 = vmlaq_n_u32(s1, vmovl_u16(vget_high_u16(low)), w);
		s2 = vmlaq_n_u32(s2, vmovl_u16(vget_low_u16(high)), w);
		s3 = vmlaq_n_u32(s3, vmovl_u16(vget_high_u16(high)), w);
	}
	return vcombine_u8(whole(s0, s1), whole(s2, s3));
}

static void neon_down(const struct tsi_taps *t, uint32_t i, const uint8_t *src,
		      size_t stride, uint8_t *dst, size_t bytes)
{
	const int32_t *weight = t->weight + (size_t)i * t->pad;
	size_t b = 0;

	for (; b + 16 <= bytes; b += 16)
		vst1q_u8(dst + b, down16(weight, t->count[i], src + b, stride));
	if (b < bytes) {
		uint8_t v[16];

		vst1q_u8(v, down16(weight, t->count[i], src + b, stride));
		memcpy(dst + b, v, bytes - b);
	}
}

void tsi_resample_kernel_init_arm(struct tsi_resample_kernel *k,
				  enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	k->pack = neon_pack;
	k->across = neon_across;
	k->down = neon_down;
}
