/*
 * source.h - which file fills a place of the stream, and which files are bad.
 *
 * The data set, its order and what is known of bad files, shared by all
 * workers.  What a place gets is a function of (data set, options, place)
 * alone: a truncated image stays good for the crops that end above the damage.
 */
#ifndef TSI_RUN_SOURCE_H
#define TSI_RUN_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "data/order.h"
#include "image/image.h"
#include "run/badfiles.h"
#include "cli/options.h"

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

/* What is known of bad files. */
struct tsi_badfiles *tsi_source_badfiles(const struct tsi_source *s);

#endif
