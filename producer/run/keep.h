/* SPDX-License-Identifier: MIT */
/*
 * keep.h - a worker's way to the cache of packed images: which files it has,
 * and what is put in when a file was read.
 *
 * Used by one thread, as a reader of the cache.
 */
#ifndef TSI_RUN_KEEP_H
#define TSI_RUN_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_image_cache;
struct tsi_keep;

/*
 * The keeper reads the cache as its reader of this number; the cache must
 * outlive it.  Fails with TSOCK_ENOMEM.
 */
int tsi_keep_create(struct tsi_image_cache *c, unsigned reader,
		    struct tsi_keep **out);
/* NULL is allowed. */
void tsi_keep_destroy(struct tsi_keep *k);

/* Is this file's image in the cache?  k may be NULL: there is no cache. */
bool tsi_keep_has(const struct tsi_keep *k, uint64_t file);

/* The file's record until it is given back; NULL: it isn't there any more. */
const uint8_t *tsi_keep_take(struct tsi_keep *k, uint64_t file, size_t *len);
void tsi_keep_give(struct tsi_keep *k);

/*
 * Put the packed form of a file, of these bytes, into the cache while there is
 * room.  Returns it, valid until it is called again: a sample made of it is the
 * file's, and takes a sixth of the time.  NULL: there is no room, or no packed
 * form; make the sample of the file, and offer that.
 */
const uint8_t *tsi_keep_pack(struct tsi_keep *k, uint64_t file,
			     const uint8_t *data, size_t len,
			     size_t *record_len);

/*
 * A sample was made of these bytes of the file in so many nanoseconds: keep
 * them in the packed form, perhaps in the place of others.
 */
void tsi_keep_offer(struct tsi_keep *k, uint64_t file, const uint8_t *data,
		    size_t len, uint64_t ns);

#endif
