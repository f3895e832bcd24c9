/* SPDX-License-Identifier: MIT */
/*
 * mask_maker.h - the masks of a worker's samples: read here and now, decoded,
 * and what came of it.
 */
#ifndef TSI_RUN_MASK_MAKER_H
#define TSI_RUN_MASK_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/mask.h"
#include "run/masks.h"
#include "run/target.h"

/* Used by one thread. */
struct tsi_mask_maker;

/* Fails with TSOCK_ENOMEM. */
int tsi_mask_maker_create(const struct tsi_masks *of,
			  const struct tsi_recipe *r,
			  struct tsi_mask_maker **out);

/* NULL is allowed. */
void tsi_mask_maker_destroy(struct tsi_mask_maker *m);

/*
 * Read the mask of this image, *len bytes, for the next load.  False: o says
 * what came of the image instead, whose claim covers the mask.  A file that is
 * far larger than a mask of the image's size can be is a bad one.
 */
bool tsi_mask_maker_read(struct tsi_mask_maker *m, uint64_t file,
			 const struct tsi_image_drawn *sample, size_t *len,
			 struct tsi_outcome *o);

/* Make the sample's mask of what was read, which is freed.  False: likewise. */
bool tsi_mask_maker_load(struct tsi_mask_maker *m,
			 const struct tsi_image_drawn *sample, uint8_t *to,
			 struct tsi_outcome *o);

#endif
