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
 *                  tsi_mix_with_original()
 *   timm, blended  each version blended in by its alpha
 *
 * The mix and the original are kept in the canvas, whose size must not change
 * meanwhile.
 */
#ifndef TSI_OPS_MIX_H
#define TSI_OPS_MIX_H

#include "ops/canvas.h"

/* Bytes of memory that a mix of so many pixels takes, at most. */
uint64_t tsi_mix_need(uint64_t pixels);

/* The canvas's picture is the original.  Fails with TSOCK_ENOMEM. */
int tsi_mix_begin(struct tsi_canvas *c);

/* The canvas gets the original. */
void tsi_mix_original(struct tsi_canvas *c);

/* The canvas's picture is added, times a weight, in float32. */
void tsi_mix_add(struct tsi_canvas *c, float weight);

/* The canvas gets the sum, clipped and truncated. */
void tsi_mix_sum(struct tsi_canvas *c);

/*
 * Image.blend() of the mix, at first the original, and the canvas's picture,
 * which the canvas gets.
 */
void tsi_mix_blend(struct tsi_canvas *c, float alpha);

/* The canvas gets Image.blend() of the original and its picture. */
void tsi_mix_with_original(struct tsi_canvas *c, float alpha);

#endif
