/* SPDX-License-Identifier: MIT */
/*
 * claim.h - what a reader and its producer share: the ring's header, a row in
 * it, and the reader's tail page.
 *
 * The header is the producer's, mapped read-only; the tail page is this
 * process's to write.  Any thread, but for close.
 */
#ifndef TSI_CONSUMER_CLAIM_H
#define TSI_CONSUMER_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring.h"

struct tsi_claim {
	struct tsi_ring_shared *ring; /* mapped, read-only */
	size_t ring_len;
	struct tsi_tail_page *page; /* mapped */
	size_t page_len;
	uint64_t ring_id; /* a number of the ring's own; 0: not known */
	unsigned row;
	int event, producer, sock; /* -1: none */
};

/* Unmap and close all of it. */
void tsi_claim_close(struct tsi_claim *c);

/* Is the producer's process gone? */
bool tsi_claim_producer_gone(const struct tsi_claim *c);

static inline uint64_t tsi_claim_head(const struct tsi_claim *c)
{
	/* Pairs with the producer's release: the samples below are there. */
	return atomic_load_explicit(&c->ring->head, memory_order_acquire);
}

/*
 * Does the producer count this one as a reader?  One that was given up may see
 * its slots reused.
 */
static inline bool tsi_claim_stands(const struct tsi_claim *c)
{
	return atomic_load_explicit(&c->ring->row[c->row].state,
				    memory_order_acquire) == TSI_ROW_READER;
}

/* TSI_RING_OPEN, ... */
static inline uint32_t tsi_claim_ring_state(const struct tsi_claim *c)
{
	return atomic_load(&c->ring->state);
}

/* For people: how many samples were taken. */
static inline void tsi_claim_count(struct tsi_claim *c, uint64_t samples)
{
	atomic_store_explicit(&c->page->samples, samples, memory_order_relaxed);
}

#endif
