/* SPDX-License-Identifier: MIT */
/*
 * grant.c - samples that may be claimed without the server's lock.
 *
 * What was taken and what was granted are one word, so a claim is one
 * compare-and-swap, and can't go beyond the grant that it was meant for: the
 * number of a grant comes back after 2^40 others.
 */
#include "serve/grant.h"

#define BITS 12
#define PART ((UINT64_C(1) << BITS) - 1)
#define NUMBER (UINT64_C(1) << 2 * BITS)

_Static_assert(TSI_GRANT_MOST == PART, "a grant fits into its bits");

static uint64_t taken_of(uint64_t word)
{
	return word >> BITS & PART;
}

/* A word of the next number: nothing is taken. */
static uint64_t next_word(uint64_t word, uint64_t count)
{
	return (word / NUMBER + 1) * NUMBER + count;
}

void tsi_grant_init(struct tsi_grant *g, uint64_t next)
{
	atomic_init(&g->word, 0);
	atomic_init(&g->first, next);
}

unsigned tsi_grant_take(struct tsi_grant *g, unsigned want, uint64_t *first)
{
	/* Acquire pairs with tsi_grant_open(): a worker that claims a sample
	 * sees what the holder of the lock did before, to the halves of a ring
	 * say. */
	uint64_t word = atomic_load_explicit(&g->word, memory_order_acquire);
	uint64_t from;

	do {
		if (!want || want > (word & PART) - taken_of(word))
			return 0;
		/* Acquire pairs with tsi_grant_move(): if this is the first
		 * sample of a later grant, the word is a later one too, and
		 * the exchange fails. */
		from = atomic_load_explicit(&g->first, memory_order_acquire) +
		       taken_of(word);
		/* Acquire as above, for the word of a failure. */
	} while (!atomic_compare_exchange_weak_explicit(
		&g->word, &word, word + ((uint64_t)want << BITS),
		memory_order_acquire, memory_order_acquire));
	*first = from;
	return want;
}

uint64_t tsi_grant_claimed(const struct tsi_grant *g)
{
	/* Relaxed: only the holder of the lock changes first, and no memory
	 * hangs on the number of samples taken. */
	return atomic_load_explicit(&g->first, memory_order_relaxed) +
	       taken_of(atomic_load_explicit(&g->word, memory_order_relaxed));
}

uint64_t tsi_grant_close(struct tsi_grant *g)
{
	/* Relaxed: only the holder of the lock changes the number. */
	uint64_t word = atomic_load_explicit(&g->word, memory_order_relaxed);
	uint64_t next;

	/* Relaxed: tsi_grant_move() orders it before what comes then. */
	word = atomic_exchange_explicit(&g->word, next_word(word, 0),
					memory_order_relaxed);
	next = atomic_load_explicit(&g->first, memory_order_relaxed) +
	       taken_of(word);
	tsi_grant_move(g, next);
	return next;
}

void tsi_grant_move(struct tsi_grant *g, uint64_t next)
{
	/* Release pairs with tsi_grant_take(): the grant was closed before. */
	atomic_store_explicit(&g->first, next, memory_order_release);
}

void tsi_grant_open(struct tsi_grant *g, uint64_t count)
{
	/* Relaxed: as in tsi_grant_close(). */
	uint64_t word = atomic_load_explicit(&g->word, memory_order_relaxed);

	if (!count)
		return;
	/* Release pairs with tsi_grant_take(). */
	atomic_store_explicit(&g->word,
			      next_word(word, count < TSI_GRANT_MOST
						      ? count
						      : TSI_GRANT_MOST),
			      memory_order_release);
}
