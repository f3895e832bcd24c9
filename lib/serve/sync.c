/* SPDX-License-Identifier: MIT */
/*
 * sync.c - the server's lock, and the two conditions that go with it.
 */
#include "serve/sync.h"

#include "base/thread.h"

void tsi_sync_init(struct tsi_sync *s)
{
	pthread_mutex_init(&s->lock, NULL);
	tsi_thread_cond_init(&s->room);
	tsi_thread_cond_init(&s->staged);
}

void tsi_sync_fini(struct tsi_sync *s)
{
	pthread_cond_destroy(&s->room);
	pthread_cond_destroy(&s->staged);
	pthread_mutex_destroy(&s->lock);
}

void tsi_sync_wake_workers(struct tsi_sync *s)
{
	pthread_cond_broadcast(&s->room);
}

void tsi_sync_wake_stages(struct tsi_sync *s)
{
	pthread_cond_broadcast(&s->staged);
}

void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns)
{
	tsi_thread_wait(&s->room, &s->lock, until_ns);
}

void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns)
{
	tsi_thread_wait(&s->staged, &s->lock, until_ns);
}
