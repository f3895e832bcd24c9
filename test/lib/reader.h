/* SPDX-License-Identifier: MIT */
/*
 * reader.h - a consumer that checks every byte, in a process of its own.
 */
#ifndef TEST_LIB_READER_H
#define TEST_LIB_READER_H

#include "test/lib/stream.h"

/* An epoch as one consumer sees it. */
struct tally {
	const struct source *src;
	uint32_t batch, flags;
	uint64_t first, want, got, full; /* want: the next; full: batches */
	uint8_t *seen;
};

void reader_tally_begin(struct tally *y, const struct source *src,
			uint32_t batch, uint32_t flags);

/* A batch: the next samples, none of which came before. */
void reader_tally_add(struct tally *y, const tsock_batch *b);

/* The epoch is over, and was whole unless it began in the middle. */
void reader_tally_end(struct tally *y, bool whole);

/*
 * How many samples this process and its children have been handed, each of
 * which came in its turn and had its own bytes; counted from reader_count_checked()
 * on.
 */
void reader_count_checked(void);
void reader_add_checked(uint64_t samples);
uint64_t reader_samples_checked(void);

struct reader {
	const struct source *src;
	uint32_t batch, join, between, flags;
	uint32_t epochs;   /* to read */
	uint32_t hold_us;  /* keep each batch so long */
	uint32_t delay_us; /* before joining */
	bool scribble;     /* write over every batch */
	bool floats;       /* images as float32, [3, side, side] */
	uint32_t rank, world;
	/* Once it is true no epoch is begun; NULL: all are read. */
	const _Atomic bool *enough;
};

tsock *reader_connect(const struct reader *r);

void reader_check_batch(const struct reader *r, const tsock_batch *b,
			uint64_t from);

/* Read one epoch; every sample must come exactly once, in stream order. */
void reader_read_epoch(const struct reader *r, tsock *t);

void reader_read_all(const struct reader *r);

pid_t reader_start(const struct reader *r);

#endif
