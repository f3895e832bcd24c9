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

#include "consumer/tail.h"
#include "ring/header.h"
#include "ring/tail_page.h"

struct tsi_claim {
	struct tsi_ring_shared *ring; /* mapped, read-only */
	size_t ring_len;
	struct tsi_tail_page *page; /* mapped */
	size_t page_len;
	uint64_t ring_id; /* a number of the ring's own; 0: not known */
	unsigned row;
	uint32_t reader;           /* what the row says while it is ours */
	int event, producer, sock; /* -1: none */
	/* The page's descriptor, unused here.  The next producer sees by it
	 * how far this consumer is; -1: none. */
	int page_fd;
	/* The generation of the ring that was entered last; 0: none yet. */
	uint32_t generation;
	bool detached; /* that was seen once: it stays so */
};

/* One that has nothing to close. */
static inline struct tsi_claim tsi_claim_none(void)
{
	return (struct tsi_claim){
		.event = -1, .producer = -1, .sock = -1, .page_fd = -1
	};
}

/* Unmap and close all of it. */
void tsi_claim_close(struct tsi_claim *c);

/* This was the last: the producer sees it as soon as it runs, without LEAVE.
 * Any thread; never waits. */
void tsi_claim_leave(const struct tsi_claim *c);

/* Is the producer's process gone? */
bool tsi_claim_producer_gone(const struct tsi_claim *c);

/* Has the producer died, or shut down?  Then nobody answers its consumers. */
bool tsi_claim_abandoned(const struct tsi_claim *c);

static inline uint64_t tsi_claim_head(const struct tsi_claim *c)
{
	return tsi_header_head(c->ring);
}

/*
 * Does the producer count this one as a reader?  One that was given up may see
 * its slots reused, and its row given to another reader.
 */
static inline bool tsi_claim_stands(const struct tsi_claim *c)
{
	return tsi_header_stands(c->ring, c->row, c->reader);
}

/*
 * Was this one detached, since others had to wait for it?  By the thread of the
 * handle.  A producer that finds the reader in a newer generation undoes that
 * in the next moment; where it was seen it counts all the same, so that all who
 * ask get one answer.
 */
static inline bool tsi_claim_detached(struct tsi_claim *c)
{
	c->detached |= tsi_header_detached(c->ring, c->row, c->reader);
	return c->detached;
}

/*
 * Is the ring in another generation than the one that was entered?  Then
 * enter() has to be called before samples below need, which are published, are
 * looked at; by the thread of the handle.  True: they are in half *half from
 * *since on, and in the other half before it.  False: nothing has changed for
 * these.
 */
static inline bool tsi_claim_turned(const struct tsi_claim *c)
{
	return tsi_header_generation(c->ring) != c->generation;
}
bool tsi_claim_enter(struct tsi_claim *c, uint64_t need, unsigned *half,
		     uint64_t *since);

/* The first sample that the stream will never have; it may become less. */
static inline uint64_t tsi_claim_end(const struct tsi_claim *c)
{
	return tsi_header_end(c->ring);
}

/* How many warnings the producer has for its readers. */
static inline uint32_t tsi_claim_warnings(const struct tsi_claim *c)
{
	return tsi_header_warnings(c->ring);
}

/* TSI_RING_OPEN, ... */
static inline uint32_t tsi_claim_ring_state(const struct tsi_claim *c)
{
	return tsi_header_state(c->ring);
}

/* TSOCK_ESTREAM: what the producer of that stream wrote when it stopped. */
int tsi_claim_err_stopped(const struct tsi_claim *c, const char *stream);

/* TSOCK_EENDED: the stream was stopped for good; the producer wrote by whom. */
int tsi_claim_err_ended(const struct tsi_claim *c, const char *stream);

/* From which sample on all are kept for readers of the producer before that
 * have still to return; TSI_NEVER: none are. */
static inline uint64_t tsi_claim_held(const struct tsi_claim *c)
{
	return tsi_header_held(c->ring);
}

/* Are both claims on one ring? */
static inline bool tsi_claim_same_ring(const struct tsi_claim *a,
				       const struct tsi_claim *b)
{
	return a->ring_id == b->ring_id;
}

/* From now on the producer sees that tail; the claim outlives it. */
static inline void tsi_claim_share_tail(const struct tsi_claim *c,
					struct tsi_tail *t)
{
	tsi_tail_share(t, c->page, c->ring, c->event);
}

/* For people: how many samples were taken, and up to where; how long they were
 * waited for. */
static inline void tsi_claim_count(struct tsi_claim *c, uint64_t samples,
				   uint64_t position)
{
	tsi_tail_page_count(c->page, samples, position);
}
void tsi_claim_count_wait(struct tsi_claim *c, uint64_t wait_ns);

/*
 * To sleep until the head is need or more: want it, look how often the producer
 * has woken this row, see that the head isn't there, sleep; want no more.
 */
void tsi_claim_want(struct tsi_claim *c, uint64_t need);
void tsi_claim_want_no_more(struct tsi_claim *c);
uint32_t tsi_claim_wakes(const struct tsi_claim *c);
void tsi_claim_sleep(const struct tsi_claim *c, uint32_t seen, int timeout_ms);

/* This thread spins for sample need - 1; 0: no more. */
void tsi_claim_spin(struct tsi_claim *c, uint64_t need);

#endif
