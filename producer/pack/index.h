/* SPDX-License-Identifier: MIT */
/*
 * index.h - the index of a pack, which is written last.
 */
#ifndef TSI_PACK_INDEX_H
#define TSI_PACK_INDEX_H

#include "data/index.h"
#include "pack/fields.h"
#include "pack/shards.h"

/*
 * Write pack.index into the folder of the shards, which hold all samples of x,
 * and have it on disk.  Fails with ESYS, ENOMEM.
 */
int tsi_pack_index_write(const struct tsi_index *x, const struct tsi_shards *s,
			 const struct tsi_pack_planes *p);

#endif
