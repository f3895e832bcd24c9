/* SPDX-License-Identifier: MIT */
/*
 * neon.c - the conversion with NEON.
 *
 * Values are computed, not looked up: with a divisor's reciprocal in two
 * floats, a rounded division is a product and a fused multiply-add.  Its
 * caller proves the result on all 256 values before it is used.  The last
 * pixels go by table.
 */
#include "convert/impl.h"

#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* What four neighbouring values are computed with. */
struct lanes {
	float32x4_t mean, hi, lo;
};

struct scale {
	float hi, lo;
};

/* Four values, normalised. */
INLINE float32x4_t compute(uint16x4_t values, const struct scale *s,
			   const struct lanes *k)
{
	float32x4_t v = vcvtq_f32_u32(vmovl_u16(values));
	float32x4_t q = vfmaq_n_f32(vmulq_n_f32(v, s->lo), v, s->hi);
	float32x4_t x = vsubq_f32(q, k->mean);

	return vfmaq_f32(vmulq_f32(x, k->lo), x, k->hi);
}

/* Ties to even; values are never NaN. */
INLINE uint16x4_t to_bfloat(float32x4_t y)
{
	uint32x4_t u = vreinterpretq_u32_f32(y);
	uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));

	u = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
	return vshrn_n_u32(u, 16);
}

INLINE uint16x4_t to_half(float32x4_t y)
{
	return vreinterpret_u16_f16(vcvt_f16_f32(y));
}

/* Four values to dst, from its element i on, whose alignment is an element's. */
INLINE void put4(char *dst, size_t i, uint16x4_t v, const struct scale *s,
		 const struct lanes *k, uint32_t dtype)
{
	float32x4_t y = compute(v, s, k);

	if (dtype == TSOCK_F32)
		vst1q_f32((float *)(void *)(dst + i * 4), y);
	else
		vst1_u16((uint16_t *)(void *)(dst + i * 2),
			 dtype == TSOCK_F16 ? to_half(y) : to_bfloat(y));
}

/* Sixteen values; k is of each four of them, in turns of three. */
INLINE void put(char *dst, size_t i, uint8x16_t v, const struct scale *s,
		const struct lanes *const k[3], uint32_t dtype)
{
	uint16x8_t low = vmovl_u8(vget_low_u8(v));
	uint16x8_t high = vmovl_u8(vget_high_u8(v));

	put4(dst, i, vget_low_u16(low), s, k[0], dtype);
	put4(dst, i + 4, vget_high_u16(low), s, k[1], dtype);
	put4(dst, i + 8, vget_low_u16(high), s, k[2], dtype);
	put4(dst, i + 12, vget_high_u16(high), s, k[0], dtype);
}

INLINE struct scale scale_of(const struct tsi_convert *c)
{
	struct tsi_recip by = tsi_convert_arithmetic(c)->scale;

	return (struct scale){ by.hi, by.lo };
}

/* The constants of channels first, first + step and so on, a lane each. */
INLINE struct lanes lanes_of(const struct tsi_convert *c, int first, int step)
{
	const struct tsi_convert_arithmetic *a = tsi_convert_arithmetic(c);
	float mean[4], hi[4], lo[4];

	for (int i = 0; i < 4; i++) {
		int ch = (first + i * step) % 3;

		mean[i] = a->mean[ch];
		hi[i] = a->istd[ch].hi;
		lo[i] = a->istd[ch].lo;
	}
	return (struct lanes){ vld1q_f32(mean), vld1q_f32(hi), vld1q_f32(lo) };
}

INLINE void chw(const struct tsi_convert *c, const uint8_t *src, size_t n,
		char *dst, uint32_t dtype)
{
	const struct scale s = scale_of(c);
	const struct lanes k0 = lanes_of(c, 0, 0);
	const struct lanes k1 = lanes_of(c, 1, 0);
	const struct lanes k2 = lanes_of(c, 2, 0);
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		uint8x16x3_t v = vld3q_u8(src + i * 3);

		put(dst, i, v.val[0], &s,
		    (const struct lanes *const[]){ &k0, &k0, &k0 }, dtype);
		put(dst, n + i, v.val[1], &s,
		    (const struct lanes *const[]){ &k1, &k1, &k1 }, dtype);
		put(dst, 2 * n + i, v.val[2], &s,
		    (const struct lanes *const[]){ &k2, &k2, &k2 }, dtype);
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

/*
 * Sixteen pixels are three vectors of sixteen values, whose first channels are
 * 0, 1 and 2; four values on, the first channel is the next one.
 */
INLINE void hwc(const struct tsi_convert *c, const uint8_t *src, size_t n,
		char *dst, uint32_t dtype)
{
	const struct scale s = scale_of(c);
	const struct lanes k0 = lanes_of(c, 0, 1);
	const struct lanes k1 = lanes_of(c, 1, 1);
	const struct lanes k2 = lanes_of(c, 2, 1);
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		size_t at = i * 3;

		put(dst, at, vld1q_u8(src + at), &s,
		    (const struct lanes *const[]){ &k0, &k1, &k2 }, dtype);
		put(dst, at + 16, vld1q_u8(src + at + 16), &s,
		    (const struct lanes *const[]){ &k1, &k2, &k0 }, dtype);
		put(dst, at + 32, vld1q_u8(src + at + 32), &s,
		    (const struct lanes *const[]){ &k2, &k0, &k1 }, dtype);
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

static void chw_u8(const struct tsi_convert *c, const uint8_t *src, size_t n,
		   void *out)
{
	uint8_t *dst = out;
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		uint8x16x3_t v = vld3q_u8(src + i * 3);

		vst1q_u8(dst + i, v.val[0]);
		vst1q_u8(dst + n + i, v.val[1]);
		vst1q_u8(dst + 2 * n + i, v.val[2]);
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

/* A constant dtype in each call: the compiler makes a loop of each. */
static void to_hwc(const struct tsi_convert *c, const uint8_t *src,
		   size_t npixels, void *dst)
{
	switch (tsi_convert_spec(c)->dtype) {
	case TSOCK_U8:
		memcpy(dst, src, npixels * 3);
		return;
	case TSOCK_F16:
		hwc(c, src, npixels, dst, TSOCK_F16);
		return;
	case TSOCK_BF16:
		hwc(c, src, npixels, dst, TSOCK_BF16);
		return;
	default:
		hwc(c, src, npixels, dst, TSOCK_F32);
	}
}

static void to_chw(const struct tsi_convert *c, const uint8_t *src,
		   size_t npixels, void *dst)
{
	switch (tsi_convert_spec(c)->dtype) {
	case TSOCK_F16:
		chw(c, src, npixels, dst, TSOCK_F16);
		return;
	case TSOCK_BF16:
		chw(c, src, npixels, dst, TSOCK_BF16);
		return;
	default:
		chw(c, src, npixels, dst, TSOCK_F32);
	}
}

void tsi_convert_kernel_init_arm(struct tsi_convert_kernel *k,
				 enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	k->hwc = to_hwc;
	k->chw = to_chw;
	k->chw_u8 = chw_u8;
}
