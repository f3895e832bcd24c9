/* SPDX-License-Identifier: MIT */
/*
 * sync.h - the server's lock, and the two conditions that go with it.
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

struct tsi_sync {
	pthread_mutex_t lock;
	pthread_cond_t room;   /* workers: there may be samples to claim */
	pthread_cond_t staged; /* stages: a head, a tail or a view changed */
	/* The least head of the base ring that a stage sleeps for; TSI_NEVER:
	 * none does. */
	uint64_t staged_at;
	const struct tsi_sync_ops *ops; /* NULL: there is nothing */
	void *arg;
};

void tsi_sync_init(struct tsi_sync *s);
void tsi_sync_fini(struct tsi_sync *s);

/* While nobody has the lock: what goes on without it. */
void tsi_sync_set_ops(struct tsi_sync *s, const struct tsi_sync_ops *ops,
		      void *arg);

void tsi_sync_lock(struct tsi_sync *s);
void tsi_sync_unlock(struct tsi_sync *s);

/* Wait until nobody has it, and stop nothing. */
void tsi_sync_pass(struct tsi_sync *s);

/* ---- with the lock held ---- */

/* There may be samples to claim. */
void tsi_sync_wake_workers(struct tsi_sync *s);

/* A head, a tail, a view or a GPU's answer has changed. */
void tsi_sync_wake_stages(struct tsi_sync *s);

/*
 * Wait for that, until tsi_now_ns() is until_ns; INT64_MAX: without an end.  May
 * return sooner.
 */
void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns);
void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns);

/* As tsi_sync_wait_staged(), of a stage that only a head of the base ring helps
 * that is at `head` or beyond; TSI_NEVER: none does. */
void tsi_sync_wait_head(struct tsi_sync *s, uint64_t head, int64_t until_ns);

/* Does a stage wait for this head of the base ring?  For what goes on without
 * the lock, too. */
bool tsi_sync_stage_wants(const struct tsi_sync *s, uint64_t head);

#endif
