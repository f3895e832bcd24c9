/* SPDX-License-Identifier: MIT */
/*
 * warp.h - a picture moved, turned, sheared or seen from elsewhere.
 *
 * The bytes are those of Pillow 13 (src/libImaging/Geometry.c,
 * ImagingTransform).  A map says for each pixel of the new picture, by its
 * centre (X + .5, Y + .5), which place of the old one it shows.  Where that
 * lies outside, the pixel has the colour `fill`: as in Pillow, nothing is
 * blended at the edge.
 *
 *   NEAREST    the pixel that the place lies in.  Pillow computes the places of
 *              an affine map in three ways, chosen by the map: see
 *              warp_nearest.c
 *   BILINEAR   between two by two pixels' centres, those beyond the edge being
 *              equal to those at it; truncated
 *   BICUBIC    the cubic with a = -1 (a resize has -.5) through four by four,
 *              truncated
 *
 * There are no other filters in Pillow.  fill has as many values as the picture
 * has channels.  All fail with TSOCK_ENOMEM, and the picture stays as it was
 * then.
 */
#ifndef TSI_OPS_WARP_H
#define TSI_OPS_WARP_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/canvas.h"
#include "pixel/filter.h"

/*
 * Image.transform(size, AFFINE, m, filter): x = m[0] * X + m[1] * Y + m[2],
 * y = m[3] * X + m[4] * Y + m[5].
 */
int tsi_warp_affine(struct tsi_canvas *c, uint32_t width, uint32_t height,
		    const double m[6], enum tsi_filter filter,
		    const uint8_t *fill);

/*
 * Image.transform(size, PERSPECTIVE, m, filter): both of affine's divided by
 * m[6] * X + m[7] * Y + 1.
 */
int tsi_warp_perspective(struct tsi_canvas *c, const double m[8],
			 enum tsi_filter filter, const uint8_t *fill);

/*
 * Image.rotate(degrees, filter, expand, centre), counter-clockwise, which is
 * torchvision's F.rotate too: without a centre (NULL) multiples of 90 degrees
 * are exact where the new picture has the size for it; with one, and between
 * them, an affine map of sines and cosines rounded to 15 decimals.  expand: the
 * picture grows to show all of the old one.
 */
int tsi_warp_rotate(struct tsi_canvas *c, double degrees,
		    enum tsi_filter filter, bool expand, const double *centre,
		    const uint8_t *fill);

#endif
