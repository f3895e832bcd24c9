/* SPDX-License-Identifier: MIT */
/*
 * shard.h - the samples of one tar file of WebDataset's: see scan.h.
 */
#ifndef TSI_DATA_WEBDATASET_SHARD_H
#define TSI_DATA_WEBDATASET_SHARD_H

#include <stdint.h>

#include "data/root.h"
#include "data/stamp.h"
#include "data/text.h"

/* A sample: its image's name, in the shard's text, and range. */
struct tsi_shard_row {
	uint64_t name;
	uint64_t offset;
	uint64_t length;
	uint32_t label;
};

struct tsi_shard {
	const char *path; /* below the root */
	struct tsi_stamp stamp;
	struct tsi_text text;
	struct tsi_shard_row *row;
	uint64_t rows;
	uint64_t row_cap;
	uint64_t without; /* samples that have no image */
};

/*
 * Read the headers of shard s, all zero but its path.  Logs a warning where the
 * shard is damaged.  Fails with EDATA, ESYS, ENOMEM.
 */
int tsi_shard_read(const struct tsi_root *root, struct tsi_shard *s);

void tsi_shard_free(struct tsi_shard *s);

#endif
