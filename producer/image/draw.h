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
 * To add an augmentation: give it a number below, and a file that draws with
 * that number alone.  So no number that another operation draws changes, and no
 * sample of a preset without it.  What chooses pixels of the source image (a
 * box, a flip) belongs into crop.c, and through struct plan in load.c into the
 * resampler's axes; what changes finished pixels is called at the end of load()
 * in load.c, on dst.
 */
#ifndef TSI_IMAGE_DRAW_H
#define TSI_IMAGE_DRAW_H

#include <stdint.h>

#include "base/philox.h"

/*
 * Operations: their own half of counter word 3, apart from all other users of
 * philox.  A number is never used again for another operation.
 */
enum tsi_draw_op {
	TSI_OP_CROP = 0xa001,
	TSI_OP_FLIP = 0xa002,
};

/* Four words for one attempt of an operation on one sample. */
struct tsi_philox_ctr tsi_draw(uint64_t seed, uint32_t epoch, uint64_t index,
			       enum tsi_draw_op op, uint32_t attempt);

/*
 * torch's uniform_(low, high) on float32 from one word: (word & 0xffffff) *
 * 2^-24, then one fused multiply-add.  An integer below n is word % n, which is
 * off from uniform by less than n / 2^32.
 */
float tsi_draw_uniform(uint32_t word, float low, float high);

#endif
