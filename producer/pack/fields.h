/* SPDX-License-Identifier: MIT */
/*
 * fields.h - what the samples of a pack have beside image and class: a file of
 * columns beside the index, as a table has them.
 */
#ifndef TSI_PACK_FIELDS_H
#define TSI_PACK_FIELDS_H

#include <stdbool.h>

#include "data/columns.h"
#include "data/index.h"
#include "data/stamp.h"
#include "pack/shards.h"

/*
 * What the records behind those of all samples are: as many for each image
 * behind the first that is packed, then for the masks.
 */
struct tsi_pack_planes {
	unsigned other
		[TSI_OTHERS]; /* numbers of images, by tsi_columns_other() */
	unsigned others;
	int mask; /* the one that has masks; -1: none has */
	bool masks;
};

/* Images, and masks if there are any, of a sample. */
static inline unsigned tsi_pack_planes_count(const struct tsi_pack_planes *p)
{
	return 1 + p->others + p->masks;
}

/* Does a pack of x have such a file? */
bool tsi_pack_fields_any(const struct tsi_index *x,
			 const struct tsi_pack_planes *p);

/* Are they all that samples of x have, or do pixels lie among them? */
bool tsi_pack_fields_whole(const struct tsi_index *x);

/*
 * Write the file into the folder of the shards and have it on disk; *sum is what the index
 * says of it.  Fails with ESYS.
 */
int tsi_pack_fields_write(const struct tsi_index *x, const struct tsi_shards *s,
			  const struct tsi_pack_planes *p,
			  struct tsi_stamp *sum);

/* Of a pack that is a table. */
struct tsi_pack_whole {
	const char *train, *eval; /* its recipes; NULL or empty: the presets' */
	/* Now and then, with the rows that were written of how many. */
	bool (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};

/* Likewise the table of whole samples.  EENDED: progress said false. */
int tsi_pack_fields_table(const struct tsi_index *x, const struct tsi_shards *s,
			  const struct tsi_pack_whole *w);

#endif
