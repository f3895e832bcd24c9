/* SPDX-License-Identifier: MIT */
/*
 * order.h - in which order an epoch visits the samples of a data set, and which
 * of them a rank reads: arithmetic, without a stream.  tsock.h includes this
 * header and states the rules that hold for all functions.
 *
 * For programs that want to know in advance what tsock-producer and consumers
 * do: these use the same functions.
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

/* ------------------------------------------------------------------------
 * The order of an epoch
 */

/*
 * PHILOX      For each epoch another shuffle, by the seed.  From 65,536 samples
 *             on it is a permutation that is evaluated at a position, a Feistel
 *             network that lib/order/permutation.h defines.  Its keys are numbers
 *             of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
 *             numbers: as easy as 1, 2, 3", SC 2011).  Fewer samples are shuffled
 *             by Fisher and Yates's method, by such numbers in a range as Lemire
 *             has it ("Fast random integer generation in an interval",
 *             ACM TOMACS 29, 2019).  The same holds for a segment by its length.
 *             There are up to 2^62 samples.
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
 * shard, shard + shards, and so on.  Several shards in a row, shard to shard +
 * shard_ranks - 1, are one part, which has their positions in the order of the
 * epoch.  With PHILOX and several segments the seed deals out the data set to
 * the parts once, so, and the segments are made of what a part has: in every
 * epoch it has the same samples.
 *
 * With start, the epoch start_epoch of a part is dealt anew from that position
 * of the whole order on: the rest of the order is cut as an epoch is, so that
 * position start is the first one of shard 0.  That rest is the end of the
 * part's epoch, which is as long as any; what is before it has no meaning.
 *
 * With repeat, each sample of the order comes so many times in a row; with
 * limit, only the first so many samples of the epoch that results are left.
 * Shards are those of what is left.  Neither goes with segments of a shuffle.
 */
struct tsock_order_opts {
	uint32_t size;     /* sizeof(struct tsock_order_opts), by the macro */
	uint32_t kind;     /* enum tsock_order_kind */
	uint64_t seed;     /* TORCH uses its lower 32 bits, as PyTorch does */
	uint64_t count;    /* samples in the data set, at least 1 */
	uint32_t segments; /* of an epoch; 0 means 1; TORCH has no more */
	uint32_t shard;    /* below shards ... */
	uint32_t shards;   /* ... of so many; 0: all of the data set */
	uint32_t repeat;   /* times that each sample comes; 0 means 1 */
	uint64_t limit;    /* samples that are left of an epoch; 0: all */
	uint32_t shard_ranks; /* shards from shard on; 0 means 1 */
	uint32_t reserved;    /* 0 */
	uint64_t start_epoch; /* dealt anew from ... */
	uint64_t start;       /* ... this position on; 0: none is */
};
#define TSOCK_ORDER_OPTS_INIT \
	{ \
		sizeof(struct tsock_order_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0 \
	}

/*
 * Samples in an epoch: count times repeat, limit at most, and of that the part
 * of a shard, rounded up.  0, and a message, where the options name no order, as
 * tsock_order() says.
 */
TSOCK_API uint64_t tsock_order_len(const struct tsock_order_opts *opts);

/*
 * Write the order of an epoch (counted from 0): index[i] is the number, below
 * count, of the data set's sample that comes i-th in the epoch.  index has room
 * for len numbers, at least tsock_order_len(opts); no more than that are
 * written.  Takes 10 to 40 ms for a million samples and, until it returns, no
 * memory, or 256 KiB where there are fewer than 65,536 samples or a segment has
 * fewer; with TORCH 4 bytes a sample.  TORCH without shards draws the numbers of
 * all earlier epochs as well, which takes a millisecond more for a million
 * samples in each.  Fails with EARG (an unknown kind, no samples, a shard that
 * doesn't exist, more segments than samples in an epoch, segments with TORCH or
 * of a shuffle with repeat or limit, a limit above the samples of an epoch, too
 * little room), ENOTSUP (more than 2^62 samples that are shuffled, 214,748,364
 * or more with TORCH; an epoch so late that TORCH would draw more than 2^40
 * numbers for it; an epoch of more than 2^63 samples), ENOMEM; then index is
 * unchanged.
 */
TSOCK_API int tsock_order(const struct tsock_order_opts *opts, uint64_t epoch,
			  uint64_t *index, uint64_t len);

/*
 * The same for n positions of the epoch alone, first, first + stride, and so on:
 * index[i] is the sample that comes at position first + i * stride.  With PHILOX
 * and 65,536 samples or more (a segment: as many) and in the data set's own order
 * this takes below 0.1 us a position, wherever it is; otherwise all of the epoch
 * or segment is shuffled in each call.  Fails as tsock_order() does, and with
 * EARG for a position that isn't in the epoch.
 */
TSOCK_API int tsock_order_at(const struct tsock_order_opts *opts,
			     uint64_t epoch, uint64_t first, uint64_t stride,
			     uint64_t *index, uint64_t n);

/* ------------------------------------------------------------------------
 * The part of a rank
 */

/*
 * One rank of a job that trains one model, as tsock_opts and tsock_info
 * describe it: members of the same name have the same meaning.  How ranks share
 * an epoch is said above tsock_opts.
 */
struct tsock_rank_opts {
	uint32_t size;       /* sizeof(struct tsock_rank_opts), by the macro */
	uint32_t rank;       /* below world */
	uint32_t world;      /* 0 means 1 */
	uint32_t batch_size; /* samples per batch of one rank, at least 1 */
	uint32_t flags;      /* TSOCK_DROP_LAST, TSOCK_EVEN */
	uint32_t sequential; /* 1: an evaluation stream */
	uint64_t padding;    /* of an epoch: tsock_part_padding(), or with
			      * TSOCK_DROP_LAST tsock_part_last_row() */
};
#define TSOCK_RANK_OPTS_INIT \
	{ \
		sizeof(struct tsock_rank_opts), 0, 0, 0, 0, 0, 0 \
	}

/*
 * A rank's next batch, where left samples of an epoch remain for all ranks
 * together: *count samples, 0 at the end; *first counts how many of the
 * remaining samples come before its first one.  When all ranks have taken their
 * batch, world * batch_size fewer samples remain, or none.
 * Fails with EARG (a rank that isn't below world, batch_size 0, another flag);
 * then *first and *count are unchanged.
 */
TSOCK_API int tsock_rank_next(const struct tsock_rank_opts *opts, uint64_t left,
			      uint64_t *first, uint64_t *count);

/*
 * Batches of a rank in an epoch of len samples.  0, and a message, where
 * tsock_rank_next() fails.
 */
TSOCK_API uint64_t tsock_rank_batches(const struct tsock_rank_opts *opts,
				      uint64_t len);

/* ------------------------------------------------------------------------
 * The part of a producer
 */

/*
 * The part that a stream is of the epochs of a job on several machines, as
 * tsock_info describes it: members of the same name have the same meaning.  How
 * an epoch is cut into parts is said above tsock_order_opts.
 *
 * A place in the whole order is the same for all parts, and for any number of
 * ranks: so a position that one job has saved is one where another job with
 * other parts may go on.
 */
struct tsock_part_opts {
	uint32_t size; /* sizeof(struct tsock_part_opts), by the macro */
	uint32_t shard, shard_ranks, shards; /* shards 0: all of the epoch */
	uint64_t whole_len;                  /* at least 1 */
	uint64_t start_epoch, start;
};
#define TSOCK_PART_OPTS_INIT \
	{ \
		sizeof(struct tsock_part_opts), 0, 0, 0, 0, 0, 0 \
	}

/*
 * Samples in an epoch of the part, shard_ranks * ceil(whole_len / shards); of
 * these, how many of the last ones other parts have, too: who reads each sample
 * once leaves them out.  0, and a message, where the options name no part.
 */
TSOCK_API uint64_t tsock_part_len(const struct tsock_part_opts *opts);
TSOCK_API uint64_t tsock_part_padding(const struct tsock_part_opts *opts,
				      uint64_t epoch);

/*
 * How many samples the part's last row (one for each of its ranks) has in an
 * epoch, if it isn't whole in all parts; else 0.  With TSOCK_DROP_LAST this row
 * doesn't count, so that all ranks drop the same batches, and those that the
 * ranks of one producer drop.  0, and a message, where the options name no
 * part.
 */
TSOCK_API uint64_t tsock_part_last_row(const struct tsock_part_opts *opts,
				       uint64_t epoch);

/*
 * *position is how far all parts together have come in the whole order of an
 * epoch when each of their ranks has read as many samples as those of this part
 * have, samples in all, counted from the start of the part's epoch.  Fails with
 * EARG where that is in the middle of a row, or before the epoch's start.
 */
TSOCK_API int tsock_part_position(const struct tsock_part_opts *opts,
				  uint64_t epoch, uint64_t samples,
				  uint64_t *position);

/*
 * The other way round: *samples is for tsock_resume().  Fails with EREFUSED
 * where the part isn't cut at that position: the job needs a producer whose
 * epoch is dealt anew from there (tsock-producer --start EPOCH:POSITION).
 */
TSOCK_API int tsock_part_samples(const struct tsock_part_opts *opts,
				 uint64_t epoch, uint64_t position,
				 uint64_t *samples);

#ifdef __cplusplus
}
#endif

#endif
