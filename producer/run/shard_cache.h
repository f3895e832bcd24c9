/* SPDX-License-Identifier: MIT */
/*
 * shard_cache.h - reads of shards on a slow file system go to local copies,
 * once there are any.
 *
 * A shard, which is a file of many samples, is copied whole in the background
 * after its first read (shard_store.h).  Until then, and where copying fails,
 * reads go to the source: a cache decides on time, never on samples.
 */
#ifndef TSI_RUN_SHARD_CACHE_H
#define TSI_RUN_SHARD_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "io/reader.h"

struct tsi_shard_cache;

/*
 * A cache in this folder, of so many bytes, for the shards of x, which must
 * outlive it.  *out is NULL if the folder can't be used, which is logged.
 * Fails with ENOMEM, ESYS (a thread).
 */
int tsi_shard_cache_open(const char *folder, uint64_t bytes,
			 const struct tsi_index *x,
			 struct tsi_shard_cache **out);

/* NULL is allowed, here and below.  A copy that isn't whole is dropped. */
void tsi_shard_cache_close(struct tsi_shard_cache *c);

/*
 * Have the request read the copy of its shard, if there is one; else false, and
 * the shard is copied as soon as it may be.  Any thread; takes no lock but at a
 * shard's first read.
 */
bool tsi_shard_cache_use(struct tsi_shard_cache *c, struct tsi_read_request *q);

/*
 * Has the read of this file's copy failed by this error?  Then the copy isn't
 * read again.
 */
bool tsi_shard_cache_failed(struct tsi_shard_cache *c, const char *path,
			    int err);

#endif
