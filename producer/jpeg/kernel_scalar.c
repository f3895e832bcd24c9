/* SPDX-License-Identifier: MIT */
/*
 * kernel_scalar.c - one value after the other: what every other kernel has
 * to equal.
 *
 * Words of 16 bits wrap and saturate where those of libjpeg-turbo's vector code
 * do, so that coefficients from damaged files give the same pixels.
 */
#include "jpeg/kernel.h"

#include <stdbool.h>
#include <string.h>

#include "jpeg/cosines.h"
#include "jpeg/small.h"
#include "jpeg/words.h"

/* Eight sums of one column or row, before they are shifted. */
static void transform(const int16_t in[8], uint32_t out[8])
{
	int16_t s = word(in[0] + in[4]), d = word(in[0] - in[4]);
	int16_t z3 = word(in[3] + in[7]), z4 = word(in[1] + in[5]);
	uint32_t even2 = dot(F_0_541, in[2], F_0_541 - F_1_847, in[6]);
	uint32_t even3 = dot(F_0_541 + F_0_765, in[2], F_0_541, in[6]);
	uint32_t even0 = (uint32_t)s << 13, even1 = (uint32_t)d << 13;
	uint32_t odd3 = dot(F_1_175 - F_1_961, z3, F_1_175, z4);
	uint32_t odd4 = dot(F_1_175, z3, F_1_175 - F_0_390, z4);
	uint32_t e[4], o[4];

	e[0] = even0 + even3;
	e[1] = even1 + even2;
	e[2] = even1 - even2;
	e[3] = even0 - even3;
	o[0] = dot(-F_0_899, in[7], F_1_501 - F_0_899, in[1]) + odd4;
	o[1] = dot(-F_2_562, in[5], F_3_072 - F_2_562, in[3]) + odd3;
	o[2] = dot(F_2_053 - F_2_562, in[5], -F_2_562, in[3]) + odd4;
	o[3] = dot(F_0_298 - F_0_899, in[7], -F_0_899, in[1]) + odd3;
	for (int i = 0; i < 4; i++) {
		out[i] = e[i] + o[i];
		out[7 - i] = e[i] - o[i];
	}
}

/* Rounded; the sum wraps, and its sign stays. */
static int32_t shifted(uint32_t v, int bits)
{
	return (int32_t)(v + (1u << (bits - 1))) >> bits;
}

static bool only_first_row(const int16_t *coef)
{
	for (int i = 8; i < 64; i++)
		if (coef[i])
			return false;
	return true;
}

static void columns(const int16_t *coef, const uint16_t *quant, int16_t mid[64])
{
	bool flat = only_first_row(coef);

	for (int x = 0; x < 8; x++) {
		int16_t in[8];
		uint32_t out[8];

		for (int y = 0; y < 8; y++)
			in[y] = (int16_t)((uint32_t)coef[y * 8 + x] *
					  quant[y * 8 + x]);
		transform(in, out);
		/* The vector code doesn't saturate if there is but one row. */
		for (int y = 0; y < 8; y++)
			mid[y * 8 + x] = flat ? word(in[0] * 4)
					      : saturated(shifted(out[y], 11));
	}
}

static void block(const int16_t *coef, const uint16_t *quant, uint8_t *out,
		  size_t stride)
{
	int16_t mid[64];

	columns(coef, quant, mid);
	for (int y = 0; y < 8; y++) {
		uint32_t sum[8];

		transform(mid + y * 8, sum);
		for (int x = 0; x < 8; x++) {
			int32_t v = shifted(sum[x], 18);

			v = v > 127 ? 127 : v < -128 ? -128 : v;
			out[y * stride + (size_t)x] = (uint8_t)(v + 128);
		}
	}
}

static void flat_block(int16_t dc, uint16_t quant, uint8_t *out, size_t stride)
{
	int32_t v = word(word((int32_t)((uint32_t)dc * quant)) * 4);

	v = (v + 16) >> 5;
	v = v > 127 ? 127 : v < -128 ? -128 : v;
	for (int y = 0; y < 8; y++)
		memset(out + (size_t)y * stride, v + 128, 8);
}

static void scalar_idct(const int16_t (*coef)[64], const uint8_t *last,
			uint32_t n, const uint16_t *quant, uint8_t *out,
			size_t stride)
{
	for (uint32_t i = 0; i < n; i++, out += 8) {
		if (last[i])
			block(coef[i], quant, out, stride);
		else
			flat_block(coef[i][0], quant[0], out, stride);
	}
}

static void scalar_twice(const uint8_t *in, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[2 * i] = out[2 * i + 1] = in[i];
}

static void scalar_h2v1(const uint8_t *in, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = (uint8_t)((3 * in[i] + in[i - 1] + 1) >> 2);
		out[2 * i + 1] = (uint8_t)((3 * in[i] + in[i + 1] + 2) >> 2);
	}
}

static void scalar_h2v2(const uint8_t *near, const uint8_t *far, uint8_t *out,
			size_t n)
{
	int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];

	for (size_t i = 0; i < n; i++) {
		int after = 3 * near[i + 1] + far[i + 1];

		out[2 * i] = (uint8_t)((3 * here + before + 8) >> 4);
		out[2 * i + 1] = (uint8_t)((3 * here + after + 7) >> 4);
		before = here;
		here = after;
	}
}

static void scalar_h1v2(const uint8_t *near, const uint8_t *far, unsigned bias,
			uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)((3u * near[i] + far[i] + bias) >> 2);
}

static uint8_t clip(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void scalar_ycc(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
		       uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++, out += 4) {
		int b = cb[i] - 128, r = cr[i] - 128;

		/* 1.402, 0.34414, 0.71414 and 1.772 times 2^16. */
		out[0] = clip(y[i] + ((91881 * r + 32768) >> 16));
		out[1] = clip(y[i] + ((-22554 * b - 46802 * r + 32768) >> 16));
		out[2] = clip(y[i] + ((116130 * b + 32768) >> 16));
		out[3] = 255;
	}
}

static void scalar_rgb(const uint8_t *r, const uint8_t *g, const uint8_t *b,
		       uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++, out += 4) {
		out[0] = r[i];
		out[1] = g[i];
		out[2] = b[i];
		out[3] = 255;
	}
}

const struct tsi_jpeg_kernel tsi_jpeg_kernel_scalar = {
	.idct = scalar_idct,
	.idct4 = tsi_jpeg_small_4,
	.idct2 = tsi_jpeg_small_2,
	.idct1 = tsi_jpeg_small_1,
	.twice = scalar_twice,
	.h2v1 = scalar_h2v1,
	.h2v2 = scalar_h2v2,
	.h1v2 = scalar_h1v2,
	.ycc = scalar_ycc,
	.rgb = scalar_rgb,
};
