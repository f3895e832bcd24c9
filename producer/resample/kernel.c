/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - both passes, one value after the other, which every other version
 * has to equal; and those that a level of vector instructions has.
 */
#include "resample/kernel.h"

/* The sum is one of a signed number; only its steps may overflow. */
static uint8_t clip(uint32_t sum)
{
	int32_t v = (int32_t)sum >> TSI_WEIGHT_BITS;

	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

/* It uses the weights as they are. */
static void scalar_pack(struct tsi_taps *t)
{
	(void)t;
}

static void scalar_across(const struct tsi_taps *t, const uint8_t *src,
			  size_t src_stride, uint32_t rows, uint8_t *dst,
			  size_t dst_stride)
{
	for (; rows; rows--, src += src_stride, dst += dst_stride) {
		for (uint32_t i = 0; i < t->n * 3; i++) {
			const uint8_t *p = src + t->first[i / 3] * 4 + i % 3;
			const int32_t *w = t->weight + (size_t)(i / 3) * t->pad;
			uint32_t sum = 1u << (TSI_WEIGHT_BITS - 1);

			for (uint32_t k = 0; k < t->count[i / 3]; k++)
				sum += p[4 * k] * (uint32_t)w[k];
			dst[i] = clip(sum);
		}
	}
}

static void scalar_down(const struct tsi_taps *t, uint32_t i,
			const uint8_t *src, size_t stride, uint8_t *dst,
			size_t bytes)
{
	const int32_t *w = t->weight + (size_t)i * t->pad;

	for (size_t b = 0; b < bytes; b++) {
		uint32_t sum = 1u << (TSI_WEIGHT_BITS - 1);

		for (uint32_t k = 0; k < t->count[i]; k++)
			sum += src[k * stride + b] * (uint32_t)w[k];
		dst[b] = clip(sum);
	}
}

static const struct tsi_resample_kernel scalar = {
	.pack = scalar_pack,
	.across = scalar_across,
	.down = scalar_down,
};

void tsi_resample_kernel_init(struct tsi_resample_kernel *k,
			      enum tsi_simd level)
{
	*k = scalar;
	TSI_SIMD_INIT(tsi_resample_kernel_init, k, level);
}
