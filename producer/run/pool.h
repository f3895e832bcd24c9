/* SPDX-License-Identifier: MIT */
/*
 * pool.h - the worker threads: claim, read ahead, decode into the slot,
 * commit.
 *
 * A worker's error stops the stream with its sentence, never the process.
 * Signals are blocked in every worker.
 */
#ifndef TSI_RUN_POOL_H
#define TSI_RUN_POOL_H

#include <stdint.h>

#include "io/reader.h"
#include "run/ahead.h"
#include "run/image_cache.h"
#include "run/sampler.h"
#include "run/schema.h"
#include "tsock/tsock.h"

struct tsi_pool;

/* What all workers together have spent their time with, so far. */
struct tsi_pool_times {
	uint64_t io_ns; /* waiting for files */
	uint64_t decode_ns;
};

struct tsi_pool_opts {
	unsigned threads;
	enum tsi_io_reader_kind io;
	bool direct;                 /* files are read past the page cache */
	struct tsi_ahead_opts ahead; /* what is read into it */
	unsigned open_files;         /* of many samples that may stay open */
	uint64_t image_memory;       /* bytes that large images share */
	uint64_t cache; /* bytes that packed images may take; 0: none */
	/* What samples have; must outlive the pool. */
	const struct tsi_schema *schema;
	/*
	 * Samples in the ring: what the workers read ahead stays small against
	 * it, else their unfinished samples would hold the head up.
	 */
	uint64_t capacity;
};

/*
 * Should so many workers convert samples for views themselves (commit_views in
 * serve.h)?  Not while a CPU is left for a view's thread, as long as that
 * thread keeps up with them.
 */
bool tsi_pool_converts(unsigned threads, unsigned cpus);

/*
 * Make the workers, each with a file reader and a decoder, or with neither
 * where samples have no image.
 */
int tsi_pool_create(struct tsi_sampler *s, const struct tsi_pool_opts *opts,
		    struct tsi_pool **out);

/* How files are read, and why not by io_uring (or NULL). */
const char *tsi_pool_reader(const struct tsi_pool *p);
const char *tsi_pool_reader_why(const struct tsi_pool *p);

/* How files are read ahead of the workers; NULL: they aren't. */
const char *tsi_pool_ahead(const struct tsi_pool *p);

/* Start working for a server. */
int tsi_pool_start(struct tsi_pool *p, tsock_server *server);

/*
 * At most so many workers claim samples from now on: at least 1, at most all,
 * as at the start.  The others finish what they have begun and then wait until
 * the limit is raised; one that waits for a sample finishes that one first.
 * No sample depends on the limit.  Any thread.
 */
void tsi_pool_set_limit(struct tsi_pool *p, unsigned threads);
unsigned tsi_pool_limit(const struct tsi_pool *p);

/*
 * Since when, in nanoseconds, has the worker waited that has waited longest for
 * a file to be read, and for which; 0: none waits.  Any thread.
 */
int64_t tsi_pool_waits(const struct tsi_pool *p, uint64_t *file);

/* Workers that wait for a higher limit. */
unsigned tsi_pool_parked(struct tsi_pool *p);

/* Why the stream was stopped; NULL while it goes on.  Lives with the pool. */
const char *tsi_pool_error(struct tsi_pool *p);

/* The cache of packed images; false: there is none. */
bool tsi_pool_cache(const struct tsi_pool *p,
		    struct tsi_image_cache_stats *out);

void tsi_pool_times(const struct tsi_pool *p, struct tsi_pool_times *out);

/* Stop the server's claims and wait for the workers.  NULL is allowed. */
void tsi_pool_destroy(struct tsi_pool *p);

#endif
