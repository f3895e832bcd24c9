/* SPDX-License-Identifier: MIT */
/*
 * order.h - which sample of the data set has which position in an epoch:
 * arithmetic alone, a pure function of (options, epoch, position).
 *
 *   philox      A fresh shuffle per epoch, by a counter-based generator keyed
 *               by the seed: from 2^16 samples on a permutation that is evaluated
 *               at a position (permutation.h), else Fisher and Yates's.
 *   torch       Epoch e is what the e-th full pass over
 *               DataLoader(ds, shuffle=True,
 *                          generator=torch.Generator().manual_seed(seed))
 *               visits; sharded, what DistributedSampler(ds, world, rank,
 *               shuffle=True, seed=seed) visits after set_epoch(e).
 *   sequential  The data set's own order; sharded, what
 *               DistributedSampler(shuffle=False) visits.
 *
 * Segments: an epoch is cut into nearly equal runs of positions.  With philox
 * and more than one of them, the data set is dealt out to the segments once, by
 * the seed; every epoch visits the segments in the same order and shuffles
 * within each, so that an epoch may be begun at any segment's start.
 *
 * Sharded: some ranks' part of every epoch, as part.h says.  With philox and
 * several segments each part's samples are dealt once, by the seed, and the
 * segments are made within them: a part has the same samples in every epoch,
 * else a segment could not hold the same samples in every epoch.
 *
 * Repeated and limited: the epoch is its order with each sample so many times in
 * a row, of which the first `limit` are left.  What is sharded is the epoch that
 * remains.  Neither is made with dealt samples.
 *
 * So a shuffled epoch has items, of which a position has the one of number
 * tsi_order_item(); places.h says which index of the data set that is.  In the
 * sequential order the item's number is the index itself.
 */
#ifndef TSI_ORDER_ORDER_H
#define TSI_ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "order/mt19937.h"
#include "order/part.h"
#include "tsock/tsock.h"

struct tsi_order_opts {
	enum tsock_order_kind kind;
	uint64_t seed;
	uint64_t count;    /* samples in the data set, at least 1 */
	uint32_t segments; /* 0 means 1 */
	struct tsi_part part;
	uint32_t repeat; /* how often each sample comes; 0 means 1 */
	uint64_t limit;  /* samples that are left of an epoch; 0: all */
};

/*
 * Look whether there is such an order; segments and repeat of 0 become 1.  The
 * other functions take only options that passed here.
 * Fails with EARG (more segments than positions, segments with torch, or of a
 * shuffle that is repeated or limited, no such part, an epoch dealt anew whose
 * samples are dealt once, an empty data set, a limit above what there is), ENOTSUP (too many samples for the kind, an
 * epoch of more than 2^63).
 */
int tsi_order_check(struct tsi_order_opts *o);

/*
 * Positions in an epoch: count times repeat, limit at most; when sharded, those
 * of the part.  For any options whose count is at least 1.
 */
uint64_t tsi_order_len(const struct tsi_order_opts *o);

/* The same before it is sharded. */
uint64_t tsi_order_whole(const struct tsi_order_opts *o);

/* First position of a segment; the epoch's length for segment = segments. */
uint64_t tsi_order_bound(const struct tsi_order_opts *o, uint32_t segment);

/* Which of the times that its sample comes a position is, from 0. */
uint64_t tsi_order_time(const struct tsi_order_opts *o, uint64_t epoch,
			uint64_t position);

/* The number of a position's item. */
uint64_t tsi_order_item(const struct tsi_order_opts *o, uint64_t epoch,
			uint64_t position);

/* Positions first, first + stride, ... */
struct tsi_positions {
	uint64_t first, stride;
};

/* Those of n positions. */
void tsi_order_run(const struct tsi_order_opts *o, uint64_t epoch,
		   const struct tsi_positions *run, unsigned n, uint64_t *item);

/* Are samples dealt out to ranks and segments once, by the seed? */
bool tsi_order_is_dealt(const struct tsi_order_opts *o);

/* The number, among all that are dealt, of this rank's k-th item. */
uint64_t tsi_order_dealt(const struct tsi_order_opts *o, uint64_t k);

/*
 * Which order PHILOX gives these samples, as an identity says it: 0 if it is as
 * it has always been, 2 if it is the one that permutation.h evaluates.
 */
unsigned tsi_order_version(const struct tsi_order_opts *o);

/*
 * torch's generator at the start of an epoch.  Where torch makes a new one for
 * each epoch, when sharded, it is that epoch's; else it is epoch 0's, and
 * tsi_order_torch_pass() takes it from the start of one epoch to that of the
 * next.  Returns the epoch at whose start it is.
 */
uint64_t tsi_order_torch_start(const struct tsi_order_opts *o, uint64_t epoch,
			       struct tsi_mt19937 *mt);
void tsi_order_torch_pass(const struct tsi_order_opts *o,
			  struct tsi_mt19937 *mt);

/* Write the items of the epoch at whose start the generator is. */
void tsi_order_torch(const struct tsi_order_opts *o, struct tsi_mt19937 *mt,
		     uint32_t *item);

#endif
