/* SPDX-License-Identifier: MIT */
/*
 * sync.h - the server's lock, and what threads wait for with it.
 *
 * One mutex guards everything that a server has; the samples themselves are
 * written with no lock held.  Nobody holds it during a system call that can
 * wait, a copy, or a call into a driver.
 *
 * What workers do for each sample goes on without the lock, but only while
 * nobody holds it (production.h).
 */
#ifndef TSI_SERVE_SYNC_H
#define TSI_SERVE_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sequence.h"

/* What goes on without the lock. */
struct tsi_sync_ops {
	/* The lock was taken: nothing goes on from here ... */
	void (*stop)(void *arg);
	/* ... to here, just before it is given up.  False: something has
	 * changed first, so it isn't as its holder last saw it. */
	bool (*go_on)(void *arg);
};

struct tsi_sleeper; /* a worker */

struct tsi_sync {
	pthread_mutex_t lock;
	struct tsi_sleeper *asleep; /* workers; the last to sleep is first */
	unsigned sleepers;          /* how many these are */
	unsigned coming;       /* workers that were woken, and are to look */
	uint64_t woken;        /* workers, so far */
	pthread_cond_t staged; /* stages: a head, a tail or a view changed */
	/* The least head of the base ring that a stage sleeps for; TSI_NEVER:
	 * none does. */
	uint64_t staged_at;
	const struct tsi_sync_ops *ops; /* NULL: there is nothing */
	void *arg;
};

void tsi_sync_init(struct tsi_sync *s);
void tsi_sync_fini(struct tsi_sync *s);

/* What goes on without the lock, while nobody holds it. */
void tsi_sync_set_ops(struct tsi_sync *s, const struct tsi_sync_ops *ops,
		      void *arg);

void tsi_sync_lock(struct tsi_sync *s);
void tsi_sync_unlock(struct tsi_sync *s);

/* Wait until nobody holds the lock, and stop nothing. */
void tsi_sync_pass(struct tsi_sync *s);

/* ---- with the lock held ---- */

/*
 * There are so many samples to claim: wake workers to take them, never more
 * than will find some, and two at the most.  One is woken even if there is no
 * sample, to see what has changed.  Workers that were woken before and have yet
 * to look are counted in.
 *
 * So nobody sleeps in vain if a worker that is woken, before it goes off, wakes
 * others for the samples that it leaves, or states what those that sleep wait
 * for; and wakes all when it finds that there is nothing to claim any more.
 */
void tsi_sync_wake_workers(struct tsi_sync *s, uint64_t samples);
void tsi_sync_wake_all_workers(struct tsi_sync *s);

/* Workers that sleep and that nobody has woken. */
unsigned tsi_sync_sleepers(const struct tsi_sync *s);

/* A head, a tail, a view or a GPU's answer has changed. */
void tsi_sync_wake_stages(struct tsi_sync *s);

/*
 * Wait for samples to claim, or for what stages wait for, until tsi_now_ns() is
 * until_ns; INT64_MAX: without an end.  May return sooner.
 */
void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns);
void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns);

/* As tsi_sync_wait_staged(), of a stage that a head of the base ring helps, too,
 * if it is at `head` or beyond; TSI_NEVER: none does. */
void tsi_sync_wait_head(struct tsi_sync *s, uint64_t head, int64_t until_ns);

/* Does a stage wait for this head of the base ring?  For what goes on without
 * the lock, too. */
bool tsi_sync_stage_wants(const struct tsi_sync *s, uint64_t head);

#endif
