/* SPDX-License-Identifier: MIT */
/*
 * busy.h - which pages of a window live batches touch: a bit for each.
 *
 * Setting them is the handle's thread's, clearing anybody's, and last of all:
 * then the pages show the ring again.
 */
#ifndef TSI_CONSUMER_BUSY_H
#define TSI_CONSUMER_BUSY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those of word i that are in lo..hi-1. */
static inline uint64_t tsi_busy_bits(size_t i, size_t lo, size_t hi)
{
	uint64_t m = ~UINT64_C(0);

	if (i == lo / 64)
		m &= ~UINT64_C(0) << lo % 64;
	if (i == (hi - 1) / 64)
		m &= ~UINT64_C(0) >> (63 - (hi - 1) % 64);
	return m;
}

static inline bool tsi_busy_any(_Atomic uint64_t *w, size_t lo, size_t hi)
{
	for (size_t i = lo / 64; i <= (hi - 1) / 64; i++)
		/* Pairs with tsi_busy_clear(): then the pages are reset. */
		if (atomic_load_explicit(&w[i], memory_order_acquire) &
		    tsi_busy_bits(i, lo, hi))
			return true;
	return false;
}

static inline void tsi_busy_set(_Atomic uint64_t *w, size_t lo, size_t hi)
{
	for (size_t i = lo / 64; i <= (hi - 1) / 64; i++)
		/* Read by this thread alone. */
		atomic_fetch_or_explicit(&w[i], tsi_busy_bits(i, lo, hi),
					 memory_order_relaxed);
}

static inline void tsi_busy_clear(_Atomic uint64_t *w, size_t lo, size_t hi)
{
	for (size_t i = lo / 64; i <= (hi - 1) / 64; i++)
		/* Pairs with tsi_busy_any(). */
		atomic_fetch_and_explicit(&w[i], ~tsi_busy_bits(i, lo, hi),
					  memory_order_release);
}

#endif
