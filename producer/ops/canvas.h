/* SPDX-License-Identifier: MIT */
/*
 * canvas.h - the picture that the operations of a recipe change one after the
 * other.
 *
 * An operation changes the pixels where they are, or writes a new picture, of
 * another size perhaps, into the canvas's other buffer and then turns the
 * canvas round: the other buffer's content is the picture from then on.
 */
#ifndef TSI_OPS_CANVAS_H
#define TSI_OPS_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"
#include "ops/colour_kernel.h"
#include "ops/warp_kernel.h"
#include "pixel/scratch.h"

struct tsi_resample;

/* Bytes that may be read and written behind a picture's last one. */
#define TSI_CANVAS_SLACK 64

/*
 * Used by one thread.  Begins with tsi_canvas_init().  pixels are width * height * channels
 * bytes, row by row without gaps, the channels of a pixel side by side: red,
 * green and blue, or grey alone.  pixels is aligned to 64.
 */
struct tsi_canvas {
	uint8_t *pixels;
	uint32_t width;
	uint32_t height;
	unsigned channels; /* 3 or 1 */
	struct tsi_scratch buffer[2];
	struct tsi_scratch room;     /* an operation's own, while it works */
	struct tsi_scratch original; /* of a mix (mix.h) */
	struct tsi_scratch mixed;    /* its float sums, or bytes */
	bool mixing;                 /* `mixed` has something */
	struct tsi_warp_kernel warp;
	struct tsi_colour_kernel colour;
	struct tsi_resample *resample; /* for operations that resize */
	bool pillow12; /* they do in the order of Pillow 12's passes */
};

/* Operations use the vector instructions of this level. */
void tsi_canvas_init(struct tsi_canvas *c, enum tsi_simd level);

/*
 * The canvas gets a picture of this size, whose pixels are still to be
 * written.  Fails with TSOCK_ENOMEM.
 */
int tsi_canvas_begin(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels);

/*
 * Memory for a picture of this size in the buffer that the picture isn't in,
 * until the canvas is turned.  The picture stays as it is.  Fails with
 * TSOCK_ENOMEM.
 */
int tsi_canvas_other(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels, uint8_t **out);

/* What was written into the other buffer is the picture from now on. */
void tsi_canvas_turn(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels);

/* Bytes of a row. */
static inline size_t tsi_canvas_row(const struct tsi_canvas *c)
{
	return (size_t)c->width * c->channels;
}

/* Bytes of the picture. */
static inline size_t tsi_canvas_bytes(const struct tsi_canvas *c)
{
	return tsi_canvas_row(c) * c->height;
}

/* Give back what is beyond TSI_SCRATCH_KEEP; the picture is lost. */
void tsi_canvas_trim(struct tsi_canvas *c);

void tsi_canvas_fini(struct tsi_canvas *c);

#endif
