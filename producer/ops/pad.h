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

/* One axis: what of the picture is there, and where the new one begins. */
struct tsi_pad_axis {
	enum tsi_pad_mode mode;
	int64_t first;
	int64_t n;
	int64_t out; /* the new one's size */
	int64_t start;
};

/* Fails with TSOCK_EDATA where nothing is left of a picture of this size. */
int tsi_pad_axes(uint32_t width, uint32_t height,
		 const struct tsi_pad_border *b, enum tsi_pad_mode mode,
		 struct tsi_pad_axis *x, struct tsi_pad_axis *y);

/* Which of the picture's pixels fills place i; -1: none of them. */
int64_t tsi_pad_place(const struct tsi_pad_axis *a, int64_t i);

/*
 * A picture is mirrored as often as the border needs, one of one pixel's size
 * repeated (as by numpy.pad).  fill is for TSI_PAD_CONSTANT alone.  Fails with
 * TSOCK_ENOMEM, and with TSOCK_EDATA where nothing is left of the picture.
 */
int tsi_pad(struct tsi_canvas *c, const struct tsi_pad_border *b,
	    enum tsi_pad_mode mode, const uint8_t *fill);

#endif
