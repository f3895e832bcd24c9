/* SPDX-License-Identifier: MIT */
/*
 * tail_page.h - what a reader says of itself, and what its producer reads.
 *
 * README.md beside this file has the memory orders of both sides in one place.
 */
#ifndef TSI_RING_TAIL_PAGE_H
#define TSI_RING_TAIL_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ring/layout.h"

/* ---- the consumer's side ---- */

/* The samples below tail are given back. */
static inline void tsi_tail_page_move(struct tsi_tail_page *p, uint64_t tail)
{
	/* Pairs with tsi_tail_page_tail(): our reads of the samples below come
	 * first. */
	atomic_store_explicit(&p->tail, tail, memory_order_release);
}

/* The tail that was stated last. */
static inline uint64_t tsi_tail_page_stated(const struct tsi_tail_page *p)
{
	/* A number that only grows, and that nothing else hangs on. */
	return atomic_load_explicit(&p->tail, memory_order_relaxed);
}

/*
 * The reader is about to sleep until the head is at want; 0: it is awake.  A
 * seq_cst fence has to follow before it reads the head.
 */
static inline void tsi_tail_page_sleep(struct tsi_tail_page *p, uint64_t want)
{
	/* Ordered by the caller's fence; 0 is a hint, at worst one wake-up too
	 * many. */
	atomic_store_explicit(&p->want, want, memory_order_relaxed);
}

/* The reader spins until the head is at want; 0: no more. */
static inline void tsi_tail_page_spin(struct tsi_tail_page *p, uint64_t want)
{
	/* For a program that shows what holds the reader up: no order is
	 * needed. */
	atomic_store_explicit(&p->spin, want, memory_order_relaxed);
}

/* For people: how many samples the reader took, and up to where; how long it
 * waited. */
static inline void tsi_tail_page_count(struct tsi_tail_page *p,
				       uint64_t samples, uint64_t position)
{
	/* Counters: nothing hangs on them. */
	atomic_store_explicit(&p->samples, samples, memory_order_relaxed);
	atomic_store_explicit(&p->position, position, memory_order_relaxed);
}

static inline void tsi_tail_page_waited(struct tsi_tail_page *p, uint64_t ns)
{
	/* A counter: nothing hangs on it. */
	atomic_store_explicit(&p->wait_ns, ns, memory_order_relaxed);
}

/* From now on samples of that generation may be looked at. */
static inline void tsi_tail_page_enter(struct tsi_tail_page *p,
				       uint32_t generation)
{
	atomic_store(&p->generation, generation);
	/* Pairs with the producer's fence between detaching a reader and
	 * reading its generation: either the producer sees this one, or the
	 * reader sees that it was detached. */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Name the page's owner, for a producer after this one; before any tail. */
static inline void tsi_tail_page_name(struct tsi_tail_page *p,
				      const uint8_t owner[TSI_PAGE_OWNER])
{
	memcpy(p->owner, owner, TSI_PAGE_OWNER);
}

/* The reader is none any more: it looks at no sample, and moves no tail.  The
 * eventfd has to be written after it. */
static inline void tsi_tail_page_leave(struct tsi_tail_page *p)
{
	atomic_store(&p->left, 1);
}

/* ---- the producer's side ---- */

/* Has the reader left?  Its last tail is there then. */
static inline bool tsi_tail_page_left(const struct tsi_tail_page *p)
{
	return atomic_load(&p->left);
}

/* Is it the page of that claim?  For a producer that comes after its own. */
static inline bool tsi_tail_page_is(const struct tsi_tail_page *p,
				    const uint8_t owner[TSI_PAGE_OWNER])
{
	return !memcmp(p->owner, owner, TSI_PAGE_OWNER);
}

/* The generation whose samples the reader may be looking at; 0: none yet. */
static inline uint32_t tsi_tail_page_generation(const struct tsi_tail_page *p)
{
	return atomic_load(&p->generation);
}

/* The first sample that the reader still needs, as it says. */
static inline uint64_t tsi_tail_page_tail(const struct tsi_tail_page *p)
{
	/* Pairs with tsi_tail_page_move(): the reader's last reads of the
	 * samples below come first. */
	return atomic_load_explicit(&p->tail, memory_order_acquire);
}

/*
 * The head for which the reader sleeps; 0: none.  For the thread that has
 * stored a head, and a seq_cst fence behind it.
 */
static inline uint64_t tsi_tail_page_sleeps_for(const struct tsi_tail_page *p)
{
	/* Ordered by the caller's fence. */
	return atomic_load_explicit(&p->want, memory_order_relaxed);
}

/* The head for which the reader waits, asleep or spinning; 0: none. */
static inline uint64_t tsi_tail_page_waits_for(const struct tsi_tail_page *p)
{
	uint64_t want = atomic_load(&p->want);

	return want ? want : atomic_load(&p->spin);
}

/* The reader's counters. */
static inline uint64_t tsi_tail_page_samples(const struct tsi_tail_page *p)
{
	return atomic_load(&p->samples);
}

static inline uint64_t tsi_tail_page_position(const struct tsi_tail_page *p)
{
	return atomic_load(&p->position);
}

static inline uint64_t tsi_tail_page_wait_ns(const struct tsi_tail_page *p)
{
	return atomic_load(&p->wait_ns);
}

#endif
