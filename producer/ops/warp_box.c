/* SPDX-License-Identifier: MIT */
/*
 * warp_box.c - a box blur along lines, in plain C.
 */
#include "ops/warp_box.h"

#include "ops/warp_sample.h"

/* Place i of a line of n, or the nearest one that there is. */
static const uint8_t *at(const uint8_t *src, size_t stride, int64_t i,
			 uint32_t n)
{
	return src + (size_t)tsi_warp_clamp(i, n) * stride;
}

/* The sums of the first place: the first value radius + 1 times, and so on. */
static void first_sums(const struct tsi_warp_box *b, const uint8_t *src,
		       size_t stride, uint32_t n, unsigned lanes, uint32_t *sum)
{
	uint32_t last = n - 1, whole = b->radius < last ? b->radius : last;

	for (unsigned j = 0; j < lanes; j++)
		sum[j] = src[j] * (b->radius + 1) +
			 src[last * stride + j] * (b->radius - whole);
	for (uint32_t i = 1; i <= whole; i++)
		for (unsigned j = 0; j < lanes; j++)
			sum[j] += src[i * stride + j];
}

void tsi_warp_box(const struct tsi_warp_box *b, const uint8_t *src,
		  size_t src_stride, uint8_t *dst, size_t dst_stride,
		  uint32_t n, unsigned lanes)
{
	uint32_t sum[TSI_WARP_LANES];
	int64_t radius = b->radius;

	first_sums(b, src, src_stride, n, lanes, sum);
	for (int64_t i = 0; i < n; i++, dst += dst_stride) {
		const uint8_t *before = at(src, src_stride, i - radius - 1, n);
		const uint8_t *first = at(src, src_stride, i - radius, n);
		const uint8_t *behind = at(src, src_stride, i + radius + 1, n);

		for (unsigned j = 0; j < lanes; j++) {
			uint32_t ends = before[j] + behind[j];

			dst[j] = (uint8_t)((sum[j] * b->near + ends * b->far +
					    (1u << 23)) >>
					   24);
			sum[j] += behind[j] - (uint32_t)first[j];
		}
	}
}
