/* SPDX-License-Identifier: MIT */
/*
 * mix.h - several versions of a picture mixed to one, as in AugMix.
 *
 * After tsi_mix_begin() each version is made of the canvas's picture, which
 * tsi_mix_original() brings back, and goes into the mix by tsi_mix_add(), or
 * each by tsi_mix_blend().  The bytes are those of torchvision and timm:
 *
 *   torchvision    the original added by the first weight, and each version by
 *                  its own
 *   timm           each version added by its weight; then
 *                  tsi_colour_blend_with() the original
 *   timm, blended  each version blended in by its alpha
 */
#ifndef TSI_OPS_MIX_H
#define TSI_OPS_MIX_H

#include <stddef.h>

#include "ops/canvas.h"

/* Begins as zeros. */
struct tsi_mix {
	size_t bytes; /* of a picture */
	bool begun;   /* `mixed` has something */
	struct tsi_scratch original;
	struct tsi_scratch mixed; /* float sums, or bytes */
};

/* The canvas's picture is the original.  Fails with TSOCK_ENOMEM. */
int tsi_mix_begin(struct tsi_mix *m, const struct tsi_canvas *c);

/* The canvas, whose size is still the same, gets the original. */
void tsi_mix_original(const struct tsi_mix *m, struct tsi_canvas *c);

/* The canvas's picture is added, times a weight, in float32. */
void tsi_mix_add(struct tsi_mix *m, const struct tsi_canvas *c, float weight);

/* The canvas gets the sum, clipped and truncated. */
void tsi_mix_sum(const struct tsi_mix *m, struct tsi_canvas *c);

/*
 * Image.blend() of the mix, at first the original, and the canvas's picture,
 * which the canvas gets.
 */
void tsi_mix_blend(struct tsi_mix *m, struct tsi_canvas *c, float alpha);

/* Give back what is beyond TSI_SCRATCH_KEEP. */
void tsi_mix_trim(struct tsi_mix *m);

void tsi_mix_fini(struct tsi_mix *m);

#endif
