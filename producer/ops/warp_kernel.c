/* SPDX-License-Identifier: MIT */
/*
 * warp_kernel.c - pixel after pixel in plain C, which every other version has
 * to equal; and the versions that a level of vector instructions has.
 */
#include "ops/warp_kernel.h"

#include <string.h>

#include "ops/warp_box.h"
#include "ops/warp_sample.h"

static void scalar_affine(const double *m, uint32_t column, uint32_t row,
			  uint32_t n, double *x, double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i++) {
		double u = column + i + 0.5;

		x[i] = m[0] * u + m[1] * v + m[2];
		y[i] = m[3] * u + m[4] * v + m[5];
	}
}

static void scalar_perspective(const double *m, uint32_t column, uint32_t row,
			       uint32_t n, double *x, double *y)
{
	double v = row + 0.5;

	for (uint32_t i = 0; i < n; i++) {
		double u = column + i + 0.5;
		double q = m[6] * u + m[7] * v + 1;

		x[i] = (m[0] * u + m[1] * v + m[2]) / q;
		y[i] = (m[3] * u + m[4] * v + m[5]) / q;
	}
}

/* Four bytes at once, of which the next pixel writes one again. */
static void fixed3(const struct tsi_warp_source *s, int64_t x, int64_t y,
		   int64_t dx, int64_t dy, uint32_t n, uint8_t *dst)
{
	size_t stride = (size_t)s->width * 3;

	for (; n > 1; n--, x += dx, y += dy, dst += 3)
		memcpy(dst,
		       s->pixels + (size_t)(y >> 16) * stride +
			       (size_t)(x >> 16) * 3,
		       4);
	if (n)
		memcpy(dst,
		       s->pixels + (size_t)(y >> 16) * stride +
			       (size_t)(x >> 16) * 3,
		       3);
}

static void scalar_fixed(const struct tsi_warp_source *s, int64_t x, int64_t y,
			 int64_t dx, int64_t dy, uint32_t n, uint8_t *dst)
{
	if (s->channels == 3) {
		fixed3(s, x, y, dx, dy, n, dst);
		return;
	}
	for (; n; n--, x += dx, y += dy)
		*dst++ = s->pixels[(size_t)(y >> 16) * s->width +
				   (size_t)(x >> 16)];
}

static void scalar_bilinear(const struct tsi_warp_source *s, const double *x,
			    const double *y, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++, dst += s->channels)
		if (tsi_warp_inside(s, x[i], y[i]))
			tsi_warp_bilinear(s, x[i], y[i], dst);
}

static void scalar_bicubic(const struct tsi_warp_source *s, const double *x,
			   const double *y, uint32_t n, uint8_t *dst)
{
	for (uint32_t i = 0; i < n; i++, dst += s->channels)
		if (tsi_warp_inside(s, x[i], y[i]))
			tsi_warp_bicubic(s, x[i], y[i], dst);
}

/* ------------------------------------------------------------------------
 * Blurs
 */

static void scalar_transpose(const uint8_t *src, size_t src_stride,
			     uint32_t width, uint32_t height, uint8_t *dst,
			     size_t dst_stride)
{
	for (uint32_t x = 0; x < width; x++)
		for (uint32_t y = 0; y < height; y++)
			dst[x * dst_stride + y] = src[y * src_stride + x];
}

static void scalar_floats(const uint8_t *src, size_t n, float *dst)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = src[i];
}

static void scalar_across(const float *src, size_t step, const float *tap,
			  uint32_t radius, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float sum = tap[0] * src[i];

		for (size_t j = 1; j <= radius; j++)
			sum += tap[j] *
			       (*(src + i - j * step) + src[i + j * step]);
		dst[i] = sum;
	}
}

static void scalar_down(const float *const *row, const float *tap,
			uint32_t radius, uint8_t *dst, size_t n)
{
	int reach = (int)radius;

	for (size_t i = 0; i < n; i++) {
		float sum = tap[0] * row[0][i];

		for (int j = 1; j <= reach; j++)
			sum += tap[j] * (row[-j][i] + row[j][i]);
		dst[i] = tsi_warp_round(sum);
	}
}

static void scalar_widen(const uint8_t *src, size_t n, uint8_t *dst)
{
	for (; n; n--, src += 3, dst += 4) {
		dst[0] = src[0];
		dst[1] = src[1];
		dst[2] = src[2];
	}
}

static const struct tsi_warp_kernel scalar = {
	.affine = scalar_affine,
	.perspective = scalar_perspective,
	.fixed = scalar_fixed,
	.bilinear = scalar_bilinear,
	.bicubic = scalar_bicubic,
	.box = tsi_warp_box,
	.transpose = scalar_transpose,
	.floats = scalar_floats,
	.across = scalar_across,
	.down = scalar_down,
	.widen = scalar_widen,
};

void tsi_warp_kernel_init(struct tsi_warp_kernel *k, enum tsi_simd level)
{
	*k = scalar;
	TSI_SIMD_INIT(tsi_warp_kernel_init, k, level);
}
