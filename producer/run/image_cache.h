/* SPDX-License-Identifier: MIT */
/*
 * image_cache.h - packed images in memory, so that later epochs read no file
 * and decode no Huffman codes.
 *
 * While there is room every image is kept that can be packed.  After that one
 * takes the place of others if it saves more time for each of its bytes: by the
 * time that making a sample of its file has taken, the least of at least two
 * times.  Each sample comes once in an epoch, so how often an image is used
 * makes no difference.
 *
 * An image that is kept is the one that was read first: a file that changes
 * later on is not read again.
 *
 * Finding an image takes no lock: a reader announces what it looks at, and what
 * is announced is not freed.  Putting one in takes a lock for moments.
 */
#ifndef TSI_RUN_IMAGE_CACHE_H
#define TSI_RUN_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_image_cache;

struct tsi_image_cache_stats {
	uint64_t budget; /* bytes */
	uint64_t used;
	uint64_t images;
	uint64_t hits; /* samples that were made from it */
};

/*
 * For files 0 to files - 1, in this many bytes, its own lists included, used by
 * readers 0 to readers - 1, each a thread.  Fails with TSOCK_ENOMEM.
 */
int tsi_image_cache_create(uint64_t files, uint64_t bytes, unsigned readers,
			   struct tsi_image_cache **out);
/* NULL is allowed. */
void tsi_image_cache_destroy(struct tsi_image_cache *c);

/* Is this file's image there just now? */
bool tsi_image_cache_has(const struct tsi_image_cache *c, uint64_t file);

/*
 * The record of this file, until the reader gives it back; NULL: there is none.
 * A reader takes one at a time.
 */
const uint8_t *tsi_image_cache_take(struct tsi_image_cache *c, unsigned reader,
				    uint64_t file, size_t *len);
void tsi_image_cache_give(struct tsi_image_cache *c, unsigned reader);

/*
 * Is there room for a record of about len bytes of this file, which isn't there
 * and was never refused?  Once a record found none there is no room any more.
 */
bool tsi_image_cache_has_room(const struct tsi_image_cache *c, uint64_t file,
			      size_t len);

/*
 * A sample was made of this file in so many nanoseconds.  Is a record of about
 * len bytes to be made and put in?
 */
bool tsi_image_cache_wants(struct tsi_image_cache *c, uint64_t file,
			   uint64_t ns, size_t len);

/* Put the record in, a copy of it, if there still is room. */
void tsi_image_cache_put(struct tsi_image_cache *c, uint64_t file,
			 const uint8_t *data, size_t len);

/* This file has no packed form: it is never wanted again. */
void tsi_image_cache_refuse(struct tsi_image_cache *c, uint64_t file);

/* Any thread. */
void tsi_image_cache_stats(struct tsi_image_cache *c,
			   struct tsi_image_cache_stats *out);

#endif
