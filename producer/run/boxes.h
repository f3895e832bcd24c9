/* SPDX-License-Identifier: MIT */
/*
 * boxes.h - the columns of a table that hold the bounding boxes of an image's
 * objects, and what else these have.
 *
 * The geometry of a sample moves its boxes (ops/boxes.h); one that isn't there
 * any more leaves the sample, and so does its row of the columns that go with
 * the boxes.
 */
#ifndef TSI_RUN_BOXES_H
#define TSI_RUN_BOXES_H

#include "data/index.h"
#include "image/mask.h"
#include "recipe/recipe.h"
#include "run/schema.h"

/* Used by any thread. */
struct tsi_box_columns;

/*
 * names: the column of the boxes, float32 [n, 4], and then those that go with
 * it, with a comma between two.  Fails with EARG (no such column, or of another
 * kind), EDATA (a row has more boxes than it has values in another column) and
 * ENOMEM.  Samples are made by r's only view, which must outlive it.
 */
int tsi_box_columns_open(const char *names, const struct tsi_index *x,
			 const struct tsi_recipe *r,
			 struct tsi_box_columns **out);

/* NULL is allowed. */
void tsi_box_columns_close(struct tsi_box_columns *c);

/* Move those of a sample, which has all fields as the table has them. */
void tsi_box_columns_move(const struct tsi_box_columns *c,
			  const struct tsi_image_drawn *sample,
			  const struct tsi_slots *to);

#endif
