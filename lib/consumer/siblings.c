/* SPDX-License-Identifier: MIT */
/*
 * siblings.c - the readers of this process, to find out which of them waits
 * for another one.
 *
 * From a reader's tail follows how far the stream can get before that tail
 * moves, whatever everybody else does: its ring holds so many samples, and the
 * rings that it is made from so many more.
 *
 * A producer that was started again keeps samples for the readers of the one
 * before until all have returned, and says so in its rings' headers.  Of those
 * of this process it is known which have not.
 */
#include "consumer/siblings.h"

#include <pthread.h>
#include <stdio.h>

#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "consumer/reader.h"

#define STUCK_MS 100  /* without a step of either: then it is certain */
#define LONG_MS 10000 /* for another thread's: then it is said */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tsi_sibling *first;

/* A child has readers of its own only, and a lock that nobody holds. */
static void forget_siblings(void)
{
	pthread_mutex_init(&lock, NULL);
	first = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_siblings);
}

void tsi_siblings_add(struct tsi_sibling *s)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	s->next = first;
	first = s;
	pthread_mutex_unlock(&lock);
}

void tsi_siblings_remove(struct tsi_sibling *s)
{
	pthread_mutex_lock(&lock);
	for (struct tsi_sibling **at = &first; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void tsi_siblings_add_lost(struct tsi_sibling *s, uint64_t pos)
{
	s->reader = NULL;
	s->pos = pos;
	s->thread = tsi_reader_this_thread();
	s->tries++;
	tsi_siblings_add(s);
}

bool tsi_siblings_read(uint64_t incarnation, struct tsi_finished *read)
{
	struct tsi_finished most = { .end = 0 };
	bool any = false;

	pthread_mutex_lock(&lock);
	for (const struct tsi_sibling *o = first; o; o = o->next) {
		if (!o->reader || o->incarnation != incarnation)
			continue;
		if (!any || o->read.end > most.end)
			most = o->read;
		any = true;
	}
	pthread_mutex_unlock(&lock);
	if (any)
		*read = most;
	return any;
}

/* ---- how far the stream gets ---- */

static bool mine(const struct tsi_sibling *o)
{
	return o->reader ? tsi_reader_is_used_here(o->reader)
			 : o->thread == tsi_reader_this_thread();
}

static uint64_t pos_of(const struct tsi_sibling *o)
{
	return o->reader ? tsi_reader_pos(o->reader) : o->pos;
}

/*
 * The first sample that a reader needs: what it holds, as long as nobody else
 * gives its batches back.  A released batch that work on a GPU still reads
 * comes back by itself, however long that work takes; only the reader's own
 * thread may look for one.
 */
static uint64_t needed_by(const struct tsi_sibling *o)
{
	const struct tsock_batch *b;

	if (tsi_reader_released_elsewhere(o->reader))
		return tsi_reader_pos(o->reader);
	b = mine(o) ? tsi_reader_oldest(o->reader) : NULL;
	return b && tsi_reader_batch_pending(b) ? tsi_reader_pos(o->reader)
						: tsi_reader_tail(o->reader);
}

/* First sample that can't be published for s before o's reader goes on. */
static uint64_t bound(const struct tsi_sibling *s, const struct tsi_sibling *o)
{
	const struct tsi_reader *r = o->reader;
	uint64_t from = needed_by(o), n = o->epoch_len, far;

	if (o->base || tsi_claim_same_ring(tsi_reader_claim(o->reader),
					   tsi_reader_claim(s->reader)))
		return from + tsi_reader_capacity(r);
	/* How many rings lie between is known of those on the host alone; but
	 * the base ring keeps the next epoch's start for readers of views. */
	far = from / n * n + (from % n ? n : 0);
	if (!o->gpu && from + tsi_reader_capacity(r) < far)
		far = from + tsi_reader_capacity(r);
	return far + o->base_capacity;
}

/* Has o still to return to the producer of s?  It may not have noticed. */
static bool is_awaited(const struct tsi_sibling *s, const struct tsi_sibling *o)
{
	return o->returns && o->stream_hash == s->stream_hash &&
	       o->incarnation != s->incarnation &&
	       (!o->reader || tsi_claim_abandoned(tsi_reader_claim(o->reader)));
}

/* Is sample need - 1 beyond what is made until all have returned? */
static bool is_beyond_held(const struct tsi_sibling *s, uint64_t need)
{
	uint64_t held = tsi_claim_held(tsi_reader_claim(s->reader));
	uint64_t room = tsi_reader_capacity(s->reader);

	if (room > s->base_capacity)
		room = s->base_capacity;
	return held < need && need - held > room;
}

static bool blocks(const struct tsi_sibling *s, const struct tsi_sibling *o,
		   uint64_t need)
{
	if (o == s || (o->reader && tsi_reader_in_child(o->reader)))
		return false;
	if (o->reader && o->incarnation == s->incarnation)
		return bound(s, o) < need;
	return is_beyond_held(s, need) && is_awaited(s, o);
}

/* One of this thread's rather than another's. */
static const struct tsi_sibling *find_blocker(const struct tsi_sibling *s,
					      uint64_t need)
{
	const struct tsi_sibling *found = NULL;

	for (const struct tsi_sibling *o = first; o; o = o->next) {
		if (!blocks(s, o, need))
			continue;
		if (mine(o))
			return o;
		found = o;
	}
	return found;
}

/* ---- what is said ---- */

static int err_self(const struct tsi_sibling *s, const struct tsi_sibling *o,
		    uint64_t need)
{
	return tsi_err(
		TSOCK_EHELD,
		"this thread reads the stream '%s' with two loaders that wait "
		"for each other: the one of batch size %u, at sample %llu, "
		"needs sample %llu, which can't be made before the one of "
		"batch size %u goes on, which is at sample %llu; give each a "
		"thread or a process of its own, or read them in step",
		s->stream, s->batch_size,
		(unsigned long long)tsi_reader_pos(s->reader),
		(unsigned long long)need - 1, o->batch_size,
		(unsigned long long)pos_of(o));
}

static void tell_other(const struct tsi_sibling *s, const struct tsi_sibling *o,
		       int64_t waited_ms, char *text, size_t size)
{
	snprintf(text, size,
		 "the stream '%s': the loader of batch size %u, at sample "
		 "%llu, has waited %lld s for another one of this process, of "
		 "batch size %u, at sample %llu, which another thread reads",
		 s->stream, s->batch_size,
		 (unsigned long long)tsi_reader_pos(s->reader),
		 (long long)waited_ms / 1000, o->batch_size,
		 (unsigned long long)pos_of(o));
}

/* With the lock held. */
static int look_for_block(struct tsi_sibling *s, uint64_t need, int64_t now_ms,
			  char *text, size_t size)
{
	const struct tsi_sibling *o = find_blocker(s, need);
	struct tsi_stuck *k = &s->stuck;
	uint64_t pos;

	if (!o) {
		k->on = NULL;
		return 0;
	}
	pos = pos_of(o);
	if (k->on != o || k->pos != pos || k->need != need ||
	    k->tries != o->tries) {
		*k = (struct tsi_stuck){ .on = o,
					 .pos = pos,
					 .need = need,
					 .tries = o->tries,
					 .since_ms = now_ms };
		return 0;
	}
	if (now_ms - k->since_ms >= STUCK_MS && mine(o)) {
		k->on = NULL;
		return err_self(s, o, need);
	}
	if (now_ms - k->since_ms >= LONG_MS && !mine(o) && !k->said) {
		k->said = true;
		tell_other(s, o, now_ms - k->since_ms, text, size);
	}
	return 0;
}

int tsi_siblings_check(struct tsi_sibling *s, uint64_t need, int64_t now_ms)
{
	char text[512] = "";
	int err;

	pthread_mutex_lock(&lock);
	err = look_for_block(s, need, now_ms, text, sizeof(text));
	pthread_mutex_unlock(&lock);
	if (text[0])
		tsi_log(TSOCK_LOG_WARN, "%s", text);
	return err;
}
