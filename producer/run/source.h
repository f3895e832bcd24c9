/*
 * source.h - which file fills a place of the stream, and which files are bad.
 *
 * The data set, its order and the list of bad files, shared by all workers.
 * What a place gets is a function of (data set, options, place) alone: a file
 * that turned out bad once is tried again whenever its turn comes, because a
 * truncated image may still be good for another crop.
 */
#ifndef TSI_RUN_SOURCE_H
#define TSI_RUN_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "data/order.h"
#include "image/image.h"
#include "run/options.h"

struct tsi_source;

/* The place that sequence number seq is. */
struct tsi_spot {
	uint64_t epoch;
	uint64_t index; /* in the data set, by the order */
};

/*
 * Index the data set and prepare its order.  Fails with EARG (options that
 * don't fit the data set), EDATA (nothing good in it), and as index and order
 * do.  o must outlive it.
 */
int tsi_source_open(const struct tsi_options *o, struct tsi_source **out);

/* NULL is allowed. */
void tsi_source_close(struct tsi_source *s);

const struct tsi_options *tsi_source_options(const struct tsi_source *s);
const struct tsi_index *tsi_source_index(const struct tsi_source *s);

/* N, places of an epoch. */
uint64_t tsi_source_epoch_len(const struct tsi_source *s);
uint32_t tsi_source_segments(const struct tsi_source *s);

/* segments + 1 of them. */
const uint64_t *tsi_source_bounds(const struct tsi_source *s);

/* Any thread, and so are the rest. */
int tsi_source_spot(struct tsi_source *s, uint64_t seq, struct tsi_spot *out);

/*
 * The first index from "from" on, wrapping round, that the scan found good;
 * "end" is not passed.  UINT64_MAX when there is none before it.
 */
uint64_t tsi_source_good(const struct tsi_source *s, uint64_t from,
			 uint64_t end);

/* File index is bad, for this reason: said once, counted once. */
void tsi_source_bad(struct tsi_source *s, uint64_t index, const char *reason);

/* Files that the scan or the stream found bad. */
uint64_t tsi_source_bad_files(struct tsi_source *s);

/* Call fn for them, in the order found, as far as they were kept. */
void tsi_source_bad_list(struct tsi_source *s,
			 void (*fn)(void *arg, const char *path,
				    const char *reason),
			 void *arg);

#endif
