/* SPDX-License-Identifier: MIT */
/*
 * resized_crop.h - the box of RandomResizedCrop: pure arithmetic.
 */
#ifndef TSI_TRANSFORMS_RESIZED_CROP_H
#define TSI_TRANSFORMS_RESIZED_CROP_H

#include "transforms/op.h"

/* scale: of the area; ratio: of width to height; each from the first to the
 * second. */
struct tsi_crop_range {
	double scale[2];
	double ratio[2];
};

struct tsi_crop_box {
	uint32_t top;
	uint32_t left;
	uint32_t height;
	uint32_t width;
};

/*
 * torchvision's RandomResizedCrop.get_params() with its float32 and double
 * steps.  Each of ten attempts uses a block of words: the first for the area,
 * then for the ratio, the top and the left.
 */
void tsi_crop_draw(const struct tsi_crop_range *range, struct tsi_words *w,
		   uint32_t width, uint32_t height, struct tsi_crop_box *box);

/*
 * One attempt: the crop's size for two random words.  False if it doesn't fit
 * into the picture.
 */
bool tsi_crop_try(const struct tsi_crop_range *range, uint32_t width,
		  uint32_t height, uint32_t area_word, uint32_t ratio_word,
		  struct tsi_crop_box *box);

/* The centre crop for when ten attempts have failed. */
void tsi_crop_fallback(const struct tsi_crop_range *range, uint32_t width,
		       uint32_t height, struct tsi_crop_box *box);

#endif
