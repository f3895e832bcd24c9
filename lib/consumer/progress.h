/* SPDX-License-Identifier: MIT */
/*
 * progress.h - how far a job has come in the epoch that it reads: arithmetic of
 * samples' numbers, which knows no reader and no producer.
 *
 * All numbers are of samples in the stream.  The ranks of a job are at the same
 * block, which has one batch for each of them.  One thread at a time, as for
 * the handle.
 */
#ifndef TSI_CONSUMER_PROGRESS_H
#define TSI_CONSUMER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "order/part.h"
#include "order/ranks.h"

#define TSI_PROGRESS_NONE UINT64_MAX /* the number of no epoch */

struct tsi_progress {
	struct tsi_ranks ranks; /* which samples of a block are the job's */
	struct tsi_part part;   /* that the stream is ... */
	uint64_t whole;         /* ... of an order of so many; 0: of itself */
	uint64_t epoch_len;
	uint64_t epoch;      /* its number, or TSI_PROGRESS_NONE */
	uint64_t start, end; /* of it; equal: it is to be begun again */
	uint64_t block;      /* where the job's next batches begin */
	uint64_t last;       /* first sample that the stream will never have */
};

/* No epoch was begun yet. */
void tsi_progress_init(struct tsi_progress *p, uint64_t epoch_len,
		       struct tsi_ranks ranks);

/* The stream is a part of epochs of that many samples. */
void tsi_progress_set_part(struct tsi_progress *p, const struct tsi_part *part,
			   uint64_t whole);

/* An epoch begins: all of it is to be read. */
void tsi_progress_begin(struct tsi_progress *p, uint64_t start, uint64_t end);

/* Was it the last of a stream of so many epochs?  0: there is no last one. */
bool tsi_progress_was_last(const struct tsi_progress *p, uint64_t epochs);

/* Where the next epoch begins for a reader at pos, which may have missed whole
 * epochs. */
uint64_t tsi_progress_next_epoch(const struct tsi_progress *p, uint64_t pos);

/* The end of the block after that many more samples of this rank, at most the
 * end of the epoch. */
uint64_t tsi_progress_ahead(const struct tsi_progress *p, uint64_t samples);

/*
 * Is that where a block begins, or the end, of an epoch of which the first block
 * begins where all jobs' do: at a multiple of the epoch's length?
 */
bool tsi_progress_on_blocks(const struct tsi_progress *p, uint64_t start,
			    uint64_t end, uint64_t block);

/* Has the job read all of the epoch that was begun? */
bool tsi_progress_is_over(const struct tsi_progress *p);

/* Begin the epoch anew where a batch of it was left. */
void tsi_progress_rewind(struct tsi_progress *p);

/*
 * The stream goes on at start for a reader that was at pos: returns how many
 * samples it has missed.  The next block is there, or at the epoch's end.
 */
uint64_t tsi_progress_miss(struct tsi_progress *p, uint64_t pos,
			   uint64_t start);

/* The epoch's start, and how many of its samples the job has had; all where it
 * is done, or has no more batch. */
void tsi_progress_position(const struct tsi_progress *p, bool done,
			   uint64_t *start, uint64_t *samples);

/* The epoch's start, and the block that the job is at. */
static inline uint64_t tsi_progress_start(const struct tsi_progress *p)
{
	return p->start;
}

static inline uint64_t tsi_progress_block(const struct tsi_progress *p)
{
	return p->block;
}

/* Before the first epoch, or between two. */
void tsi_progress_set_ranks(struct tsi_progress *p, struct tsi_ranks ranks);

static inline const struct tsi_ranks *
tsi_progress_ranks(const struct tsi_progress *p)
{
	return &p->ranks;
}

/* TSI_PROGRESS_NONE: no epoch was begun. */
static inline uint64_t tsi_progress_epoch(const struct tsi_progress *p)
{
	return p->epoch;
}

/* The epoch's end, or its start where it is to be begun again. */
static inline uint64_t tsi_progress_end(const struct tsi_progress *p)
{
	return p->end;
}

/* Was an epoch begun that is to be begun again? */
static inline bool tsi_progress_rewound(const struct tsi_progress *p)
{
	return p->epoch != TSI_PROGRESS_NONE && p->end == p->start;
}

static inline uint64_t tsi_progress_last(const struct tsi_progress *p)
{
	return p->last;
}

static inline void tsi_progress_set_last(struct tsi_progress *p, uint64_t last)
{
	p->last = last;
}

/* Samples of the epoch that the job has still to read, to the stream's end. */
static inline uint64_t tsi_progress_left(const struct tsi_progress *p)
{
	uint64_t end = p->last < p->end ? p->last : p->end;

	return end > p->block ? end - p->block : 0;
}

/* How many samples the next batch has; 0 at the end. */
static inline uint64_t tsi_progress_next(const struct tsi_progress *p)
{
	uint64_t first;

	return tsi_ranks_next(&p->ranks, tsi_progress_left(p), &first);
}

/* The block after this one. */
static inline uint64_t tsi_progress_next_block(const struct tsi_progress *p)
{
	return p->block + tsi_ranks_block(&p->ranks, tsi_progress_left(p));
}

/* On to that block.  True: the job has a batch there, from sample *pos on. */
static inline bool tsi_progress_move(struct tsi_progress *p, uint64_t block,
				     uint64_t *pos)
{
	uint64_t first;

	p->block = block;
	if (!tsi_ranks_next(&p->ranks, tsi_progress_left(p), &first))
		return false;
	*pos = block + first;
	return true;
}

#endif
