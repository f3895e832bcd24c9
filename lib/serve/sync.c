/* SPDX-License-Identifier: MIT */
/*
 * sync.c - the server's lock, and what threads wait for with it.
 *
 * Each worker that sleeps has a condition of its own, so that exactly as many
 * wake up as there is work for.  The last one that fell asleep is the first to
 * be woken: what it used is in its processor's cache yet.
 */
#include "serve/sync.h"

#include "base/thread.h"

/* Samples that a worker claims, more or less, before the next one is awake. */
#define EACH 8

/*
 * How many workers one thread wakes at a time.  Each of them, when it goes off
 * with a sample, does the same if there are samples left for others
 * (tsi_readers_mind_sleepers()), so n of them are awake after log2(n) wake-ups
 * one after the other; and where samples are cheap, the first ones have taken
 * them all before the others are woken for nothing.
 */
#define FORK 2

struct tsi_sleeper {
	struct tsi_sleeper *next;
	pthread_cond_t wake;
	bool woken; /* and not in the list any more */
};

void tsi_sync_init(struct tsi_sync *s)
{
	pthread_mutex_init(&s->lock, NULL);
	s->asleep = NULL;
	s->sleepers = 0;
	s->coming = 0;
	s->woken = 0;
	tsi_thread_cond_init(&s->staged);
	s->staged_at = TSI_NEVER;
}

void tsi_sync_fini(struct tsi_sync *s)
{
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

static void wake_one(struct tsi_sync *s)
{
	struct tsi_sleeper *w = s->asleep;

	s->asleep = w->next;
	s->sleepers--;
	w->woken = true;
	s->coming++;
	s->woken++;
	pthread_cond_signal(&w->wake);
}

void tsi_sync_wake_workers(struct tsi_sync *s, uint64_t samples)
{
	uint64_t enough = samples < EACH ? 1 : samples / EACH;

	/* None is lost by waking fewer: at least one is coming, and that one
	 * looks at what is left after it. */
	if (enough > s->coming + FORK)
		enough = s->coming + FORK;
	while (s->asleep && s->coming < enough)
		wake_one(s);
}

void tsi_sync_wake_all_workers(struct tsi_sync *s)
{
	while (s->asleep)
		wake_one(s);
}

unsigned tsi_sync_sleepers(const struct tsi_sync *s)
{
	return s->sleepers;
}

void tsi_sync_wake_stages(struct tsi_sync *s)
{
	/* Each of them looks, and says anew what it sleeps for. */
	s->staged_at = TSI_NEVER;
	pthread_cond_broadcast(&s->staged);
}

/* What the caller waits for may be what has changed at last. */
static void wait_until(struct tsi_sync *s, pthread_cond_t *c, int64_t until_ns)
{
	if (!s->ops) {
		tsi_thread_wait(c, &s->lock, until_ns);
		return;
	}
	if (s->ops->go_on(s->arg))
		tsi_thread_wait(c, &s->lock, until_ns);
	s->ops->stop(s->arg);
}

static void remove_sleeper(struct tsi_sync *s, const struct tsi_sleeper *w)
{
	struct tsi_sleeper **at = &s->asleep;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	s->sleepers--;
}

void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns)
{
	struct tsi_sleeper w = { .next = s->asleep };

	tsi_thread_cond_init(&w.wake);
	s->asleep = &w;
	s->sleepers++;
	wait_until(s, &w.wake, until_ns);
	if (w.woken)
		s->coming--;
	else
		remove_sleeper(s, &w);
	pthread_cond_destroy(&w.wake);
}

void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns)
{
	tsi_sync_wait_head(s, TSI_NEVER, until_ns);
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
	wait_until(s, &s->staged, until_ns);
}

bool tsi_sync_stage_wants(const struct tsi_sync *s, uint64_t head)
{
	return head >= s->staged_at && s->staged_at != TSI_NEVER;
}
