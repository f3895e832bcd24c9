/* SPDX-License-Identifier: MIT */
/*
 * mask_warp.h - a mask moved, turned, sheared or seen from elsewhere.
 *
 * As torchvision's v2 does it to a tv_tensors.Mask: by grid_sample() with
 * mode="nearest", in single precision and in the order of its sums.  That isn't
 * how Pillow finds the nearest pixel, which the image's operation does: along
 * edges the two may be a pixel apart, as they are in torchvision.
 */
#ifndef TSI_OPS_MASK_WARP_H
#define TSI_OPS_MASK_WARP_H

#include <stdint.h>

#include "ops/mask.h"
#include "ops/warp_map.h"

/*
 * v2's affine() with these arguments; centre is NULL for the middle, and that of
 * `a` isn't looked at.  fill is what lies outside.  Fails with TSOCK_ENOMEM, as
 * the others do.
 */
int tsi_mask_affine(struct tsi_mask *m, const struct tsi_warp_affinity *a,
		    const double *centre, uint8_t fill);

/* v2's rotate(), without expand, counter-clockwise. */
int tsi_mask_rotate(struct tsi_mask *m, double degrees, const double *centre,
		    uint8_t fill);

/* v2's perspective() with these coefficients, see tsi_warp_map_perspective(). */
int tsi_mask_perspective(struct tsi_mask *m, const double map[8], uint8_t fill);

#endif
