/* SPDX-License-Identifier: MIT */
/*
 * colour_kernel.c - the inner loops of operations on colours in plain C, which
 * every other version has to equal.
 *
 * Formulas: Pillow's src/libImaging/Blend.c, Convert.c, Filter.c
 * (ImagingFilter3x3).
 */
#include "ops/colour_kernel.h"

#include <string.h>

#include "ops/colour_parts.h"

static void scalar_look_up(const uint8_t *table, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = table[p[i]];
}

static void scalar_look_up3(const uint8_t (*tables)[256], uint8_t *p, size_t n)
{
	for (; n; n--, p += 3) {
		p[0] = tables[0][p[0]];
		p[1] = tables[1][p[1]];
		p[2] = tables[2][p[2]];
	}
}

static void scalar_luminance(const uint8_t *src, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = (uint8_t)tsi_colour_luminance(src + 3 * i);
}

static void scalar_spread(const uint8_t *src, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memset(dst + 3 * i, src[i], 3);
}

static uint64_t scalar_sum(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

static void scalar_extremes(const uint8_t *p, size_t n, uint8_t low[3],
			    uint8_t high[3])
{
	memset(low, 255, 3);
	memset(high, 0, 3);
	for (size_t i = 0; i < n; i++) {
		if (p[i] < low[i % 3])
			low[i % 3] = p[i];
		if (p[i] > high[i % 3])
			high[i % 3] = p[i];
	}
}

static void scalar_saturate(float alpha, uint8_t *p, size_t n)
{
	for (; n; n--, p += 3) {
		int d = (int)tsi_colour_luminance(p);

		for (unsigned k = 0; k < 3; k++)
			p[k] = tsi_colour_blend(alpha, d, p[k]);
	}
}

static void scalar_blend(float alpha, const uint8_t *d, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = tsi_colour_blend(alpha, d[i], p[i]);
}

static unsigned row_of_3(const uint8_t *p, size_t step)
{
	return *(p - step) + p[0] + p[step];
}

/*
 * Pillow adds up parts of 13 in float32, and truncates the sum and a half: that
 * is never within 1/26 of a whole number, where rounding might matter.
 */
static void scalar_smooth(float alpha, const uint8_t *src, size_t row,
			  size_t step, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = src + i;
		unsigned sum = row_of_3(p - row, step) + row_of_3(p, step) +
			       row_of_3(p + row, step) + 4 * p[0];

		dst[i] = tsi_colour_blend(alpha, (int)((sum + 6) / 13), p[0]);
	}
}

static void scalar_weigh(float weight, const uint8_t *p, float *sum, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] = sum[i] + weight * (float)p[i];
}

static void scalar_truncate(const float *sum, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = sum[i] <= 0     ? 0
			 : sum[i] >= 255 ? 255
					 : (uint8_t)sum[i];
}

static const struct tsi_colour_kernel scalar = {
	.look_up = scalar_look_up,
	.look_up3 = scalar_look_up3,
	.luminance = scalar_luminance,
	.spread = scalar_spread,
	.sum = scalar_sum,
	.extremes = scalar_extremes,
	.saturate = scalar_saturate,
	.blend = scalar_blend,
	.smooth = scalar_smooth,
	.hue = tsi_colour_turn_hue,
	.weigh = scalar_weigh,
	.truncate = scalar_truncate,
};

void tsi_colour_kernel_init(struct tsi_colour_kernel *k, enum tsi_simd level)
{
	*k = scalar;
	TSI_SIMD_INIT(tsi_colour_kernel_init, k, level);
}
