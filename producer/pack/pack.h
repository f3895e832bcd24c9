/* SPDX-License-Identifier: MIT */
/*
 * pack.h - a data set into a pack: read, make records, write, resume, finish.
 *
 * Samples are taken in their order, some at a time: several threads read them
 * and make their records, then one writes these.  So a pack is a function of
 * its source alone, not of the number of threads or of how often it was broken
 * off.
 */
#ifndef TSI_PACK_PACK_H
#define TSI_PACK_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "data/documents.h"
#include "data/format.h"

struct tsi_pack_progress {
	uint64_t samples; /* of the data set */
	uint64_t done;    /* those that an earlier run packed included */
	uint64_t before;  /* by an earlier run */
	uint64_t packed;  /* by this run: images in the packed form ... */
	uint64_t kept;    /* ... files as they were ... */
	uint64_t bad;     /* ... and those that are bad, kept or unreadable,
			     JPEGs among them of which only the upper rows
			     can be decoded */
	uint64_t read;    /* bytes, by this run */
	uint64_t written;
	uint32_t shards;
};

struct tsi_index;

/* Where masks are read: several threads read. */
struct tsi_pack_masks {
	const char *folder;
	const char *column; /* or the table's column of images that has them */
	/* Once, before the first is read.  Fails as tsi_masks_open(). */
	int (*open)(void *arg, const struct tsi_index *x);
	/* Image i's file, or what tsi_io_read() returns. */
	int (*read)(void *arg, uint64_t i, size_t max, uint8_t **data,
		    size_t *len);
	void (*close)(void *arg);
	void *arg;
};

struct tsi_pack_opts {
	const struct tsi_format *format;
	const char *source; /* what the format reads */
	const char *labels; /* see labels/spec.h; NULL: those it has */
	const struct tsi_pack_masks *masks; /* NULL: samples have none */
	const char *schema;                 /* as in struct tsi_index_opts */
	bool held_out;
	struct tsi_documents_opts documents;
	/* Recipes of images that are pixels in the source; or NULL. */
	const char *train, *eval;
	const char *dest; /* a folder that isn't there yet, or is empty */
	uint64_t shard_size;
	unsigned threads;
	unsigned batch; /* samples between two calls of progress; 0: 1,024 */
	bool rescan;
	bool allow_empty;      /* classes without a sample are no error */
	const char *cache_dir; /* as in struct tsi_index_opts */
	/*
	 * Called from the caller's thread now and then, and at the end.  False:
	 * stop here, to go on another time.
	 */
	bool (*progress)(void *arg, const struct tsi_pack_progress *p);
	void *arg;
};

/*
 * Make the pack, or go on with one that was broken off.  Fails with EARG,
 * EEXIST (dest is there; another process makes it), EDATA (nothing to pack),
 * EENDED (progress said so), ESYS, ENOMEM; what there is by then is kept.
 */
int tsi_pack_run(const struct tsi_pack_opts *o);

#endif
