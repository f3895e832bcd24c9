/* SPDX-License-Identifier: MIT */
/*
 * warp_box.h - a box blur along lines, in plain C.
 */
#ifndef TSI_OPS_WARP_BOX_H
#define TSI_OPS_WARP_BOX_H

#include "ops/warp_kernel.h"

/*
 * The slot `box` of struct tsi_warp_kernel, for any radius: also what other
 * versions of it do with boxes that are too wide for them.
 */
void tsi_warp_box(const struct tsi_warp_box *b, const uint8_t *src,
		  size_t src_stride, uint8_t *dst, size_t dst_stride,
		  uint32_t n, unsigned lanes);

#endif
