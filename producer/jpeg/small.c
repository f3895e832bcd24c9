/* SPDX-License-Identifier: MIT */
/*
 * small.c - blocks to fewer samples, one value after the other: what the
 * vector code has to equal.
 */
#include "jpeg/small.h"

#include <stdbool.h>

#include "jpeg/words.h"

/* Rounded; the sum wraps, and its sign stays. */
static int32_t shifted(uint32_t v, int bits)
{
	return (int32_t)(v + (1u << (bits - 1))) >> bits;
}

static uint8_t sample(int32_t v)
{
	return (uint8_t)((v > 127 ? 127 : v < -128 ? -128 : v) + 128);
}

static int16_t value(const int16_t *coef, const uint16_t *quant, int at)
{
	return (int16_t)((uint32_t)coef[at] * quant[at]);
}

/* ------------------------------------------------------------------------
 * 4 x 4
 */

/* in[4] isn't looked at. */
static void transform4(const int16_t in[8], uint32_t out[4])
{
	uint32_t even = (uint32_t)in[0] << 14;
	uint32_t turn = dot(S_1_847, in[2], -S_0_765, in[6]);
	uint32_t inner = dot(S_1_061, in[1], -S_2_172, in[3]) +
			 dot(S_1_451, in[5], -S_0_211, in[7]);
	uint32_t outer = dot(S_2_562, in[1], S_0_899, in[3]) +
			 dot(-S_0_601, in[5], -S_0_509, in[7]);

	out[0] = even + turn + outer;
	out[1] = even - turn + inner;
	out[2] = even - turn - inner;
	out[3] = even + turn - outer;
}

static bool only_first_row(const int16_t *coef)
{
	for (int i = 8; i < 64; i++)
		if (coef[i] && i / 8 != 4)
			return false;
	return true;
}

static void block4(const int16_t *coef, const uint16_t *quant, uint8_t *out,
		   size_t stride)
{
	bool flat = only_first_row(coef);
	int16_t mid[4][8] = { 0 };
	uint32_t sum[4];

	for (int x = 0; x < 8; x++) {
		int16_t in[8];

		for (int y = 0; y < 8; y++)
			in[y] = value(coef, quant, y * 8 + x);
		transform4(in, sum);
		/* The vector code doesn't saturate if there is but one row. */
		for (int y = 0; y < 4; y++)
			mid[y][x] = flat ? word(in[0] * 4)
					 : saturated(shifted(sum[y], 12));
	}
	for (int y = 0; y < 4; y++) {
		transform4(mid[y], sum);
		for (int x = 0; x < 4; x++)
			out[(size_t)y * stride + (size_t)x] =
				sample(shifted(sum[x], 19));
	}
}

void tsi_jpeg_small_4(const int16_t (*coef)[64], const uint8_t *last,
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

static const int columns2[5] = { 0, 1, 3, 5, 7 };

static uint32_t odd2(const int16_t in[5])
{
	return dot(S_3_624, in[1], -S_1_272, in[2]) +
	       dot(S_0_850, in[3], -S_0_720, in[4]);
}

static void block2(const int16_t *coef, const uint16_t *quant, uint8_t *out,
		   size_t stride)
{
	int32_t first[2] = { 0 }; /* of a row; nothing saturates it */
	int16_t mid[2][5] = { { 0 } };

	for (int i = 0; i < 5; i++) {
		int16_t in[5];
		uint32_t even, odd;
		int32_t a, b;

		for (int y = 0; y < 5; y++)
			in[y] = value(coef, quant,
				      8 * columns2[y] + columns2[i]);
		even = (uint32_t)in[0] << 15;
		odd = odd2(in);
		a = shifted(even + odd, 13);
		b = shifted(even - odd, 13);
		if (i == 0) {
			first[0] = a;
			first[1] = b;
		}
		mid[0][i] = saturated(a);
		mid[1][i] = saturated(b);
	}
	for (size_t y = 0; y < 2; y++) {
		uint32_t even = (uint32_t)first[y] << 15, odd = odd2(mid[y]);

		out[y * stride] = sample(shifted(even + odd, 20));
		out[y * stride + 1] = sample(shifted(even - odd, 20));
	}
}

void tsi_jpeg_small_2(const int16_t (*coef)[64], const uint8_t *last,
		      uint32_t n, const uint16_t *quant, uint8_t *out,
		      size_t stride)
{
	(void)last;
	for (uint32_t i = 0; i < n; i++, out += 2)
		block2(coef[i], quant, out, stride);
}

/* ------------------------------------------------------------------------
 * 1 x 1
 */

void tsi_jpeg_small_1(const int16_t (*coef)[64], const uint8_t *last,
		      uint32_t n, const uint16_t *quant, uint8_t *out,
		      size_t stride)
{
	int32_t q = (int16_t)quant[0];

	(void)last;
	(void)stride;
	for (uint32_t i = 0; i < n; i++) {
		/* What is far beyond black or white wraps at 1,024 levels. */
		int32_t v = ((coef[i][0] * q + 4) >> 3) & 1023;

		out[i] = sample(v < 512 ? v : v - 1024);
	}
}
