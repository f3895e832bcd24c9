/* SPDX-License-Identifier: MIT */
/*
 * worker.h - from a sequence number to a finished sample: choose the file, read
 * it ahead of need, decode it.
 *
 * A worker is used by one thread alone.  It knows the sampler, a file reader
 * and a decoder, and nothing of rings: the caller says where a sample goes once
 * it is there.  A bad file never ends a worker: another file stands in for it,
 * or, with --on-error=raise, it is the caller's error.
 */
#ifndef TSI_RUN_WORKER_H
#define TSI_RUN_WORKER_H

#include <stdint.h>

#include "io/reader.h"
#include "run/sampler.h"
#include "run/schema.h"

struct tsi_budget;
struct tsi_image_cache;
struct tsi_worker;

struct tsi_made {
	uint64_t seq;
	uint64_t read_bytes;
	uint32_t reads;       /* files that were read for it */
	uint32_t substituted; /* 1: another file's sample */
	uint64_t io_ns;       /* spent waiting for a file */
	uint64_t decode_ns;
};

/*
 * io: how files are read.  depth: samples that may be begun and not finished.
 * budget: the memory that the large images of all workers share; NULL: any
 * memory.
 */
int tsi_worker_create(struct tsi_sampler *s, enum tsi_io_reader_kind io,
		      unsigned depth, struct tsi_budget *budget,
		      struct tsi_worker **out);
/*
 * Make samples from a cache where they are there, as its reader of this number,
 * and put in what it wants.  Before the first sample.  The cache must outlive
 * the worker.  Fails with TSOCK_ENOMEM.
 */
int tsi_worker_use_cache(struct tsi_worker *w, struct tsi_image_cache *c,
			 unsigned reader);

/*
 * Read samples that lie in files with others from files that stay open.  Before
 * the first sample.  The files must outlive the worker.
 */
void tsi_worker_use_files(struct tsi_worker *w, struct tsi_io_files *files);

/* Read all files past the page cache.  Before the first sample. */
void tsi_worker_use_direct(struct tsi_worker *w);

/* NULL is allowed.  Samples that were begun are dropped. */
void tsi_worker_destroy(struct tsi_worker *w);

/* Samples that were begun and not finished. */
unsigned tsi_worker_busy(const struct tsi_worker *w);

/* How files are read (NULL: images aren't files), and why not by io_uring (or
 * NULL). */
const char *tsi_worker_reader(const struct tsi_worker *w);
const char *tsi_worker_reader_why(const struct tsi_worker *w);

/*
 * Since when, in nanoseconds, has its thread waited for a file to be read, and
 * for which; 0: it doesn't.  Any thread.
 */
int64_t tsi_worker_waits(const struct tsi_worker *w, uint64_t *file);

/* Begin sequence number seq; fewer than depth samples are in progress. */
int tsi_worker_begin(struct tsi_worker *w, uint64_t seq);

/*
 * Finish a sample that was begun, the lowest whose file has come; wait until
 * one has.  slots says where the sample goes.  After a failure the stream can't
 * go on: EDATA (a bad file and --on-error=raise, or no good file at all), ESYS
 * (EIO again and again, descriptors), ENOMEM (none even for a small image),
 * ESTREAM (the budget was closed).
 */
int tsi_worker_finish(struct tsi_worker *w,
		      void (*slots)(void *arg, uint64_t seq,
				    struct tsi_slots *out),
		      void *arg, struct tsi_made *out);

#endif
