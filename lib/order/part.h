/* SPDX-License-Identifier: MIT */
/*
 * part.h - which positions of an epoch's order one producer makes: arithmetic
 * alone, which knows neither seeds nor samples.
 *
 * The ranks of a job may be spread over several machines, each with a producer
 * of its own.  Position p of the whole order belongs to rank p mod world; a
 * producer's part has the positions of the ranks first .. first + ranks - 1.
 * It is made of rows, one position for each of its ranks:
 *
 *     row k:  k * world + first, ..., k * world + first + ranks - 1
 *
 * All parts have ceil(whole / world) rows, so all ranks have equally many
 * samples.  Positions beyond the whole order's end are those of its beginning,
 * as DistributedSampler pads; they are the last ones of a part (its padding), so
 * whoever has to read each sample once leaves them out.  Where the last batch is
 * dropped if it is short, it is short for the ranks of all parts or of none: the
 * last row doesn't count if it isn't whole in all of them.
 *
 * One epoch may be dealt anew from a position on: its row k has the positions
 * start + k * world + first and so on.  These rows are the epoch's last ones,
 * and what comes before them isn't read by anybody.  So a job goes on amid an
 * epoch with another number of ranks, wherever it was.
 */
#ifndef TSI_ORDER_PART_H
#define TSI_ORDER_PART_H

#include <stdbool.h>
#include <stdint.h>

#define TSI_PART_WORLD (1u << 20)          /* ranks of a job, at most */
#define TSI_PART_WHOLE (UINT64_C(1) << 63) /* samples of an order, at most */

struct tsi_part {
	uint32_t first;
	uint32_t ranks; /* 0 means 1 */
	uint32_t world; /* 0: no part, but the whole order */
	uint64_t start; /* where an epoch is dealt anew; 0: none is */
	uint64_t start_epoch;
};

/*
 * Is there such a part?  Fails with EARG: ranks beyond the world, a world that
 * is too large, a start outside the order or without a part.  whole is 0 if it
 * isn't known yet.
 */
int tsi_part_check(const struct tsi_part *p, uint64_t whole);

/* Positions in an epoch of the part, of a whole order of at least 1. */
uint64_t tsi_part_len(const struct tsi_part *p, uint64_t whole);

/* The first of them that is read. */
uint64_t tsi_part_begin(const struct tsi_part *p, uint64_t whole,
			uint64_t epoch);

/* How many of the last ones have samples of other positions. */
uint64_t tsi_part_padding(const struct tsi_part *p, uint64_t whole,
			  uint64_t epoch);

/* How many the last row has, if it isn't whole in all parts; else 0. */
uint64_t tsi_part_last_row(const struct tsi_part *p, uint64_t whole,
			   uint64_t epoch);

/* Which position of the whole order a position of the part has. */
uint64_t tsi_part_at(const struct tsi_part *p, uint64_t whole, uint64_t epoch,
		     uint64_t position);

/*
 * How far the whole order is read when all parts are read to the row that
 * begins at a position of this one, or to the end.  False: no row begins there.
 */
bool tsi_part_to_whole(const struct tsi_part *p, uint64_t whole, uint64_t epoch,
		       uint64_t position, uint64_t *to);

/*
 * Where the part goes on when the whole order is read to a position, at most
 * its end.  False: no row begins there, so the epoch would have to be dealt
 * anew.
 */
bool tsi_part_from_whole(const struct tsi_part *p, uint64_t whole,
			 uint64_t epoch, uint64_t from, uint64_t *position);

#endif
