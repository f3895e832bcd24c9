/* SPDX-License-Identifier: MIT */
/*
 * fork.h - is this still the process that opened a handle, or a child of it?
 *
 * Every process has a generation, and a forked child has a higher one than its
 * parent.  A handle keeps the generation in which it was opened; comparing the
 * two is one load and no system call.
 */
#ifndef TSI_BASE_FORK_H
#define TSI_BASE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

/* This process's generation; the first call starts the counting. */
unsigned tsi_fork_generation(void);

/* Where the generation lies; for tsi_fork_since() alone. */
extern _Atomic unsigned *tsi_fork_word;

/* Is this process a child, forked since that generation was read? */
static inline bool tsi_fork_since(unsigned generation)
{
	/* The word changes only in a child that has no other thread yet. */
	return atomic_load_explicit(tsi_fork_word, memory_order_relaxed) !=
	       generation;
}

/* Set the message of TSOCK_EFORK, and return that code. */
int tsi_fork_err(void);

#endif
