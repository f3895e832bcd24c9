/* SPDX-License-Identifier: MIT */
/*
 * production.c - what the workers have written into the base ring.
 *
 * The worker that completes a prefix moves the head itself, so publishing costs
 * no hand-over to another thread.
 */
#include "serve/production.h"

#include <stdlib.h>

#include "base/err.h"

int tsi_production_init(struct tsi_production *p, uint64_t capacity,
			struct tsi_membership *m, struct tsi_gate *gate)
{
	p->membership = m;
	p->gate = gate;
	p->capacity = capacity;
	p->done = calloc(capacity, 1);
	if (!p->done)
		return tsi_err(TSOCK_ENOMEM, "no memory for a ring of %llu",
			       (unsigned long long)capacity);
	return 0;
}

void tsi_production_fini(struct tsi_production *p)
{
	free(p->done);
}

static void advance(struct tsi_production *p)
{
	uint64_t old = tsi_membership_head(p->membership, 0), head = old;
	uint64_t claimed = tsi_membership_claimed(p->membership, 0);

	while (head < claimed && p->done[head % p->capacity]) {
		p->done[head % p->capacity] = 0;
		head++;
	}
	if (head == old)
		return;
	p->produced += head - old;
	tsi_gate_publish_base(p->gate, head);
}

void tsi_production_commit(struct tsi_production *p, uint64_t first,
			   unsigned count)
{
	for (uint64_t q = first; q < first + count; q++)
		p->done[q % p->capacity] = 1;
	if (first == tsi_membership_head(p->membership, 0))
		advance(p);
}

void tsi_production_count(struct tsi_production *p, uint64_t read_bytes,
			  uint64_t bad_samples)
{
	/* Counters: no other memory hangs on them. */
	atomic_fetch_add_explicit(&p->read_bytes, read_bytes,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&p->bad_samples, bad_samples,
				  memory_order_relaxed);
}

void tsi_production_stats(const struct tsi_production *p,
			  struct tsock_stats *st)
{
	st->produced = p->produced;
	st->read_bytes = atomic_load(&p->read_bytes);
	st->bad_samples = atomic_load(&p->bad_samples);
}
