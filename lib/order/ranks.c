/* SPDX-License-Identifier: MIT */
/*
 * ranks.c - which samples of an epoch a rank reads: arithmetic alone.
 */
#include "order/ranks.h"

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

uint64_t tsi_ranks_next(const struct tsi_ranks *p, uint64_t left,
			uint64_t *first)
{
	if (left >= p->world * p->batch) {
		*first = p->rank * p->batch;
		return p->batch;
	}
	*first = 0;
	return p->drop_last ? 0 : last_part(p, left, first);
}

uint64_t tsi_ranks_batches(const struct tsi_ranks *p, uint64_t n)
{
	uint64_t block = p->world * p->batch, first;

	return n / block + (tsi_ranks_next(p, n % block, &first) != 0);
}
