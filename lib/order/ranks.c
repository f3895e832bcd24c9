/* SPDX-License-Identifier: MIT */
/*
 * ranks.c - which samples of an epoch a rank reads: arithmetic alone.
 */
#include "order/ranks.h"

#include "base/err.h"
#include "base/sized.h"
#include "tsock/tsock.h"

uint64_t tsi_ranks_block(const struct tsi_ranks *p, uint64_t left)
{
	uint64_t block = p->world * p->batch;

	return left < block ? left : block;
}

/* The parts of the last samples, which are no whole block. */
static uint64_t last_part(const struct tsi_ranks *p, uint64_t left,
			  uint64_t *first)
{
	uint64_t part = left / p->world, more = left % p->world;

	if (p->once) {
		*first = p->rank * part + (p->rank < more ? p->rank : more);
		return part + (p->rank < more);
	}
	part += more != 0;
	*first = p->rank * part;
	if (*first > left - part)
		*first = left - part;
	return part;
}

static uint64_t without_padding(const struct tsi_ranks *p, uint64_t n)
{
	if (!p->once && !p->drop_last)
		return n;
	return n > p->padding ? n - p->padding : 0;
}

/* The rank's part of the first block of what is left. */
static uint64_t part_of(const struct tsi_ranks *p, uint64_t left,
			uint64_t *first)
{
	if (left >= p->world * p->batch) {
		*first = p->rank * p->batch;
		return p->batch;
	}
	*first = 0;
	return p->drop_last ? 0 : last_part(p, left, first);
}

uint64_t tsi_ranks_next(const struct tsi_ranks *p, uint64_t left,
			uint64_t *first)
{
	return part_of(p, without_padding(p, left), first);
}

uint64_t tsi_ranks_run(const struct tsi_ranks *p, uint64_t n, uint64_t at,
		       bool *own)
{
	uint64_t block = at - at % (p->world * p->batch), left = n - block;
	uint64_t first, count = tsi_ranks_next(p, left, &first);
	uint64_t begin = block + first, end = begin + count;

	*own = count && at >= begin && at < end;
	if (*own)
		return end - at;
	if (count && at < begin)
		return begin - at;
	return block + tsi_ranks_block(p, left) - at;
}

uint64_t tsi_ranks_batches(const struct tsi_ranks *p, uint64_t n)
{
	uint64_t block = p->world * p->batch, first;

	n = without_padding(p, n);
	return n / block + (part_of(p, n % block, &first) != 0);
}

static int options(const char *call, const struct tsock_rank_opts *opts,
		   struct tsi_ranks *out)
{
	struct tsock_rank_opts o = TSOCK_RANK_OPTS_INIT;
	int err = tsi_sized_read(call, &tsi_sized_rank_opts, opts, &o);

	if (err)
		return err;
	if (!o.world)
		o.world = 1;
	if (o.rank >= o.world)
		return tsi_err(TSOCK_EARG,
			       "%s: rank %u of world %u: ranks go from 0 to "
			       "world - 1",
			       call, o.rank, o.world);
	if (!o.batch_size)
		return tsi_err(TSOCK_EARG,
			       "%s: opts.batch_size is 0: a batch has at least "
			       "one sample",
			       call);
	if (o.flags & ~(TSOCK_DROP_LAST | TSOCK_EVEN))
		return tsi_err(TSOCK_EARG,
			       "%s: opts.flags is 0x%x: only TSOCK_DROP_LAST "
			       "and TSOCK_EVEN matter to a rank's part",
			       call, o.flags);
	*out = (struct tsi_ranks){
		.rank = o.rank,
		.world = o.world,
		.once = o.sequential && !(o.flags & TSOCK_EVEN),
		.drop_last = o.flags & TSOCK_DROP_LAST,
		.batch = o.batch_size,
		.padding = o.padding,
	};
	return 0;
}

int tsock_rank_next(const struct tsock_rank_opts *opts, uint64_t left,
		    uint64_t *first, uint64_t *count)
{
	struct tsi_ranks p;
	int err = options("tsock_rank_next", opts, &p);

	if (err)
		return err;
	if (!first || !count)
		return tsi_err(TSOCK_EARG, "tsock_rank_next: %s is NULL",
			       first ? "count" : "first");
	*count = tsi_ranks_next(&p, left, first);
	return 0;
}

uint64_t tsock_rank_batches(const struct tsock_rank_opts *opts, uint64_t len)
{
	struct tsi_ranks p;

	if (options("tsock_rank_batches", opts, &p))
		return 0;
	return tsi_ranks_batches(&p, len);
}
