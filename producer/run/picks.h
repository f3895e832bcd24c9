/* SPDX-License-Identifier: MIT */
/*
 * picks.h - samples that are drawn with replacement: by their weights, or of
 * classes that are all as likely.
 *
 * A draw is a function of (seed, epoch, position) and of the data set, by a
 * philox block of its own: an epoch needs no memory and is made by nobody.  By
 * weights it is Walker's alias method ("An efficient method for generating
 * discrete random variables with general distributions", ACM TOMS 3, 1977), in
 * whole numbers: probabilities are multiples of 2^-32 / samples (with more than
 * 2^32 samples, of 2^-62 at most), and a weight of 0 is never drawn.  Otherwise
 * a class is drawn uniformly among those that have samples, then one of its
 * samples.
 *
 * Immutable: any thread may ask.
 */
#ifndef TSI_RUN_PICKS_H
#define TSI_RUN_PICKS_H

#include "data/index.h"
#include "run/members.h"

struct tsi_picks;

/*
 * By the weights of x.  Takes 8 bytes of memory a sample, and 12 more until it
 * returns; of more than 2^32 samples 12 and 16.  Fails with EARG (there are no
 * weights), EDATA (a weight is none, all are 0), ENOMEM.
 */
int tsi_picks_by_weight(const struct tsi_index *x, uint64_t seed,
			struct tsi_picks **out);

/* A cell of the table for n samples has 2^bits units. */
unsigned tsi_picks_bits(uint64_t n);

/* tsi_picks_by_weight() with such cells.  Fewer than 32 bits have the table take
 * numbers of 64 bits. */
int tsi_picks_in_cells(const struct tsi_index *x, uint64_t seed, unsigned bits,
		       struct tsi_picks **out);

/*
 * By the classes of x, of which m has the samples; m must outlive it.  Fails
 * with EARG (samples have no classes), ENOMEM.
 */
int tsi_picks_by_class(const struct tsi_index *x, const struct tsi_members *m,
		       uint64_t seed, struct tsi_picks **out);

/* NULL is allowed. */
void tsi_picks_destroy(struct tsi_picks *p);

/* The sample at a position of an epoch. */
uint64_t tsi_picks_at(const struct tsi_picks *p, uint64_t epoch,
		      uint64_t position);

#endif
