/* SPDX-License-Identifier: MIT */
/*
 * opts.c - what a consumer's options may be.
 */
#include "consumer/opts.h"

#include "base/err.h"

int tsi_opts_check(const struct tsock_opts *o)
{
	if (!o->batch_size)
		return tsi_err(TSOCK_EARG, "batch_size is 0: it must be 1 or "
					   "more");
	if (o->join > TSOCK_JOIN_NOW)
		return tsi_err(TSOCK_EARG,
			       "join is %u: use TSOCK_JOIN_EPOCH, "
			       "_SEGMENT or _NOW",
			       o->join);
	if (o->between > TSOCK_BETWEEN_LEAVE)
		return tsi_err(TSOCK_EARG,
			       "between is %u: use TSOCK_BETWEEN_AUTO, _HOLD "
			       "or _LEAVE",
			       o->between);
	if (o->rank && o->rank >= o->world)
		return tsi_err(TSOCK_EARG,
			       "rank %u of world %u: ranks go from 0 to world "
			       "- 1",
			       o->rank, o->world);
	if (o->world > 1 && o->join == TSOCK_JOIN_NOW)
		return tsi_err(TSOCK_EARG,
			       "join is TSOCK_JOIN_NOW with %u ranks: they "
			       "begin together, at the start of an epoch or "
			       "of a segment",
			       o->world);
	if (o->flags & ~(TSOCK_WRITABLE | TSOCK_DROP_LAST | TSOCK_SPIN |
			 TSOCK_GPU_STORED | TSOCK_EVEN | TSOCK_CONTINUE))
		return tsi_err(TSOCK_EARG, "flags 0x%x has unknown bits",
			       o->flags);
	return 0;
}

struct tsi_ranks tsi_opts_ranks(const struct tsock_opts *o, bool sequential)
{
	return (struct tsi_ranks){
		.rank = o->rank,
		.world = o->world ? o->world : 1,
		.once = sequential && !(o->flags & TSOCK_EVEN),
		.drop_last = o->flags & TSOCK_DROP_LAST,
		.batch = o->batch_size,
	};
}
