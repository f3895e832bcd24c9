/* SPDX-License-Identifier: MIT */
/*
 * pad.h - a border round a picture, as by torchvision's F.pad of one of
 * Pillow's.
 */
#ifndef TSI_OPS_PAD_H
#define TSI_OPS_PAD_H

#include <stdint.h>

#include "ops/canvas.h"

enum tsi_pad_mode {
	TSI_PAD_CONSTANT,  /* of one colour */
	TSI_PAD_EDGE,      /* the pixels at the edge, again and again */
	TSI_PAD_REFLECT,   /* mirrored at the pixels at the edge */
	TSI_PAD_SYMMETRIC, /* mirrored at the edge itself */
};

/* Negative numbers cut pixels off, before the rest is mirrored. */
struct tsi_pad_border {
	int32_t left;
	int32_t top;
	int32_t right;
	int32_t bottom;
};

/*
 * A picture is mirrored as often as the border needs, one of one pixel's size
 * repeated (as by numpy.pad).  fill is for TSI_PAD_CONSTANT alone.  Fails with
 * TSOCK_ENOMEM, and with TSOCK_EDATA where nothing is left of the picture.
 */
int tsi_pad(struct tsi_canvas *c, const struct tsi_pad_border *b,
	    enum tsi_pad_mode mode, const uint8_t *fill);

#endif
