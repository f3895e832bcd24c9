/* SPDX-License-Identifier: MIT */
/*
 * ranks.h - which samples of an epoch a rank reads: arithmetic alone.
 *
 * The R ranks of a job that trains one model cut an epoch into blocks of R
 * times b samples; rank r takes the r-th b of each.  What is left at the end,
 * m samples, is cut evenly: into R parts of ceil(m / R), which overlap where m
 * is no multiple of R, so that all ranks have the same number of samples; or,
 * if each sample has to be read once, into parts of m / R samples, the first
 * m mod R of which have one more.  DistributedSampler gives each rank as many.
 *
 * A part of a stream (part.h) may be filled up at an epoch's end with samples
 * that other parts have.  Who reads each sample once leaves these out, and who
 * drops short batches all of the last row that has some of them in any part.
 */
#ifndef TSI_ORDER_RANKS_H
#define TSI_ORDER_RANKS_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_ranks {
	uint32_t rank, world; /* world is 1 for a job of one process */
	bool once;            /* each sample once, not equal numbers */
	bool drop_last;       /* no batch is shorter than the others */
	uint64_t batch;       /* b */
	uint64_t padding;     /* of the epoch's last samples, with once or
			       * drop_last: see above */
};

/*
 * The rank's next batch if that many samples of the epoch, with its padding, are
 * left for all ranks: its number of samples (0: there is none), and where it begins,
 * counted from the first that is left.
 */
uint64_t tsi_ranks_next(const struct tsi_ranks *p, uint64_t left,
			uint64_t *first);

/* By how much `left` shrinks once all ranks have that batch. */
uint64_t tsi_ranks_block(const struct tsi_ranks *p, uint64_t left);

/*
 * How many samples from number at on, of an epoch of n, are alike: the rank
 * reads all of them, or none; *own says which.  at is below n.
 */
uint64_t tsi_ranks_run(const struct tsi_ranks *p, uint64_t n, uint64_t at,
		       bool *own);

/* Batches of the rank in an epoch of n samples. */
uint64_t tsi_ranks_batches(const struct tsi_ranks *p, uint64_t n);

#endif
