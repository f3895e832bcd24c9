/* SPDX-License-Identifier: MIT */
/*
 * sync.h - the server's lock, and the two conditions that go with it.
 *
 * One mutex guards everything that a server has; the samples themselves are
 * written with no lock held.  Nobody holds it during a system call that can
 * wait, a copy, or a call into a driver.
 */
#ifndef TSI_SERVE_SYNC_H
#define TSI_SERVE_SYNC_H

#include <pthread.h>
#include <stdint.h>

struct tsi_sync {
	pthread_mutex_t lock;
	pthread_cond_t room;   /* workers: there may be samples to claim */
	pthread_cond_t staged; /* stages: a head, a tail or a view changed */
};

void tsi_sync_init(struct tsi_sync *s);
void tsi_sync_fini(struct tsi_sync *s);

static inline void tsi_sync_lock(struct tsi_sync *s)
{
	pthread_mutex_lock(&s->lock);
}

static inline void tsi_sync_unlock(struct tsi_sync *s)
{
	pthread_mutex_unlock(&s->lock);
}

/* ---- with the lock held ---- */

/* There may be samples to claim. */
void tsi_sync_wake_workers(struct tsi_sync *s);

/* A head, a tail, a view or a GPU's answer has changed. */
void tsi_sync_wake_stages(struct tsi_sync *s);

/* Wait for that, until tsi_now_ns() is until_ns; INT64_MAX: without an end. */
void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns);
void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns);

#endif
