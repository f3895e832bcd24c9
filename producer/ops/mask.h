/* SPDX-License-Identifier: MIT */
/*
 * mask.h - what the geometry of a recipe makes of a mask: a picture whose bytes
 * are numbers of classes, so that no two of them are ever mixed.
 *
 * Resized, cropped, mirrored and padded masks are worked out one axis at a
 * time: each column and each row of the result is one of the source, or lies
 * outside of it.  The pixels are fetched once, at the end.
 *
 * The places are those of torchvision.transforms.v2 for tv_tensors.Mask, that
 * is of torch's interpolate(mode="nearest"), and not Pillow's NEAREST: column i
 * of n is the source's floor(i * (float)source / n), without Pillow's half
 * pixel.
 */
#ifndef TSI_OPS_MASK_H
#define TSI_OPS_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "ops/framing.h"
#include "ops/pad.h"
#include "pixel/scratch.h"

/* Most steps that may surround a mask with a number. */
#define TSI_MASK_FILLS 128

/* Used by one thread.  Begins as zeros. */
struct tsi_mask {
	const uint8_t *from; /* the source, and bytes of its rows */
	size_t stride;
	uint32_t width; /* of the result so far */
	uint32_t height;
	/*
	 * For each column and each row its place in the source, or -1 - k: it
	 * lies outside, and step k's number is there.
	 */
	struct tsi_scratch x;
	struct tsi_scratch y;
	struct tsi_scratch other; /* while a step is worked out */
	uint8_t fill[TSI_MASK_FILLS];
	unsigned fills;
	/* The picture before and after steps that aren't separable. */
	struct tsi_scratch picture[2];
};

/*
 * A mask of this size as it is, which must outlive what is done to it.  Fails
 * with TSOCK_ENOMEM.
 */
int tsi_mask_begin(struct tsi_mask *m, const uint8_t *from, size_t stride,
		   uint32_t width, uint32_t height);

/*
 * What the framing of one operation does to a picture of this size; fill is
 * what lies outside.  Fails with TSOCK_ENOMEM.
 */
int tsi_mask_frame(struct tsi_mask *m, const struct tsi_framing *g,
		   uint8_t fill);

/* Likewise, of a border.  Fails as tsi_pad() does. */
int tsi_mask_pad(struct tsi_mask *m, const struct tsi_pad_border *b,
		 enum tsi_pad_mode mode, uint8_t fill);

/* Half a turn.  Fails with TSOCK_ENOMEM. */
int tsi_mask_turn(struct tsi_mask *m);

/* The result, width * height bytes. */
void tsi_mask_fetch(const struct tsi_mask *m, uint8_t *to);

/*
 * The result so far becomes the source; *to is memory for as many bytes, for a
 * step that makes a new one of it.  Fails with TSOCK_ENOMEM.
 */
int tsi_mask_settle(struct tsi_mask *m, uint8_t **to);

/* Bytes of memory that steps on a mask of this size take, about. */
uint64_t tsi_mask_need(uint32_t width, uint32_t height);

void tsi_mask_trim(struct tsi_mask *m);
void tsi_mask_fini(struct tsi_mask *m);

#endif
