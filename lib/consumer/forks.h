/*
 * forks.h - batches in a forked child stay what they were at the fork.
 *
 * A fork copies a process's private memory, but a batch in hand shows the
 * ring, and in the child it would go on showing it when the parent has given
 * the batch back and the ring goes round.  So whoever forks makes the held
 * batches of all readers private first, at the cost of copying them; where
 * they are read-only, the child gets a copy at the same address.
 *
 * One lock for the process: a fork has it from before the batches are looked
 * at until it is over, in the parent as in the child.  It is also taken to
 * evict a batch, never to acquire or to release one.
 */
#ifndef TSI_CONSUMER_FORKS_H
#define TSI_CONSUMER_FORKS_H

#include <stdatomic.h>
#include <stdbool.h>

struct tsi_reader;

/* From now on forks see to its batches; no more. */
void tsi_forks_watch(struct tsi_reader *r);
void tsi_forks_forget(struct tsi_reader *r);

void tsi_forks_lock(void);
void tsi_forks_unlock(void);

extern _Atomic bool tsi_forks_now;

/* Is another thread forking?  Asked after a batch was marked as held. */
static inline bool tsi_forks_going_on(void)
{
	return atomic_load(&tsi_forks_now);
}

/* Wait until it isn't. */
void tsi_forks_await(void);

#endif
