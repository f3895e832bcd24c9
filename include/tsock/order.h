/* SPDX-License-Identifier: MIT */
/*
 * order.h - in which order an epoch visits the samples of a data set:
 * arithmetic, without a stream.  tsock.h includes this, and says what holds for
 * all.
 *
 * It is what tsock-producer does itself, for programs that want to know it.
 * Everything here is a function of its arguments alone, and may be called by
 * any thread, and in a forked child.
 */
#ifndef TSOCK_ORDER_H
#define TSOCK_ORDER_H

#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PHILOX      For each epoch a uniform shuffle, Fisher and Yates's.  Its random
 *             numbers are those of Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
 *             "Parallel random numbers: as easy as 1, 2, 3", SC 2011), keyed by
 *             the seed, in a range as Lemire has it ("Fast random integer
 *             generation in an interval", ACM TOMACS 29, 2019).
 * TORCH       What PyTorch visits in the epoch-th full pass over
 *             DataLoader(ds, shuffle=True,
 *                        generator=torch.Generator().manual_seed(seed)),
 *             or, with shards, what DistributedSampler(ds, shards, shard,
 *             seed=seed) visits after set_epoch(epoch).
 * SEQUENTIAL  The data set's own order; with shards, what
 *             DistributedSampler(ds, shards, shard, shuffle=False) visits.
 *
 * Values are ABI: append, never renumber.
 */
enum tsock_order_kind {
	TSOCK_ORDER_PHILOX = 0,
	TSOCK_ORDER_TORCH = 1,
	TSOCK_ORDER_SEQUENTIAL = 2,
};

/*
 * Segments: with PHILOX and more than one of them, the seed deals out the data
 * set to them once, and each epoch visits them in the same order and shuffles
 * within each.  They are equally long, but for the first ones, which have one
 * sample more where the length of an epoch is no multiple of their number.
 *
 * Shards: the epoch's order, with its own first samples once more at the end
 * until its length is a multiple of shards, has a part in each shard: positions
 * shard, shard + shards, and so on.  With PHILOX and several segments the seed
 * deals out the data set to the shards once, so, and the segments are made of
 * what a shard has: in every epoch it has the same samples.
 */
struct tsock_order_opts {
	uint32_t size;     /* sizeof(struct tsock_order_opts), by the macro */
	uint32_t kind;     /* enum tsock_order_kind */
	uint64_t seed;     /* TORCH uses its lower 32 bits, as PyTorch does */
	uint64_t count;    /* samples in the data set, at least 1 */
	uint32_t segments; /* of an epoch; 0 means 1; TORCH has no more */
	uint32_t shard;    /* below shards ... */
	uint32_t shards;   /* ... of so many; 0: all of the data set */
	uint32_t reserved; /* 0 */
};
#define TSOCK_ORDER_OPTS_INIT \
	{ \
		sizeof(struct tsock_order_opts), 0, 0, 0, 0, 0, 0, 0 \
	}

/*
 * Samples in an epoch: count, or ceil(count / shards).  0, and a message, where
 * the options name no order, as tsock_order() says.
 */
TSOCK_API uint64_t tsock_order_len(const struct tsock_order_opts *opts);

/*
 * Write the order of an epoch (counted from 0): index[i] is the number, below
 * count, of the sample of the data set that is the epoch's i-th.  index has
 * room for len of them, at least tsock_order_len() of the options; no more are
 * written.  Takes 10 to 40 ms for a million samples, and until it returns up to
 * 12 bytes of memory a sample; TORCH without shards draws the numbers of all
 * epochs before this one, a millisecond more for a million samples in each.
 * Fails with EARG (an unknown kind, no samples, a shard that isn't there, more
 * segments than samples in an epoch, segments with TORCH, too little room),
 * ENOTSUP (2^32 samples or more that are shuffled, 214,748,364 or more with
 * TORCH; an epoch so late that TORCH would draw more than 2^40 numbers for it),
 * ENOMEM; index is as it was then.
 */
TSOCK_API int tsock_order(const struct tsock_order_opts *opts, uint64_t epoch,
			  uint64_t *index, uint64_t len);

#ifdef __cplusplus
}
#endif

#endif
