/* SPDX-License-Identifier: MIT */
/*
 * resize.h - a picture in memory resized, as by Pillow's Image.resize.
 *
 * For what comes behind operations that change pixels; what comes first in a
 * recipe is resized while the image is decoded.
 */
#ifndef TSI_OPS_RESIZE_H
#define TSI_OPS_RESIZE_H

#include <stdint.h>

#include "ops/canvas.h"
#include "resample/resample.h"

/*
 * The part of the picture (NULL: all of it) by these axes, of which x->in and
 * y->in are the part's size; the new picture is x->count by y->count.  Pixels
 * outside of the part have no influence.  Fails with TSOCK_ENOMEM.
 */
int tsi_resize(struct tsi_canvas *c, struct tsi_resample *r,
	       enum tsi_passes passes, const struct tsi_rect *part,
	       const struct tsi_axis *x, const struct tsi_axis *y);

/* All of the picture, by the filter NEAREST.  Fails with TSOCK_ENOMEM. */
int tsi_resize_nearest(struct tsi_canvas *c, uint32_t width, uint32_t height);

#endif
