/* SPDX-License-Identifier: MIT */
/*
 * batches.h - images of 8-bit planes and their labels, in several files.
 *
 * What cifar.c and downsampled.c have in common.
 */
#ifndef TSI_DATA_ROWS_BATCHES_H
#define TSI_DATA_ROWS_BATCHES_H

#include <stdint.h>

#include "data/rows/rows.h"

/* Labels that are collected, file by file, and other numbers beside them. */
struct tsi_batches {
	struct tsi_rows *rows;
	unsigned pixels; /* their column */
	uint32_t side;
	int64_t *label, *more;
	uint64_t n, label_room, more_room;
};

/* Images of side x side pixels, the next one's stride bytes behind one's. */
int tsi_batches_begin(struct tsi_batches *b, const struct tsi_root *root,
		      uint32_t side, size_t stride);

/* One more label.  Fails with ENOMEM. */
int tsi_batches_label(struct tsi_batches *b, int64_t label, int64_t more);

/*
 * A pickled batch: its images and labels, less the number of the first class.
 * labels and more are keys; more may be NULL.
 */
int tsi_batches_pickle(struct tsi_batches *b, unsigned file, const char *labels,
		       const char *more, int64_t first);

/* Give the labels to the rows, and finish them; more as tsi_rows_labels(). */
int tsi_batches_finish(struct tsi_batches *b, const char *more,
		       struct tsi_table *t);

/* After success and failure. */
void tsi_batches_end(struct tsi_batches *b);

#endif
