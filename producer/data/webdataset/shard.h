/* SPDX-License-Identifier: MIT */
/*
 * shard.h - the samples of one tar file of WebDataset's: see scan.h.
 */
#ifndef TSI_DATA_WEBDATASET_SHARD_H
#define TSI_DATA_WEBDATASET_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "data/root.h"
#include "data/stamp.h"
#include "data/text.h"
#include "data/webdataset/unread.h"

/* A sample: its image's name, in the shard's text, and range. */
struct tsi_shard_row {
	uint64_t name;
	uint64_t offset;
	uint64_t length;
	uint32_t label;
};

struct tsi_shard {
	const char *path; /* below the root */
	bool bare;        /* samples need no label, and none is read */
	struct tsi_stamp stamp;
	struct tsi_text text;
	struct tsi_shard_row *row;
	uint64_t rows;
	uint64_t row_cap;
	uint64_t without;         /* samples that have no image */
	struct tsi_unread unread; /* unless bare */
	bool cls;                 /* the label of a sample is a .cls */
	/*
	 * Files such as a.b.jpg, whose key ends at another dot than the one
	 * before the kind of the file; the first of them is in text.
	 */
	uint64_t dotted;
	uint64_t dotted_name;
};

/*
 * Read the headers of shard s, all zero but its path and bare.  Logs a warning where the
 * shard is damaged.  Fails with EDATA, ESYS, ENOMEM.
 */
int tsi_shard_read(const struct tsi_root *root, struct tsi_shard *s);

/* What a file's name ends in for that it is an image, for messages. */
#define TSI_SHARD_IMAGES ".jpg, .png, .webp or another image's extension"

/* Why a file's kind wasn't seen: "%s" is the name of such a file. */
#define TSI_SHARD_DOTTED \
	"a key ends at the first dot of a name, as in the webdataset " \
	"package, so %.200s has another one than meant: write other " \
	"characters for the dots within keys"

void tsi_shard_free(struct tsi_shard *s);

#endif
