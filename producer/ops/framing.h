/* SPDX-License-Identifier: MIT */
/*
 * framing.h - crops, a resize, padding and flips, one after the other, as one
 * step that a resampler can do while an image is decoded.
 *
 * A framing is a part of a source picture, resized perhaps, and a window of
 * it, which may reach beyond the part's edges and is mirrored perhaps:
 *
 *   source -> part -> resized to to_width x to_height -> window -> mirrored
 *
 * Operations are added in the order in which they are done.  What can't be said
 * in this form is refused, and is then done on the finished picture.
 */
#ifndef TSI_OPS_FRAMING_H
#define TSI_OPS_FRAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/canvas.h"
#include "pixel/decoder.h"
#include "pixel/filter.h"
#include "pixel/image.h"
#include "resample/taps.h"

struct tsi_framing {
	/* The size of the result so far, which is the window's. */
	uint32_t width;
	uint32_t height;

	struct tsi_rect part; /* of the source */
	bool resized;
	uint32_t to_width; /* of the part, resized or not */
	uint32_t to_height;
	enum tsi_filter filter;
	int32_t left; /* of the window in there */
	int32_t top;
	bool mirror_x; /* left and right change sides */
	bool mirror_y;
	bool padded; /* the window has pixels of this colour */
	uint8_t fill[3];
};

/* The whole picture as it is. */
struct tsi_framing tsi_framing_of(uint32_t width, uint32_t height);

/* False: it can't be said on top of what g has, which stays as it is. */
bool tsi_framing_resize(struct tsi_framing *g, uint32_t width, uint32_t height,
			enum tsi_filter filter);

/*
 * The window of this size whose corner is at left, top of the picture; pixels
 * that lie outside of it have the colour fill.
 */
bool tsi_framing_crop(struct tsi_framing *g, int64_t left, int64_t top,
		      uint32_t width, uint32_t height, const uint8_t *fill);
bool tsi_framing_flip(struct tsi_framing *g, bool x, bool y);

/*
 * For a resampler: the two axes, and where in the window what they compute
 * begins.  Rows are in the part's order, also of a window that is mirrored from
 * top to bottom.
 */
struct tsi_framing_axes {
	struct tsi_axis x;
	struct tsi_axis y;
	uint32_t to_x;
	uint32_t to_y;
};

/* False: nothing of the part is in the window, which has one colour. */
bool tsi_framing_axes(const struct tsi_framing *g,
		      struct tsi_framing_axes *out);

/*
 * For a decoder that can shrink: how many times both edges are to shrink at
 * least, 1, 2, 4 or 8.  The axes become those of the image at that part of its
 * size, and so do left and top, where in it they begin.
 */
unsigned tsi_framing_shrink(struct tsi_framing_axes *a, uint32_t *left,
			    uint32_t *top);

/* What was cut out, as struct tsi_box has it. */
void tsi_framing_box(const struct tsi_framing *g, struct tsi_box *box);

/* Do it all to the canvas's picture.  Fails with TSOCK_ENOMEM. */
int tsi_framing_apply(const struct tsi_framing *g, struct tsi_canvas *c);

/*
 * Make the picture of c from another canvas's picture, which isn't changed.
 * Fails with TSOCK_ENOMEM.
 */
int tsi_framing_apply_from(const struct tsi_framing *g,
			   const struct tsi_canvas *from, struct tsi_canvas *c);

#endif
