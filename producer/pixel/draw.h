/* SPDX-License-Identifier: MIT */
/*
 * draw.h - the random numbers of augmentations.
 *
 * A draw is a function of (seed, epoch, index, operation, attempt) and of
 * nothing else: a sample is the same whatever the thread, the batch size or the
 * order of decoding, and whatever other operations draw.
 *
 *   philox key      seed
 *   counter word 0  index, low half
 *   counter word 1  index, high half
 *   counter word 2  epoch
 *   counter word 3  operation << 16 | attempt
 *
 * An operation's number is its place in the recipe, counted from 0xa001 on
 * (transforms/words.h): what one operation draws doesn't depend on the others.
 */
#ifndef TSI_PIXEL_DRAW_H
#define TSI_PIXEL_DRAW_H

#include <stdint.h>

#include "base/philox.h"

/* Four words for one attempt (below 2^16) of operation op on one sample. */
struct tsi_philox_ctr tsi_draw(uint64_t seed, uint32_t epoch, uint64_t index,
			       uint16_t op, uint32_t attempt);

/*
 * torch's uniform_(low, high) on float32 from one word: (word & 0xffffff) *
 * 2^-24, then one fused multiply-add.  An integer below n is word % n, which is
 * off from uniform by less than n / 2^32.
 */
float tsi_draw_uniform(uint32_t word, float low, float high);

#endif
