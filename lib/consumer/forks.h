/* SPDX-License-Identifier: MIT */
/*
 * forks.h - batches in a forked child stay what they were at the fork.
 *
 * A fork copies a process's private memory, but a batch in hand shows the ring,
 * and in the child it would go on showing it when the parent has given the
 * batch back and the ring goes round.  So a process that forks makes the held
 * batches of all readers private first, at the cost of copying them; where they
 * are read-only, the child gets a copy at the same address.
 *
 * One lock for the process: a fork has it from before the batches are looked
 * at until it is over, in the parent as in the child.  It is also taken to
 * make a batch private, never to acquire or to release one.
 */
#ifndef TSI_CONSUMER_FORKS_H
#define TSI_CONSUMER_FORKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Embedded in a reader.  pin_all() is called before a fork, with the lock: it
 * calls tsi_forks_pin() for each batch that is held, and tsi_forks_save() for
 * its pages.
 */
struct tsi_fork_client {
	struct tsi_fork_client *next;
	void (*pin_all)(struct tsi_fork_client *c);
};

/* Embedded in a batch. */
struct tsi_fork_pin {
	struct tsi_fork_pin *next;
	/*
	 * In the parent, with the lock: the fork is over.  Calls
	 * tsi_forks_allow() for what was saved.  False if the batch was
	 * released meanwhile: then finish() follows, without the lock.
	 */
	bool (*unpin)(struct tsi_fork_pin *p);
	void (*finish)(struct tsi_fork_pin *p);
};

/* From now on forks see to the batches of c; no more. */
void tsi_forks_watch(struct tsi_fork_client *c);
void tsi_forks_forget(struct tsi_fork_client *c);

/* For pin_all(). */
void tsi_forks_pin(struct tsi_fork_pin *p);

/*
 * Whole pages are to be in the child as they are now: made private where they
 * are a writable private mapping, else copied.
 */
void tsi_forks_save(void *addr, size_t len, bool writable);

/* The next child may have them, even if this one couldn't. */
void tsi_forks_allow(void *addr, size_t len, bool writable);

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
