/* SPDX-License-Identifier: MIT */
/*
 * warp_nearest.h - warp.h's affine map for NEAREST.
 */
#ifndef TSI_OPS_WARP_NEAREST_H
#define TSI_OPS_WARP_NEAREST_H

#include "ops/canvas.h"

/*
 * The pixels of the canvas's picture go to a picture of this size at dst;
 * those without a place in it stay.  Fails with TSOCK_ENOMEM.
 */
int tsi_warp_nearest(struct tsi_canvas *c, const double m[6], uint32_t width,
		     uint32_t height, uint8_t *dst);

#endif
