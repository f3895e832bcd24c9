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
	s->staged_at = TSI_NEVER;
}

void tsi_sync_fini(struct tsi_sync *s)
{
	pthread_cond_destroy(&s->room);
	pthread_cond_destroy(&s->staged);
	pthread_mutex_destroy(&s->lock);
}

void tsi_sync_set_ops(struct tsi_sync *s, const struct tsi_sync_ops *ops,
		      void *arg)
{
	s->ops = ops;
	s->arg = arg;
}

void tsi_sync_lock(struct tsi_sync *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->ops)
		s->ops->stop(s->arg);
}

void tsi_sync_unlock(struct tsi_sync *s)
{
	if (s->ops)
		(void)s->ops->go_on(s->arg);
	pthread_mutex_unlock(&s->lock);
}

void tsi_sync_pass(struct tsi_sync *s)
{
	pthread_mutex_lock(&s->lock);
	pthread_mutex_unlock(&s->lock);
}

void tsi_sync_wake_workers(struct tsi_sync *s)
{
	pthread_cond_broadcast(&s->room);
}

void tsi_sync_wake_stages(struct tsi_sync *s)
{
	/* Each of them looks, and says anew what it sleeps for. */
	s->staged_at = TSI_NEVER;
	pthread_cond_broadcast(&s->staged);
}

/* What the caller waits for may be what has changed at last. */
static void wait(struct tsi_sync *s, pthread_cond_t *c, int64_t until_ns)
{
	if (!s->ops) {
		tsi_thread_wait(c, &s->lock, until_ns);
		return;
	}
	if (s->ops->go_on(s->arg))
		tsi_thread_wait(c, &s->lock, until_ns);
	s->ops->stop(s->arg);
}

void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns)
{
	wait(s, &s->room, until_ns);
}

void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns)
{
	tsi_sync_wait_head(s, 0, until_ns);
}

/*
 * A worker looks at staged_at whenever it has published.  If this wait ends
 * otherwise than by tsi_sync_wake_stages(), staged_at stays, since another stage
 * may sleep for that head; at worst the stages are woken once too often.
 */
void tsi_sync_wait_head(struct tsi_sync *s, uint64_t head, int64_t until_ns)
{
	if (head < s->staged_at)
		s->staged_at = head;
	wait(s, &s->staged, until_ns);
}

bool tsi_sync_stage_wants(const struct tsi_sync *s, uint64_t head)
{
	return head >= s->staged_at && s->staged_at != TSI_NEVER;
}
