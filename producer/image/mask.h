/* SPDX-License-Identifier: MIT */
/*
 * mask.h - the bytes of a mask's file to the mask of one sample.
 *
 * A mask is a PNG of its image's size whose pixels are numbers of classes: an
 * index of a palette, or a level of grey (of one bit 0 and 1, of two and four
 * bits as Pillow widens them).  They are the numbers that PILToTensor gives for
 * Image.open(file), without convert().  What a PNG may be otherwise is said in
 * png/file.h.
 */
#ifndef TSI_IMAGE_MASK_H
#define TSI_IMAGE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipe/recipe.h"

/* Decoder and scratch memory of one worker thread. */
struct tsi_image_mask;

/* Samples are made by the recipe's only view.  Fails with TSOCK_ENOMEM. */
int tsi_image_mask_create(const struct tsi_recipe *r,
			  struct tsi_image_mask **out);

/* NULL is allowed. */
void tsi_image_mask_destroy(struct tsi_image_mask *m);

/* The sample that the mask belongs to. */
struct tsi_image_drawn {
	uint32_t width; /* of its image */
	uint32_t height;
	const double *draws; /* of the recipe */
};

/*
 * Write the mask of a sample to dst, height * width bytes of the recipe's.
 * EDATA: no PNG, one of colours or of 16 bits, of another size than its image,
 * or damaged.  ENOMEM says nothing about the file.
 */
int tsi_image_mask_load(struct tsi_image_mask *m, const void *data, size_t len,
			const struct tsi_image_drawn *of, uint8_t *dst);

/*
 * Can a file that begins so be a mask?  EDATA: no, and the message says why.
 * TSI_IMAGE_MASK_HEAD bytes tell, and fewer are a file that is cut short.
 */
int tsi_image_mask_look(const void *data, size_t len);
#define TSI_IMAGE_MASK_HEAD 64

/* Bytes of memory for the mask of an image of this size, about. */
uint64_t tsi_image_mask_need(uint32_t width, uint32_t height);

#endif
