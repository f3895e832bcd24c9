/*
 * lane.h - one worker's way from a sequence number to a finished sample:
 * file, read ahead, decode into place.
 *
 * Used by one thread alone.  It knows the source, a reader and a decoder, and
 * nothing of rings: the caller says where a sample goes once it is there.  A
 * bad file never ends a lane: another one takes its place, or, with
 * --on-error=raise, it is the caller's error.
 */
#ifndef TSI_RUN_LANE_H
#define TSI_RUN_LANE_H

#include <stdint.h>

#include "run/source.h"

struct tsi_budget;
struct tsi_lane;

/* Where the fields of one sample go. */
struct tsi_slots {
	uint8_t *image; /* size * size * 3 */
	int64_t *label;
	int64_t *index;
	int32_t *box; /* 5 */
};

struct tsi_made {
	uint64_t seq;
	uint64_t read_bytes;
	uint32_t reads;       /* files that were read for it */
	uint32_t substituted; /* 1: another file's sample */
	uint64_t io_ns;       /* spent waiting for a file */
	uint64_t decode_ns;
};

/*
 * depth: samples that may be begun and not finished.  budget: what all lanes'
 * large images share; NULL: any memory.
 */
int tsi_lane_create(struct tsi_source *s, unsigned depth,
		    struct tsi_budget *budget, struct tsi_lane **out);
/* NULL is allowed.  Samples that were begun are dropped. */
void tsi_lane_destroy(struct tsi_lane *l);

/* Begun and not finished. */
unsigned tsi_lane_busy(const struct tsi_lane *l);

/* How files are read, and why not by io_uring (or NULL). */
const char *tsi_lane_reader(const struct tsi_lane *l);
const char *tsi_lane_reader_why(const struct tsi_lane *l);

/* Begin sequence number seq; there must be room in depth. */
int tsi_lane_begin(struct tsi_lane *l, uint64_t seq);

/*
 * Finish one of those begun, the lowest whose file has come, waiting for one.
 * slots says where it goes.  Fails with EDATA (a bad file and --on-error=raise,
 * or no good file at all), ESYS (EIO again and again, descriptors), ENOMEM
 * (there is none even for a small image), ESTREAM (the budget was closed): the
 * stream can't go on.
 */
int tsi_lane_finish(struct tsi_lane *l,
		    void (*slots)(void *arg, uint64_t seq,
				  struct tsi_slots *out),
		    void *arg, struct tsi_made *out);

#endif
