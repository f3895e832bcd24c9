/* SPDX-License-Identifier: MIT */
/*
 * index_keeper.h - the index of JPEG rows, kept on disk beside the scan.
 *
 * A thread of low priority takes in what an earlier producer of the data set
 * has kept, and writes the index after an epoch in which it has grown.  What
 * goes wrong is logged once and is no error: an index makes samples faster, and
 * no other ones.
 */
#ifndef TSI_RUN_INDEX_KEEPER_H
#define TSI_RUN_INDEX_KEEPER_H

#include <stdint.h>

#include "data/index.h"
#include "jpeg/index.h"
#include "run/pipeline.h"

struct tsi_index_keeper;

/*
 * Begin to read, unless o says to scan anew.  *out is NULL where there is
 * nothing to keep: no x, or no folder.  index and x must outlive the keeper.
 * Fails with TSOCK_ENOMEM or TSOCK_ESYS (no thread).
 */
int tsi_index_keeper_open(const struct tsi_pipeline_opts *o,
			  const struct tsi_index *index,
			  struct tsi_jpeg_index *x,
			  struct tsi_index_keeper **out);

/*
 * Epochs that are over, so far.  Returns at once; from one thread, as often as
 * one likes.  NULL is allowed.
 */
void tsi_index_keeper_tell(struct tsi_index_keeper *k, uint64_t epochs);

/* Write the index if it has grown, and end.  NULL is allowed. */
void tsi_index_keeper_close(struct tsi_index_keeper *k);

#endif
