/* SPDX-License-Identifier: MIT */
/*
 * order.h - which sample of the data set has which position in an epoch.
 *
 * A pure function of (options, epoch, position): nothing depends on what was
 * asked before, or by which thread.
 *
 *   philox      A fresh uniform shuffle per epoch, from a counter-based
 *               generator keyed by the seed.
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
 * Sharded: this rank's part of every epoch.  The epoch's order is padded by its
 * own first samples to a multiple of world; the rank has the positions rank,
 * rank + world, ...  With philox and several segments each rank's samples are
 * dealt once, by the seed, and the segments are made within them: a rank meets
 * the same samples in every epoch, else a segment could not hold the same
 * samples in every epoch.
 */
#ifndef TSI_DATA_ORDER_H
#define TSI_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_order;

enum tsi_order_kind {
	TSI_PHILOX,
	TSI_TORCH,
	TSI_SEQUENTIAL,
};

struct tsi_order_opts {
	enum tsi_order_kind kind;
	uint64_t seed;
	uint64_t count;    /* samples in the data set, at least 1 */
	uint32_t segments; /* 0 means 1 */
	bool sharded;
	uint32_t rank; /* below world; both are used when sharded */
	uint32_t world;
};

/*
 * Fails with EARG (more segments than positions, segments with torch, a rank
 * outside its world, an empty data set), ENOTSUP (too many samples for the
 * kind), ENOMEM.
 */
int tsi_order_create(const struct tsi_order_opts *opts, struct tsi_order **out);

/* NULL is allowed. */
void tsi_order_destroy(struct tsi_order *o);

/* Positions in an epoch: count, or ceil(count / world) when sharded. */
uint64_t tsi_order_epoch_len(const struct tsi_order *o);

/* First position of every segment, and the epoch's length: segments + 1. */
int tsi_order_segment_bounds(const struct tsi_order *o, uint64_t *bounds);

/*
 * The data set's index at a position.  Any thread.  The first call in an epoch
 * may shuffle it (milliseconds per million samples); a call in an epoch's
 * second half may prepare the next, so that its first call doesn't have to.
 * Fails with EARG for a position outside the epoch.
 */
int tsi_order_at(struct tsi_order *o, uint64_t epoch, uint64_t position,
		 uint64_t *index);

#endif
