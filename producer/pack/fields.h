/* SPDX-License-Identifier: MIT */
/*
 * fields.h - what the samples of a pack have beside image and class: a file of
 * columns beside the index, as a table has them.
 */
#ifndef TSI_PACK_FIELDS_H
#define TSI_PACK_FIELDS_H

#include <stdbool.h>

#include "data/index.h"
#include "data/stamp.h"
#include "pack/shards.h"

/*
 * Does a pack of x have such a file?  Records of s behind those of all samples
 * are their masks.
 */
bool tsi_pack_fields_any(const struct tsi_index *x, const struct tsi_shards *s);

/*
 * That samples of x have images, which are to be decoded.  Fails with ENOTSUP,
 * and says how they are served.
 */
int tsi_pack_fields_check(const struct tsi_index *x);

/*
 * Write the file into the folder of the shards and have it on disk; *sum is what the index
 * says of it.  Fails with ESYS.
 */
int tsi_pack_fields_write(const struct tsi_index *x, const struct tsi_shards *s,
			  struct tsi_stamp *sum);

#endif
