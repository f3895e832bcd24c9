/* SPDX-License-Identifier: MIT */
/*
 * tail.h - the tail, which follows the batches of a reader as they are
 * released.
 *
 * Batches are released in any order and by any thread, with no lock; the tail
 * moves in the order of their samples.  full, append, oldest,
 * move_position and what waits are for the thread of the handle; release and
 * advance for any thread.
 */
#ifndef TSI_CONSUMER_TAIL_H
#define TSI_CONSUMER_TAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring/header.h"
#include "ring/tail_page.h"

struct tsock_batch;

struct tsi_tail_entry {
	_Atomic bool done;
	uint64_t first;
	struct tsock_batch *batch;
};

struct tsi_tail {
	struct tsi_tail_page *page; /* that the producer reads */
	const struct tsi_ring_shared *ring;
	int event;            /* the producer's; -1: none */
	_Atomic uint64_t pos; /* first sample that isn't acquired yet */
	uint64_t published;   /* written by the thread that advances */
	_Atomic unsigned advancing;
	_Atomic bool awaited;   /* a thread sleeps on moves ... */
	_Atomic uint32_t moves; /* ... which are counted only then */
	struct tsi_tail_entry *entries;
	uint64_t nentries;
	_Atomic uint64_t appended, passed;
};

/* With place for so many batches that are not released. */
int tsi_tail_init(struct tsi_tail *t, uint64_t nentries, uint64_t start);
void tsi_tail_fini(struct tsi_tail *t);

/* From now on the producer sees it; all of these outlive the tail. */
void tsi_tail_share(struct tsi_tail *t, struct tsi_tail_page *page,
		    const struct tsi_ring_shared *ring, int event);

/* The first sample that is still needed, as the producer sees it. */
static inline uint64_t tsi_tail_shared(const struct tsi_tail *t)
{
	return tsi_tail_page_stated(t->page);
}

/* Entries are used again when the tail has moved over them. */
bool tsi_tail_full(const struct tsi_tail *t);

/*
 * The batch that begins with sample first holds the tail from now on; the
 * position follows (move_position).  Returns its ticket, for release().
 */
uint64_t tsi_tail_append(struct tsi_tail *t, uint64_t first,
			 struct tsock_batch *b);

static inline void tsi_tail_move_position(struct tsi_tail *t, uint64_t pos)
{
	/* Pairs with move_tail(). */
	atomic_store_explicit(&t->pos, pos, memory_order_release);
}

/* The oldest batch that isn't released, from *at on; NULL: none. */
struct tsock_batch *tsi_tail_oldest(struct tsi_tail *t, uint64_t *at);

/* The batch with that ticket no longer needs the ring; the tail follows. */
void tsi_tail_release(struct tsi_tail *t, uint64_t ticket);

/* The tail follows what is released, and the position. */
void tsi_tail_advance(struct tsi_tail *t);

/*
 * To sleep until it moves: expect it, look how often it has moved, see that it
 * has to be waited for, wait; expect it no more.
 */
void tsi_tail_expect(struct tsi_tail *t, bool expect);
uint32_t tsi_tail_moves(struct tsi_tail *t);
void tsi_tail_wait(struct tsi_tail *t, uint32_t seen, int timeout_ms);

#endif
