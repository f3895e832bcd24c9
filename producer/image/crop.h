/* SPDX-License-Identifier: MIT */
/*
 * crop.h - where to crop, and whether to mirror: pure arithmetic.
 *
 * torchvision's RandomResizedCrop(scale=(0.08, 1), ratio=(3/4, 4/3)),
 * RandomHorizontalFlip(0.5), Resize and CenterCrop, with the same float32 and
 * double steps.  Only the random numbers are our own (draw.h): an attempt at a
 * crop uses one block, word 0 for the area, word 1 for the aspect ratio, word 2
 * for the top, word 3 for the left; the flip uses word 0 of its block.
 */
#ifndef TSI_IMAGE_CROP_H
#define TSI_IMAGE_CROP_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/image.h"

/* Numbers of draws (draw.h). */
#define TSI_OP_CROP 0xa001
#define TSI_OP_FLIP 0xa002

/* The box of one sample of the train preset, in a width x height image. */
void tsi_crop_train(uint64_t seed, uint32_t epoch, uint64_t index,
		    uint32_t width, uint32_t height, struct tsi_box *box);

/*
 * One attempt: the crop's size for two random words.  False if it does not
 * fit into the image.
 */
bool tsi_crop_try(uint32_t width, uint32_t height, uint32_t area_word,
		  uint32_t ratio_word, struct tsi_box *box);

/* The centre crop for when ten attempts have failed. */
void tsi_crop_fallback(uint32_t width, uint32_t height, struct tsi_box *box);

/*
 * Size of the image after Resize(resize), and the box of CenterCrop(size) in
 * it.  Fails with TSOCK_EDATA if the long edge would not fit into 31 bits.
 */
int tsi_crop_eval(uint32_t width, uint32_t height, uint32_t resize,
		  uint32_t size, uint32_t *new_width, uint32_t *new_height,
		  struct tsi_box *box);

#endif
