/* SPDX-License-Identifier: MIT */
/*
 * shards.h - the files of a pack while it is written, and which samples they
 * have so far.
 *
 * Everything lies in a folder of its own, DST.part, until the pack is complete.
 * A journal there names the records whose bytes are on disk, so that a pack
 * that was broken off, at any moment, can be gone on with: what no entry of the
 * journal names is cut off and written again.
 */
#ifndef TSI_PACK_SHARDS_H
#define TSI_PACK_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_shards;

/* Where a record is.  Records are added in the order of samples. */
struct tsi_shards_entry {
	uint32_t shard;
	uint32_t bad; /* 1: the sample was bad */
	uint64_t offset;
	uint64_t length;
	uint64_t sum; /* of the fields above */
};

/*
 * Open the folder, or make it.  source: a hash of what is packed; size: most
 * bytes of a shard, but for one record that alone is larger.  Fails with
 * EEXIST (another process writes there), EARG (it has a part of another
 * source, or of shards of another size), ESYS, ENOMEM.
 */
int tsi_shards_open(const char *folder, uint64_t source, uint64_t size,
		    struct tsi_shards **out);
/* NULL is allowed.  Nothing is lost: see open. */
void tsi_shards_close(struct tsi_shards *s);

/* Records so far, and where number i is. */
uint64_t tsi_shards_count(const struct tsi_shards *s);
const struct tsi_shards_entry *tsi_shards_at(const struct tsi_shards *s,
					     uint64_t i);

/* Add a record.  Fails with ESYS, ENOMEM. */
int tsi_shards_add(struct tsi_shards *s, const uint8_t *data, size_t len,
		   bool bad);

/* Have all records on disk, and in the journal.  Fails with ESYS. */
int tsi_shards_sync(struct tsi_shards *s);

/* Its path, for messages. */
const char *tsi_shards_folder(const struct tsi_shards *s);

/* The folder, for openat(); shards that there are. */
int tsi_shards_dirfd(const struct tsi_shards *s);
uint32_t tsi_shards_files(const struct tsi_shards *s);

#endif
