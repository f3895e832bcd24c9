/* SPDX-License-Identifier: MIT */
/*
 * resample.h - Pillow's 8-bit resampler, fed strip by strip.
 *
 * Weights as Pillow computes them: a filter as wide as the reduction asks, in
 * double, normalised, rounded to 22 fractional bits.  Two passes with
 * pixels rounded to u8 between them, in Pillow's order.  Every kernel gives
 * the bits of the scalar one: sums are integers, and nothing saturates before
 * the end.
 *
 * Only the wanted window of the resized image is computed, from only those
 * source pixels that it depends on; the window may be mirrored on the way.
 * One strip of the source is in memory at a time.
 */
#ifndef TSI_RESAMPLE_RESAMPLE_H
#define TSI_RESAMPLE_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/decoder.h"
#include "base/simd.h"
#include "resample/taps.h"

/*
 * Which pass comes first.  To Pillow 12 it was always the horizontal one;
 * Pillow 13 starts with the vertical one where that saves it work.
 */
enum tsi_passes {
	TSI_PASSES_13 = 0,
	TSI_PASSES_12 = 1,
};

struct tsi_resample;

/* Fails with TSOCK_ENOTSUP if this processor lacks simd, TSOCK_ENOMEM. */
int tsi_resample_create(enum tsi_simd simd, struct tsi_resample **out);
void tsi_resample_destroy(struct tsi_resample *r);

/*
 * Start an image: rows of x->count pixels, three bytes each, go to dst,
 * stride bytes apart.  *need is the rectangle of source pixels to push.
 * planes: strips may come in planes, which is faster where they do.
 */
int tsi_resample_begin(struct tsi_resample *r, const struct tsi_axis *x,
		       const struct tsi_axis *y, enum tsi_passes passes,
		       bool planes, uint8_t *dst, size_t stride,
		       struct tsi_rect *need);

/*
 * Must strips come in planes?  Only if they may, and where sizes change if this
 * processor has an instruction for it and the image isn't shrunk too far.
 */
bool tsi_resample_planes(const struct tsi_resample *r);

/* Bytes of memory that tsi_resample_begin() takes for this at most. */
uint64_t tsi_resample_need(const struct tsi_axis *x, const struct tsi_axis *y,
			   enum tsi_passes passes);

/* Give back what is beyond TSI_SCRATCH_KEEP; ends the image. */
void tsi_resample_trim(struct tsi_resample *r);

/*
 * The next rows of the needed rectangle, at most TSI_STRIP_ROWS of them, with
 * readable bytes behind each as decoder.h says.  Output rows are written as
 * soon as their last source row is there; with the last one pushed all are.
 */
void tsi_resample_push(struct tsi_resample *r, const struct tsi_strip *strip);

#endif
