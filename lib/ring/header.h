/* SPDX-License-Identifier: MIT */
/*
 * header.h - a ring's header as its readers see it: the words that change.
 *
 * What never changes is copied once (tsi_ring_read()).  README.md beside this
 * file has the memory orders of both sides in one place.
 */
#ifndef TSI_RING_HEADER_H
#define TSI_RING_HEADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring/futex.h"
#include "ring/layout.h"

/* The first sample that isn't published: those below may be read. */
static inline uint64_t tsi_header_head(const struct tsi_ring_shared *s)
{
	/* Pairs with the producer's release: the samples below are there. */
	return atomic_load_explicit(&s->head, memory_order_acquire);
}

/*
 * Does the producer count the reader with that number, which had that row, as
 * a reader?  One that was given up may see its slots reused, and its row given
 * to another reader.
 */
static inline bool tsi_header_stands(const struct tsi_ring_shared *s,
				     unsigned row, uint32_t reader)
{
	/* Pairs with the producer's store: slots are reused after it. */
	return reader && atomic_load_explicit(&s->reader[row],
					      memory_order_acquire) == reader;
}

/* Was that reader detached?  Its row is kept for it until it knows. */
static inline bool tsi_header_detached(const struct tsi_ring_shared *s,
				       unsigned row, uint32_t reader)
{
	return reader &&
	       atomic_load(&s->reader[row]) == (reader | TSI_ROW_DETACHED);
}

/*
 * The generation of the ring.  Call this after tsi_header_head(): a reader that
 * sees a head sees the generation in which the samples below it were made.
 */
static inline uint32_t tsi_header_generation(const struct tsi_ring_shared *s)
{
	/* Ordered by the head's acquire. */
	return atomic_load_explicit(&s->generation, memory_order_relaxed);
}

/* The half of the ring in which the samples of a generation are. */
static inline unsigned tsi_generation_half(uint32_t generation)
{
	return (generation - 1) & 1;
}

/* The current generation; *since becomes its first sample. */
static inline uint32_t
tsi_header_read_generation(const struct tsi_ring_shared *s, uint64_t *since)
{
	uint32_t g, again = atomic_load(&s->generation);
	unsigned tries = 0;

	/* since[g & 1] changes only when generation g is over.  A producer
	 * that changes it all the time lies. */
	do {
		g = again;
		*since = atomic_load(&s->since[g & 1]);
		again = atomic_load(&s->generation);
	} while (again != g && tries++ < 1000);
	return g;
}

/*
 * From which sample on all are kept for readers of the producer before that
 * have still to return: none is made that is a ring's length or more beyond it.
 * TSI_NEVER: none are.
 */
static inline uint64_t tsi_header_held(const struct tsi_ring_shared *s)
{
	return atomic_load(&s->held);
}

/*
 * The first number that no sample will have; TSI_NEVER: the stream goes on.
 * It may become less, but not below what this reader has taken.
 */
static inline uint64_t tsi_header_end(const struct tsi_ring_shared *s)
{
	return atomic_load(&s->end);
}

/* How many warnings the producer has for its readers; it only grows. */
static inline uint32_t tsi_header_warnings(const struct tsi_ring_shared *s)
{
	return atomic_load(&s->warnings);
}

/* TSI_RING_OPEN, ... */
static inline uint32_t tsi_header_state(const struct tsi_ring_shared *s)
{
	return atomic_load(&s->state);
}

/* Why, when the state is FAILED; up to TSI_RING_ERROR bytes. */
static inline const char *tsi_header_error(const struct tsi_ring_shared *s)
{
	return s->error;
}

/* The bit of the word on which a row's reader sleeps. */
static inline uint32_t tsi_row_bit(unsigned row)
{
	return UINT32_C(1) << row % TSI_ROWS_A_WORD;
}

/*
 * To sleep until the row is woken: count the wake-ups of the rows that share
 * its word, look at the head, sleep if there was none since, at most
 * timeout_ms.
 */
static inline uint32_t tsi_header_wakes(const struct tsi_ring_shared *s,
					unsigned row)
{
	return atomic_load(&s->wake[row / TSI_ROWS_A_WORD]);
}

static inline void tsi_header_sleep(const struct tsi_ring_shared *s,
				    unsigned row, uint32_t seen, int timeout_ms)
{
	tsi_futex_wait_bits(&s->wake[row / TSI_ROWS_A_WORD], seen,
			    tsi_row_bit(row), timeout_ms);
}

/*
 * Must a reader that moved its tail from old to now write the eventfd?  Call
 * this after the tail's store and a seq_cst fence.
 */
static inline bool tsi_header_notifies(const struct tsi_ring_shared *s,
				       uint64_t old, uint64_t now)
{
	/* The caller's fence orders these loads after the tail's store. */
	uint64_t gate =
		atomic_load_explicit(&s->gate_want, memory_order_relaxed);
	uint64_t front =
		atomic_load_explicit(&s->front_want, memory_order_relaxed);
	uint64_t start =
		atomic_load_explicit(&s->start_want, memory_order_relaxed);

	return (old <= gate && gate < now) || (old < front && front <= now) ||
	       (old <= start && start < now);
}

#endif
