/* SPDX-License-Identifier: MIT */
/*
 * colour_body.h - the loops of colour_kernel.h, for a file that has defined
 * COLOUR, the attributes of each function.
 *
 * They are written so that compilers make vector code of them: choices are
 * arithmetic, and what is made in one loop is used in the next.
 *
 * Formulas: Pillow's src/libImaging/Blend.c, Filter.c (ImagingFilter3x3) and
 * Convert.c (rgb2l, rgb2hsv, hsv2rgb).
 */
#include "ops/colour_kernel.h"

COLOUR static void colour_gray(const uint8_t *restrict rgb, size_t n,
			       uint8_t *restrict gray)
{
	for (size_t i = 0; i < n; i++)
		gray[i] = (uint8_t)((19595u * rgb[3 * i] +
				     38470u * rgb[3 * i + 1] +
				     7471u * rgb[3 * i + 2] + 0x8000u) >>
				    16);
}

COLOUR static void colour_spread(const uint8_t *restrict gray, size_t n,
				 uint8_t *restrict rgb)
{
	for (size_t i = 0; i < n; i++) {
		rgb[3 * i] = gray[i];
		rgb[3 * i + 1] = gray[i];
		rgb[3 * i + 2] = gray[i];
	}
}

/*
 * Clipping changes nothing where Pillow doesn't: between 0 and 1 a blend lies
 * between both values.
 */
COLOUR static inline uint8_t blend_of(float alpha, int d, int v)
{
	float x = (float)d + alpha * (float)(v - d);

	x = x > 0.0f ? x : 0.0f;
	x = x < 255.0f ? x : 255.0f;
	return (uint8_t)(int)x;
}

COLOUR static void colour_constant(uint8_t *restrict p, size_t n, int d,
				   float alpha)
{
	for (size_t i = 0; i < n; i++)
		p[i] = blend_of(alpha, d, p[i]);
}

COLOUR static void colour_blend(uint8_t *restrict p, const uint8_t *restrict d,
				size_t n, float alpha)
{
	for (size_t i = 0; i < n; i++)
		p[i] = blend_of(alpha, d[i], p[i]);
}

/* p is the middle one of three values, `step` apart. */
COLOUR static inline float three(const uint8_t *p, size_t step, float side,
				 float middle)
{
	return (float)p[0] * side + (float)p[step] * middle +
	       (float)p[2 * step] * side;
}

COLOUR static void colour_smooth(const uint8_t *restrict above,
				 const uint8_t *restrict row,
				 const uint8_t *restrict below, size_t step,
				 size_t n, uint8_t *restrict to)
{
	const float one = 1.0f / 13.0f, five = 5.0f / 13.0f;

	for (size_t i = 0; i < n; i++) {
		float sum = 0.5f + three(below + i - step, step, one, one);

		sum += three(row + i - step, step, one, five);
		sum += three(above + i - step, step, one, one);
		sum = sum < 255.0f ? sum : 255.0f;
		to[i] = (uint8_t)(int)sum;
	}
}

COLOUR static void colour_solarize(uint8_t *restrict p, size_t n,
				   unsigned least)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(p[i] < least ? p[i] : 255 - p[i]);
}

COLOUR static void colour_mask(uint8_t *restrict p, size_t n, uint8_t bits)
{
	for (size_t i = 0; i < n; i++)
		p[i] &= bits;
}

COLOUR static void colour_add(uint8_t *restrict p, size_t n, int add)
{
	for (size_t i = 0; i < n; i++) {
		int sum = p[i] + add;

		sum = sum < 0 ? 0 : sum;
		sum = sum > 255 ? 255 : sum;
		p[i] = (uint8_t)(p[i] < 128 ? sum : p[i]);
	}
}

/* ------------------------------------------------------------------------
 * Hue
 */

/* Pixels that go through the loops together. */
#define COLOUR_BLOCK 64

struct hsv_block {
	int32_t h[COLOUR_BLOCK];
	int32_t s[COLOUR_BLOCK];
	int32_t v[COLOUR_BLOCK];
};

/* A hue's numerators by the channel that is the greatest: base + a - b. */
COLOUR static inline float hue_of(int r, int g, int max, float rc, float gc,
				  float bc)
{
	const int red = r == max, green = !red & (g == max);
	const double base = red ? 0.0 : green ? 2.0 : 4.0;
	const float a = red ? bc : green ? rc : gc;
	const float b = red ? gc : green ? bc : rc;

	return (float)(base + (double)a - (double)b);
}

COLOUR static void to_hsv(const uint8_t *restrict rgb, size_t n,
			  struct hsv_block *restrict to)
{
	for (size_t i = 0; i < n; i++) {
		const int r = rgb[3 * i], g = rgb[3 * i + 1],
			  b = rgb[3 * i + 2];
		const int high = r > g ? r : g, low = r < g ? r : g;
		const int max = high > b ? high : b, min = low < b ? low : b;
		const int range = max - min;
		/* Of grey pixels nothing but v is used. */
		const float by = (float)(range ? range : 1);
		const float s = (float)range / (float)(max ? max : 1);
		const float rc = (float)(max - r) / by;
		const float gc = (float)(max - g) / by;
		const float bc = (float)(max - b) / by;
		const float h = hue_of(r, g, max, rc, gc, bc);
		/* fmod(x, 1) of what is from 5/6 to 2. */
		double turn = (double)h / 6.0 + 1.0;

		turn -= turn >= 1.0 ? 1.0 : 0.0;
		to->h[i] = (int)((double)(float)turn * 255.0);
		to->s[i] = (int)((double)s * 255.0);
		to->v[i] = max;
	}
}

/* round() of what is from 0 on: halves go up. */
COLOUR static inline int round_of(double x)
{
	int whole = (int)x;

	return whole + (x - (double)whole >= 0.5);
}

/* The three values beside v that a colour's channels may have. */
struct rgb_block {
	int32_t sector[COLOUR_BLOCK];
	int32_t low[COLOUR_BLOCK];
	int32_t down[COLOUR_BLOCK];
	int32_t up[COLOUR_BLOCK];
};

COLOUR static void find_values(const struct hsv_block *restrict from, int by,
			       struct rgb_block *restrict to)
{
	for (int i = 0; i < COLOUR_BLOCK; i++) {
		const int turned = (from->h[i] + by) & 255;
		const double sixth = (double)turned * 6.0 / 255.0;
		const int whole = (int)sixth;
		const float f = (float)(sixth - (double)whole);
		const float fs = (float)((double)from->s[i] / 255.0);
		const double v = (double)from->v[i], part = (double)fs;

		/* Sector 6 is 0. */
		to->sector[i] = whole == 6 ? 0 : whole;
		to->low[i] = round_of(v * (1.0 - part));
		to->down[i] = round_of(v * (1.0 - (double)(fs * f)));
		to->up[i] = round_of(v * (1.0 - part * (1.0 - (double)f)));
	}
}

COLOUR static void to_rgb(const struct rgb_block *restrict from,
			  const int32_t *restrict value, size_t n,
			  uint8_t *restrict rgb)
{
	/* Red, green and blue, apart from each other at first. */
	uint8_t r[COLOUR_BLOCK], g[COLOUR_BLOCK], b[COLOUR_BLOCK];

	for (int i = 0; i < COLOUR_BLOCK; i++) {
		const int k = from->sector[i], v = value[i];
		const int low = from->low[i], down = from->down[i],
			  up = from->up[i];
		const int r0 = (k == 0) | (k == 5) ? v : low;
		const int r1 = k == 1 ? down : r0;
		const int g0 = (k == 1) | (k == 2) ? v : low;
		const int g1 = k == 0 ? up : g0;
		const int b0 = (k == 3) | (k == 4) ? v : low;
		const int b1 = k == 2 ? up : b0;
		const int r2 = k == 4 ? up : r1;
		const int g2 = k == 3 ? down : g1;
		const int b2 = k == 5 ? down : b1;

		r[i] = (uint8_t)r2;
		g[i] = (uint8_t)g2;
		b[i] = (uint8_t)b2;
	}
	for (size_t i = 0; i < n; i++) {
		rgb[3 * i] = r[i];
		rgb[3 * i + 1] = g[i];
		rgb[3 * i + 2] = b[i];
	}
}

COLOUR static void colour_hue(uint8_t *rgb, size_t n, uint8_t by)
{
	struct hsv_block block = { 0 };
	struct rgb_block values;

	for (size_t i = 0; i < n; i += COLOUR_BLOCK) {
		size_t some = n - i < COLOUR_BLOCK ? n - i : COLOUR_BLOCK;

		to_hsv(rgb + 3 * i, some, &block);
		find_values(&block, by, &values);
		to_rgb(&values, block.v, some, rgb + 3 * i);
	}
}

static const struct tsi_colour_kernel colour_kernel = {
	.gray = colour_gray,
	.spread = colour_spread,
	.constant = colour_constant,
	.blend = colour_blend,
	.smooth = colour_smooth,
	.solarize = colour_solarize,
	.mask = colour_mask,
	.add = colour_add,
	.hue = colour_hue,
};
