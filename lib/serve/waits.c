/* SPDX-License-Identifier: MIT */
/*
 * waits.c - for whom do consumers wait that have waited long?
 */
#include "serve/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

/* Times the patience: a consumer that hasn't asked for so long doesn't wait;
 * and then what was said of it may be said again. */
#define STALE 3
#define AGAIN 6

#define CURE \
	"; a producer that is started with --slow=detach:SEC goes on without " \
	"such a consumer"

void tsi_waits_init(struct tsi_waits *w, struct tsi_readers *r,
		    struct tsi_membership *m)
{
	*w = (struct tsi_waits){ .readers = r, .membership = m };
}

void tsi_waits_doing(struct tsi_waits *w, const char *what, int64_t now_ms)
{
	char text[sizeof(w->doing)];

	tsi_text_printable(text, sizeof(text), what ? what : "");
	if (strcmp(text, w->doing) != 0)
		w->doing_ms = now_ms;
	memcpy(w->doing, text, sizeof(text));
}

/* ---- what is said ---- */

static long long seconds(int64_t ms)
{
	return (long long)(ms > 0 ? ms : 0) / 1000;
}

static void say_process(struct tsock_wait *out, const char *name)
{
	char text[sizeof(out->who)];

	snprintf(text, sizeof(text), "process %s", name);
	tsi_text_printable(out->who, sizeof(out->who), text);
}

/* Another reader, which has samples to read. */
static void for_reader(const struct tsi_waits *w, unsigned id, unsigned other,
		       int64_t now_ms, struct tsock_wait *out)
{
	const struct tsi_conn *c = tsi_readers_conn(w->readers, other);
	const struct tsi_conn *me = tsi_readers_conn(w->readers, id);
	int64_t moved = tsi_membership_moved_ms(w->membership, other);
	const char *stopped = tsi_conn_stopped(c) ? " is stopped," : "";
	const char *cure = "";
	char name[TSI_CONN_WHO];
	uint32_t n;

	out->kind = TSOCK_FOR_READER;
	out->for_pid = tsi_conn_pid(c);
	out->held_samples = tsi_conn_held(
		c, tsi_membership_tail_of(w->membership, other), &n);
	out->held_batches = n;
	if (out->for_pid == tsi_conn_pid(me))
		snprintf(out->who, sizeof(out->who),
			 "another loader of its own process");
	else
		say_process(out, tsi_conn_who(c, name));
	/* Ranks go on together, and aren't detached. */
	if (tsi_readers_blocks(w->readers) && tsi_conn_world(c) == 1 &&
	    tsi_conn_world(me) == 1 && out->for_pid != tsi_conn_pid(me))
		cure = CURE;
	if (n)
		snprintf(out->why, sizeof(out->why),
			 ", which%s holds %u batch%s (%llu sample%s) and has "
			 "given none back for %lld s%s",
			 stopped, n, n == 1 ? "" : "es",
			 (unsigned long long)out->held_samples,
			 out->held_samples == 1 ? "" : "s",
			 seconds(now_ms - moved), cure);
	else
		snprintf(out->why, sizeof(out->why),
			 ", which%s has taken no batch for %lld s%s", stopped,
			 seconds(now_ms - moved), cure);
}

#define ALONE "; a loader that reads everything alone: rank=0, world_size=1"

/* "rank 1 of 2", "ranks 1, 2 of 4", "ranks 1, 2, 3, 4 and 9 more of 16" */
static void say_ranks(const struct tsi_job_missing *m, char *to, size_t size)
{
	unsigned named = m->count < TSI_MISSING ? m->count : TSI_MISSING;
	int n = snprintf(to, size, m->count == 1 ? "rank" : "ranks");

	for (unsigned i = 0; i < named; i++)
		n += snprintf(to + n, size - (size_t)n, "%s %u", i ? "," : "",
			      m->rank[i]);
	if (m->count > named)
		n += snprintf(to + n, size - (size_t)n, " and %u more",
			      m->count - named);
	snprintf(to + n, size - (size_t)n, " of %u of its job", m->world);
}

static void for_rank(const struct tsi_waits *w, int id, const uint8_t *nonce,
		     struct tsock_wait *out)
{
	struct tsi_job_missing m;
	char how[32] = "not connected", what[48] = "asked to begin";

	out->kind = TSOCK_FOR_RANK;
	if (!tsi_readers_missing(w->readers, id, nonce, &m)) {
		snprintf(out->who, sizeof(out->who), "other ranks of its job");
		snprintf(out->why, sizeof(out->why),
			 ", which have not begun the epoch" ALONE);
		return;
	}
	out->for_pid = m.pid;
	if (m.pid)
		snprintf(how, sizeof(how), "%sprocess %u",
			 m.count == 1 ? "" : "one is ", m.pid);
	else if (m.count > 1)
		snprintf(how, sizeof(how), "none is connected");
	if (m.begun)
		snprintf(what, sizeof(what), "begun epoch %llu",
			 (unsigned long long)m.epoch);
	say_ranks(&m, out->who, sizeof(out->who));
	snprintf(out->why, sizeof(out->why), ", which %s not %s (%s)" ALONE,
		 m.count == 1 ? "has" : "have", what, how);
}

static void for_consumers(const struct tsi_waits *w, struct tsock_wait *out)
{
	unsigned n = tsi_membership_lacks(w->membership);

	out->kind = TSOCK_FOR_CONSUMERS;
	snprintf(out->who, sizeof(out->who), "%u more consumer%s", n,
		 n == 1 ? "" : "s");
	snprintf(out->why, sizeof(out->why),
		 ", without which the stream doesn't begin (--min-consumers)");
}

static void for_return(const struct tsi_waits *w, struct tsock_wait *out)
{
	out->kind = TSOCK_FOR_RETURN;
	out->for_pid = tsi_readers_awaited(w->readers);
	if (out->for_pid)
		snprintf(out->who, sizeof(out->who), "process %u",
			 out->for_pid);
	else
		snprintf(out->who, sizeof(out->who), "a consumer");
	snprintf(out->why, sizeof(out->why),
		 ", which read this stream before its producer was started "
		 "again, and hasn't come back; it is waited for for %d s",
		 TSI_RETURNERS_GRACE_MS / 1000);
}

/* Its ranks that have begun have all left. */
static void for_kept(struct tsock_wait *out)
{
	out->kind = TSOCK_FOR_RANK;
	snprintf(out->who, sizeof(out->who), "ranks of another job");
	snprintf(out->why, sizeof(out->why),
		 ", which have not begun an epoch that others of them have "
		 "had; it is kept for them for a minute");
}

static void for_producer(const struct tsi_waits *w, const char *otherwise,
			 int64_t now_ms, struct tsock_wait *out)
{
	out->kind = TSOCK_FOR_PRODUCER;
	out->for_pid = (uint32_t)getpid();
	snprintf(out->who, sizeof(out->who), "its producer (process %u)",
		 out->for_pid);
	if (w->doing[0])
		snprintf(out->why, sizeof(out->why),
			 ", which has been %s for %lld s", w->doing,
			 seconds(now_ms - w->doing_ms));
	else
		snprintf(out->why, sizeof(out->why), ", which %s", otherwise);
}

static void for_samples(const struct tsi_waits *w, unsigned id, uint64_t want,
			int64_t now_ms, struct tsock_wait *out)
{
	uint64_t head = tsi_membership_head(
		w->membership, tsi_membership_view(w->membership, id));
	char text[96];

	snprintf(text, sizeof(text),
		 "is making samples: %llu of those that are due are missing",
		 (unsigned long long)(want > head ? want - head : 0));
	for_producer(w, text, now_ms, out);
}

/* ---- for whom ---- */

static void of_reader(const struct tsi_waits *w, unsigned id, uint64_t want,
		      int64_t now_ms, struct tsock_wait *out)
{
	unsigned other;

	out->pid = tsi_conn_pid(tsi_readers_conn(w->readers, id));
	tsi_membership_want(w->membership, id, want);
	if (tsi_readers_waits_for_ranks(w->readers, id)) {
		for_rank(w, (int)id, NULL, out);
		return;
	}
	switch (tsi_membership_awaits(w->membership, id, &other)) {
	case TSI_AWAITS_NOTHING:
		break;
	case TSI_AWAITS_MEMBER:
		/* That one has read all that it may before others begin. */
		if (tsi_readers_waits_for_ranks(w->readers, other))
			for_rank(w, (int)other, NULL, out);
		else
			for_reader(w, id, other, now_ms, out);
		break;
	case TSI_AWAITS_START:
		for_consumers(w, out);
		break;
	case TSI_AWAITS_HOLD:
		if (tsi_readers_returning(w->readers))
			for_return(w, out);
		else
			for_kept(out);
		break;
	case TSI_AWAITS_VIEW:
		for_producer(w, "is converting samples", now_ms, out);
		break;
	case TSI_AWAITS_SAMPLES:
		for_samples(w, id, want, now_ms, out);
		break;
	}
}

/* One that has asked to join. */
static void of_join(const struct tsi_waits *w, const uint8_t *nonce,
		    int64_t now_ms, struct tsock_wait *out)
{
	if (tsi_readers_collects(w->readers))
		for_return(w, out);
	else if (tsi_readers_asks_as_rank(w->readers, nonce))
		for_rank(w, -1, nonce, out);
	else
		for_producer(w, "prepares what was asked for", now_ms, out);
}

static void find_out(const struct tsi_waits *w, const struct tsi_waiting *e,
		     int64_t now_ms, struct tsock_wait *out)
{
	int id = tsi_readers_find(w->readers, e->nonce);

	*out = (struct tsock_wait){ .pid = e->pid,
				    .waited_ms =
					    (uint32_t)(now_ms - e->since_ms) };
	if (id >= 0)
		of_reader(w, (unsigned)id, e->want, now_ms, out);
	else
		of_join(w, e->nonce, now_ms, out);
}

/* ---- the consumers that wait ---- */

static struct tsi_waiting *find_waiting(struct tsi_waits *w,
					const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_WAITS_MOST; i++)
		if (w->waiting[i].used &&
		    !memcmp(w->waiting[i].nonce, nonce, TSI_NONCE))
			return &w->waiting[i];
	return NULL;
}

/* A free place, or that of the consumer that asked the longest ago. */
static struct tsi_waiting *add_waiting(struct tsi_waits *w,
				       const uint8_t *nonce)
{
	struct tsi_waiting *e = &w->waiting[0];

	for (unsigned i = 0; i < TSI_WAITS_MOST && e->used; i++)
		if (!w->waiting[i].used || w->waiting[i].asked_ms < e->asked_ms)
			e = &w->waiting[i];
	*e = (struct tsi_waiting){ .used = true };
	memcpy(e->nonce, nonce, TSI_NONCE);
	return e;
}

void tsi_waits_forget(struct tsi_waits *w, const uint8_t *nonce)
{
	struct tsi_waiting *e = find_waiting(w, nonce);

	if (e)
		e->used = false;
}

/* Does it wait still, as far as can be seen? */
static bool goes_on(const struct tsi_waits *w, const struct tsi_waiting *e,
		    int64_t now_ms)
{
	int id;

	if (!e->used || now_ms - e->asked_ms > STALE * tsi_patience_ms())
		return false;
	id = tsi_readers_find(w->readers, e->nonce);
	if (e->joins || id < 0)
		return e->joins && id < 0;
	return tsi_membership_tail_of(w->membership, (unsigned)id) == e->tail &&
	       tsi_membership_head(w->membership,
				   tsi_membership_view(w->membership,
						       (unsigned)id)) < e->want;
}

static void tell(struct tsi_waits *w, struct tsi_waiting *e,
		 const struct tsock_wait *out)
{
	char name[TSI_CONN_WHO];
	int id;

	if (!out->kind ||
	    (e->told_kind == out->kind && e->told_pid == out->for_pid))
		return;
	e->told_kind = out->kind;
	e->told_pid = out->for_pid;
	id = tsi_readers_find(w->readers, e->nonce);
	snprintf(name, sizeof(name), "%u", e->pid);
	tsi_log(TSOCK_LOG_WARN, "consumer %s has waited %lld s for %s%s",
		id < 0 ? name
		       : tsi_conn_who(
				 tsi_readers_conn(w->readers, (unsigned)id),
				 name),
		seconds(out->waited_ms), out->who, out->why);
}

void tsi_waits_answer(struct tsi_waits *w, const struct tsi_msg_whom *q,
		      int64_t now_ms, struct tsock_wait *out)
{
	struct tsi_waiting *e = find_waiting(w, q->nonce);
	int id = tsi_readers_find(w->readers, q->nonce);

	if (!e)
		e = add_waiting(w, q->nonce);
	if (now_ms - e->asked_ms > AGAIN * tsi_patience_ms())
		e->told_kind = e->told_pid = 0;
	e->joins = id < 0;
	e->pid = q->pid;
	e->asked_ms = now_ms;
	e->since_ms = now_ms - q->waited_ms;
	e->want = q->want;
	tsi_readers_refresh(w->readers);
	tsi_readers_read_pages(w->readers);
	/* Its tail may have been one that can't be, and ended it. */
	id = tsi_readers_find(w->readers, q->nonce);
	e->tail = id < 0 ? 0
			 : tsi_membership_tail_of(w->membership, (unsigned)id);
	find_out(w, e, now_ms, out);
	tell(w, e, out);
}

static int by_time(const void *a, const void *b)
{
	const struct tsi_waiting *const *x = a, *const *y = b;

	return ((*x)->since_ms > (*y)->since_ms) -
	       ((*x)->since_ms < (*y)->since_ms);
}

void tsi_waits_stats(struct tsi_waits *w, int64_t now_ms,
		     struct tsock_stats *st)
{
	struct tsi_waiting *e[TSI_WAITS_MOST];
	size_t n = 0;

	for (unsigned i = 0; i < TSI_WAITS_MOST; i++)
		if (goes_on(w, &w->waiting[i], now_ms))
			e[n++] = &w->waiting[i];
	if (!n)
		return;
	tsi_readers_read_pages(w->readers);
	qsort(e, n, sizeof(*e), by_time);
	for (size_t i = 0; i < n && st->nwaits < TSOCK_STATS_WAITS; i++) {
		struct tsock_wait *out = &st->wait[st->nwaits];

		find_out(w, e[i], now_ms, out);
		st->nwaits += out->kind != TSOCK_FOR_NOTHING;
	}
}
