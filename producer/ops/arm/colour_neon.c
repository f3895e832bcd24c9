/* SPDX-License-Identifier: MIT */
/*
 * colour_neon.c - operations on colours in NEON, 16 pixels or values at a time.
 */
#include "ops/colour_kernel.h"

#include <arm_neon.h>

#include "ops/colour_parts.h"

#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Tables
 */

struct table {
	uint8x16x4_t of[4];
};

INLINE struct table load_table(const uint8_t *p)
{
	struct table t;

	for (unsigned i = 0; i < 4; i++)
		t.of[i] = vld1q_u8_x4(p + 64 * i);
	return t;
}

/* Places beyond a part of the table leave what was found. */
INLINE uint8x16_t found(const struct table *t, uint8x16_t v)
{
	uint8x16_t part = vdupq_n_u8(64), out = vqtbl4q_u8(t->of[0], v);

	for (unsigned i = 1; i < 4; i++) {
		v = vsubq_u8(v, part);
		out = vqtbx4q_u8(out, t->of[i], v);
	}
	return out;
}

static void neon_look_up(const uint8_t *table, uint8_t *p, size_t n)
{
	const struct table t = load_table(table);

	for (size_t i = 0; i < n; i += 16)
		vst1q_u8(p + i, found(&t, vld1q_u8(p + i)));
}

static void neon_look_up3(const uint8_t (*tables)[256], uint8_t *p, size_t n)
{
	const struct table t[3] = { load_table(tables[0]),
				    load_table(tables[1]),
				    load_table(tables[2]) };

	for (size_t i = 0; i < n; i += 16, p += 48) {
		uint8x16x3_t v = vld3q_u8(p);

		for (unsigned k = 0; k < 3; k++)
			v.val[k] = found(&t[k], v.val[k]);
		vst3q_u8(p, v);
	}
}

/* ------------------------------------------------------------------------
 * Greys
 */

INLINE uint16x4_t luminance4(uint16x4_t r, uint16x4_t g, uint16x4_t b)
{
	uint32x4_t sum = vmull_n_u16(r, 19595);

	sum = vmlal_n_u16(sum, g, 38470);
	return vrshrn_n_u32(vmlal_n_u16(sum, b, 7471), 16);
}

INLINE uint8x8_t luminance8(uint8x8_t r, uint8x8_t g, uint8x8_t b)
{
	uint16x8_t x = vmovl_u8(r), y = vmovl_u8(g), z = vmovl_u8(b);

	return vmovn_u16(vcombine_u16(
		luminance4(vget_low_u16(x), vget_low_u16(y), vget_low_u16(z)),
		luminance4(vget_high_u16(x), vget_high_u16(y),
			   vget_high_u16(z))));
}

INLINE uint8x16_t luminance(uint8x16x3_t v)
{
	return vcombine_u8(
		luminance8(vget_low_u8(v.val[0]), vget_low_u8(v.val[1]),
			   vget_low_u8(v.val[2])),
		luminance8(vget_high_u8(v.val[0]), vget_high_u8(v.val[1]),
			   vget_high_u8(v.val[2])));
}

static void neon_luminance(const uint8_t *src, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 16, src += 48)
		vst1q_u8(dst + i, luminance(vld3q_u8(src)));
}

static void neon_spread(const uint8_t *src, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 16, dst += 48) {
		uint8x16_t v = vld1q_u8(src + i);

		vst3q_u8(dst, (uint8x16x3_t){ { v, v, v } });
	}
}

static uint64_t neon_sum(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		sum += vaddlvq_u8(vld1q_u8(p + i));
	for (; i < n; i++)
		sum += p[i];
	return sum;
}

static void neon_extremes(const uint8_t *p, size_t n, uint8_t low[3],
			  uint8_t high[3])
{
	uint8x16x3_t least, most;
	size_t i = 0;

	for (unsigned k = 0; k < 3; k++) {
		least.val[k] = vdupq_n_u8(255);
		most.val[k] = vdupq_n_u8(0);
	}
	for (; i + 48 <= n; i += 48) {
		uint8x16x3_t v = vld3q_u8(p + i);

		for (unsigned k = 0; k < 3; k++) {
			least.val[k] = vminq_u8(least.val[k], v.val[k]);
			most.val[k] = vmaxq_u8(most.val[k], v.val[k]);
		}
	}
	for (unsigned k = 0; k < 3; k++) {
		low[k] = vminvq_u8(least.val[k]);
		high[k] = vmaxvq_u8(most.val[k]);
	}
	for (unsigned k = 0; i < n; i++, k = (k + 1) % 3) {
		low[k] = p[i] < low[k] ? p[i] : low[k];
		high[k] = p[i] > high[k] ? p[i] : high[k];
	}
}

/* ------------------------------------------------------------------------
 * Blends
 */

/* Conversions and what narrows clip. */
INLINE int16x4_t blended4(float alpha, int16x4_t d, int16x4_t v)
{
	float32x4_t from = vcvtq_f32_s32(vmovl_s16(d));
	float32x4_t by = vcvtq_f32_s32(vsubl_s16(v, d));

	by = vmulq_f32(by, vdupq_n_f32(alpha));
	return vqmovn_s32(vcvtq_s32_f32(vaddq_f32(from, by)));
}

INLINE uint8x8_t blended8(float alpha, uint16x8_t d, uint16x8_t v)
{
	int16x8_t x = vreinterpretq_s16_u16(d);
	int16x8_t y = vreinterpretq_s16_u16(v);

	return vqmovun_s16(vcombine_s16(
		blended4(alpha, vget_low_s16(x), vget_low_s16(y)),
		blended4(alpha, vget_high_s16(x), vget_high_s16(y))));
}

INLINE uint8x16_t blended(float alpha, uint8x16_t d, uint8x16_t v)
{
	return vcombine_u8(blended8(alpha, vmovl_u8(vget_low_u8(d)),
				    vmovl_u8(vget_low_u8(v))),
			   blended8(alpha, vmovl_u8(vget_high_u8(d)),
				    vmovl_u8(vget_high_u8(v))));
}

static void neon_saturate(float alpha, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 16, p += 48) {
		uint8x16x3_t v = vld3q_u8(p);
		uint8x16_t d = luminance(v);

		for (unsigned k = 0; k < 3; k++)
			v.val[k] = blended(alpha, d, v.val[k]);
		vst3q_u8(p, v);
	}
}

static void neon_blend(float alpha, const uint8_t *d, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 16)
		vst1q_u8(p + i,
			 blended(alpha, vld1q_u8(d + i), vld1q_u8(p + i)));
}

/* The sum of three neighbours in a row. */
INLINE uint16x8_t row_of_3(const uint8_t *p, size_t step)
{
	uint16x8_t sum = vaddl_u8(vld1_u8(p - step), vld1_u8(p + step));

	return vaddw_u8(sum, vld1_u8(p));
}

/* x / 13 is x * 5042 / 2^16 up to 13 * 255 + 6. */
INLINE uint16x8_t mean(uint16x8_t x)
{
	return vcombine_u16(
		vshrn_n_u32(vmull_n_u16(vget_low_u16(x), 5042), 16),
		vshrn_n_u32(vmull_n_u16(vget_high_u16(x), 5042), 16));
}

static void neon_smooth(float alpha, const uint8_t *src, size_t row,
			size_t step, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 8, src += 8) {
		uint16x8_t v = vmovl_u8(vld1_u8(src)), sum;

		sum = vaddq_u16(row_of_3(src - row, step),
				row_of_3(src + row, step));
		sum = vaddq_u16(sum, row_of_3(src, step));
		sum = vaddq_u16(sum, vshlq_n_u16(v, 2));
		sum = vaddq_u16(sum, vdupq_n_u16(6));
		vst1_u8(dst + i, blended8(alpha, mean(sum), v));
	}
}

/* ------------------------------------------------------------------------
 * Sums of pictures
 */

struct floats {
	float32x4_t of[4];
};

INLINE struct floats to_floats(uint8x16_t v)
{
	uint16x8_t low = vmovl_u8(vget_low_u8(v));
	uint16x8_t high = vmovl_u8(vget_high_u8(v));

	return (struct floats){ {
		vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
		vcvtq_f32_u32(vmovl_u16(vget_high_u16(low))),
		vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
		vcvtq_f32_u32(vmovl_u16(vget_high_u16(high))),
	} };
}

static void neon_weigh(float weight, const uint8_t *p, float *sum, size_t n)
{
	for (size_t i = 0; i < n; i += 16, sum += 16) {
		struct floats f = to_floats(vld1q_u8(p + i));

		for (unsigned k = 0; k < 4; k++) {
			float32x4_t v = vmulq_f32(f.of[k], vdupq_n_f32(weight));

			vst1q_f32(sum + 4 * k,
				  vaddq_f32(vld1q_f32(sum + 4 * k), v));
		}
	}
}

static void neon_truncate(const float *sum, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 8, sum += 8) {
		uint32x4_t a = vcvtq_u32_f32(vld1q_f32(sum));
		uint32x4_t b = vcvtq_u32_f32(vld1q_f32(sum + 4));

		vst1_u8(dst + i,
			vqmovn_u16(vcombine_u16(vqmovn_u32(a), vqmovn_u32(b))));
	}
}

/* ------------------------------------------------------------------------
 * Hues, of four pixels; x86/colour_body.h says why they are right
 */

/* The hue times 1/6 of its range and of the greatest value less the least. */
INLINE int32x4_t turned(int32x4_t r, int32x4_t g, int32x4_t b, int32x4_t most,
			int32x4_t range)
{
	int32x4_t hr = vsubq_s32(g, b);
	int32x4_t hg = vmlaq_n_s32(vsubq_s32(b, r), range, 2);
	int32x4_t hb = vmlaq_n_s32(vsubq_s32(r, g), range, 4);

	hr = vbslq_s32(vcltzq_s32(hr), vmlaq_n_s32(hr, range, 6), hr);
	return vbslq_s32(vceqq_s32(r, most), hr,
			 vbslq_s32(vceqq_s32(g, most), hg, hb));
}

INLINE uint8x16x2_t table_of(const uint32_t table[8])
{
	return vld1q_u8_x2((const uint8_t *)(const void *)table);
}

INLINE uint32x4_t hue_of(int32x4_t x, int32x4_t range)
{
	float32x4_t by = vcvtq_f32_s32(vshlq_n_s32(range, 1));
	float32x4_t n = vmulq_f32(vcvtq_f32_s32(x), vdupq_n_f32(85));
	uint32x4_t h = vcvtq_u32_f32(vdivq_f32(n, by));
	uint32x4_t whole = vceqq_f32(n, vmulq_f32(vcvtq_f32_u32(h), by));
	uint8x16_t at = vreinterpretq_u8_u32(vshrq_n_u32(h, 3));
	uint32x4_t bits = vreinterpretq_u32_u8(
		vqtbl2q_u8(table_of(tsi_colour_hues_below), at));
	int32x4_t down =
		vnegq_s32(vreinterpretq_s32_u32(vandq_u32(h, vdupq_n_u32(7))));

	bits = vandq_u32(bits, vdupq_n_u32(255));
	bits = vandq_u32(vshlq_u32(bits, down), vdupq_n_u32(1));
	return vsubq_u32(h, vandq_u32(bits, whole));
}

INLINE uint32x4_t saturation_of(int32x4_t range, int32x4_t most)
{
	float32x4_t q = vdivq_f32(vcvtq_f32_s32(range), vcvtq_f32_s32(most));
	float32x4_t by = vdupq_n_f32(255);
	uint32x4_t s = vcvtq_u32_f32(vmulq_f32(q, by));
	float32x4_t left = vfmaq_f32(vnegq_f32(vcvtq_f32_u32(s)), q, by);

	return vaddq_u32(s, vcltzq_f32(left));
}

INLINE uint32x4_t lowest(uint32x4_t v, uint32x4_t s)
{
	uint32x4_t x = vmulq_u32(v, vsubq_u32(vdupq_n_u32(255), s));

	x = vaddq_u32(x, vdupq_n_u32(128));
	return vshrq_n_u32(vsraq_n_u32(x, x, 8), 8);
}

INLINE uint32x4_t middle(uint32x4_t v, uint32x4_t s, uint32x4_t f)
{
	uint32x4_t x = vmlsq_u32(vdupq_n_u32(65025), s, f);
	float32x4_t n = vmulq_f32(vcvtq_f32_u32(v), vcvtq_f32_u32(x));

	n = vdivq_f32(n, vdupq_n_f32(65025));
	return vcvtq_u32_f32(vaddq_f32(n, vdupq_n_f32(0.5f)));
}

/* Four pixels, of four bytes. */
INLINE uint8x16_t turn_hue(int32x4_t r, int32x4_t g, int32x4_t b, uint8_t by)
{
	static const uint32_t first[4] = { 0, 0x040404, 0x080808, 0x0c0c0c };
	const uint32x4_t byte = vdupq_n_u32(255);
	int32x4_t most = vmaxq_s32(vmaxq_s32(r, g), b);
	int32x4_t range = vsubq_s32(most, vminq_s32(vminq_s32(r, g), b));
	uint32x4_t v = vreinterpretq_u32_s32(most);
	uint32x4_t s = saturation_of(range, most);
	uint32x4_t h = hue_of(turned(r, g, b, most, range), range);
	uint32x4_t sector, f, at, out;

	h = vandq_u32(vaddq_u32(h, vdupq_n_u32(by)), byte);
	h = vmulq_n_u32(h, 6);
	sector = vaddq_u32(vsraq_n_u32(h, h, 8), vdupq_n_u32(1));
	sector = vshrq_n_u32(sector, 8);
	f = vmlsq_n_u32(h, sector, 255);
	/* In even sectors the rest of 255. */
	f = vbslq_u32(vtstq_u32(sector, vdupq_n_u32(1)), f, vsubq_u32(byte, f));
	at = vmlaq_n_u32(vdupq_n_u32(0x03020100), sector, 0x04040404);
	at = vreinterpretq_u32_u8(vqtbl2q_u8(table_of(tsi_colour_places),
					     vreinterpretq_u8_u32(at)));
	at = vaddq_u32(at, vld1q_u32(first));
	out = vorrq_u32(v, vshlq_n_u32(lowest(v, s), 8));
	out = vorrq_u32(out, vshlq_n_u32(middle(v, s, f), 16));
	return vqtbl1q_u8(vreinterpretq_u8_u32(out), vreinterpretq_u8_u32(at));
}

struct quads {
	int32x4_t of[4];
};

INLINE struct quads to_quads(uint8x16_t v)
{
	uint16x8_t low = vmovl_u8(vget_low_u8(v));
	uint16x8_t high = vmovl_u8(vget_high_u8(v));

	return (struct quads){ {
		vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
		vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(low))),
		vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
		vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(high))),
	} };
}

static void neon_hue(uint8_t by, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 16, p += 48) {
		uint8x16x3_t v = vld3q_u8(p);
		struct quads r = to_quads(v.val[0]), g = to_quads(v.val[1]);
		struct quads b = to_quads(v.val[2]);
		uint8x16_t out[4], even[2], odd[2];

		for (unsigned k = 0; k < 4; k++)
			out[k] = turn_hue(r.of[k], g.of[k], b.of[k], by);
		for (unsigned k = 0; k < 2; k++) {
			even[k] = vuzp1q_u8(out[2 * k], out[2 * k + 1]);
			odd[k] = vuzp2q_u8(out[2 * k], out[2 * k + 1]);
		}
		v.val[0] = vuzp1q_u8(even[0], even[1]);
		v.val[1] = vuzp1q_u8(odd[0], odd[1]);
		v.val[2] = vuzp2q_u8(even[0], even[1]);
		vst3q_u8(p, v);
	}
}

void tsi_colour_kernel_init_arm(struct tsi_colour_kernel *k,
				enum tsi_simd level)
{
	if (level < TSI_SIMD_NEON)
		return;
	*k = (struct tsi_colour_kernel){
		.look_up = neon_look_up,
		.look_up3 = neon_look_up3,
		.luminance = neon_luminance,
		.spread = neon_spread,
		.sum = neon_sum,
		.extremes = neon_extremes,
		.saturate = neon_saturate,
		.blend = neon_blend,
		.smooth = neon_smooth,
		.hue = neon_hue,
		.weigh = neon_weigh,
		.truncate = neon_truncate,
	};
}
