/* SPDX-License-Identifier: MIT */
/*
 * test_membership_random.c - the rules of membership under seeded random
 * schedules, with an oracle that knows what is in every slot of every ring.
 *
 * A base ring, views, and views made of views; stages with one lane or two;
 * readers that join in every way, leave between epochs or hold, break off, skip
 * short batches, and die; tails that the producer sees late; streams that end.
 * What has to hold, whatever happens:
 *
 *   - nothing that somebody needs, or that a stage reads, is written over
 *   - a reader that is alone never loses an epoch between two of its own
 *   - a joiner gets the leading reader's epoch or the next, never a later one
 *   - nobody waits for ever
 *   - a tail that lets a sleeping writer go on is one that it asked for
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/membership.h"

#define PEOPLE 6
#define RINGS 6 /* the base and five views */
#define MOST_C 64
#define MOST_CAP (MOST_C + 8)
#define SPOILT UINT64_MAX

struct person {
	bool in;    /* a member */
	bool again; /* left between two epochs, or broke off: will come back */
	unsigned id, view;
	uint32_t join;
	bool leaves, drop_last;
	bool liar;     /* its tail is far beyond what it has read */
	uint64_t p;    /* first sample not yet taken */
	uint64_t tail; /* as its tail page says */
	uint64_t seen; /* as the producer has last seen it */
	uint64_t end, after, b;
	unsigned epochs_done;
};

struct run {
	uint64_t first;
	unsigned n;
	uint32_t opening;
};

struct world {
	uint64_t rng;
	uint64_t n, w, c, end;
	uint64_t cap[RINGS];
	uint64_t slot[RINGS][MOST_CAP];
	uint64_t pending[MOST_C * 2]; /* claimed, unpublished, by order */
	bool written[MOST_C * 2];
	unsigned npending;
	struct run run[RINGS][2]; /* under way in a stage, the oldest first */
	unsigned nruns[RINGS], lanes[RINGS];
	struct person who[PEOPLE];
	unsigned people;
	struct person *alone; /* who was the only one, and nobody came since */
	uint64_t bounds[5];
	unsigned segments;
	bool spare; /* the base ring holds what view 4 needs next */
};

static struct tsi_membership m;
static struct world w;
static uint64_t seed_now;

#define check(what) \
	do { \
		if (!(what)) { \
			print_error("%s (line %d, seed %llu)\n", #what, \
				    __LINE__, (unsigned long long)seed_now); \
			fail(); \
		} \
	} while (0)

static uint64_t rnd(uint64_t below)
{
	w.rng ^= w.rng << 13;
	w.rng ^= w.rng >> 7;
	w.rng ^= w.rng << 17;
	return w.rng % below;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void world_make(uint64_t seed)
{
	struct tsi_membership_config config;

	memset(&w, 0, sizeof(w));
	seed_now = seed;
	w.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	w.c = 8 + rnd(MOST_C - 8);
	w.w = 1 + rnd(w.c / 2);
	w.n = 1 + rnd(rnd(2) ? 40 : 200);
	w.end = rnd(4) ? TSI_NEVER : w.n * (1 + rnd(6));
	w.people = 1 + (unsigned)rnd(PEOPLE);
	w.segments = w.n >= 4 && rnd(2) ? 4 : 1;
	for (unsigned i = 0; i <= w.segments; i++)
		w.bounds[i] = w.n * i / w.segments;
	memset(w.slot, 0xff, sizeof(w.slot));
	for (unsigned v = 0; v < RINGS; v++) {
		w.cap[v] = w.c + (v && rnd(3) == 0 ? rnd(8) : 0);
		w.lanes[v] = 1 + (unsigned)rnd(2);
	}
	config = (struct tsi_membership_config){ .epoch_len = w.n,
						 .join_window = w.w,
						 .capacity = w.c,
						 .end = w.end,
						 .segments = w.segments,
						 .bounds = w.bounds,
						 .min_members = 1 };
	tsi_membership_init(&m, &config);
	/* Two views of the base, one made of the second; one of the first that
	 * may lose it, and one made of that. */
	tsi_membership_source(&m, 1, 0, w.cap[1], false);
	tsi_membership_source(&m, 2, 0, w.cap[2], false);
	tsi_membership_source(&m, 3, 2, w.cap[3], false);
	tsi_membership_source(&m, 4, 1, w.cap[4], true);
	tsi_membership_source(&m, 5, 4, w.cap[5], false);
}

static uint64_t *slot_of(unsigned view, uint64_t s)
{
	return &w.slot[view][s % w.cap[view]];
}

/* Writing s must not hit what a reader of that view still needs. */
static void check_overwrite(unsigned view, uint64_t s)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct person *q = &w.who[i];

		if (q->in && q->view == view && q->tail <= s)
			check(s < q->tail + w.cap[view]);
	}
	for (unsigned v = 1; v < RINGS; v++)
		if (m.view[v].source == view && m.view[v].active &&
		    m.view[v].head <= s)
			check(s < m.view[v].head + w.cap[view]);
}

/* ---- the producer ---- */

static void do_claim(void)
{
	uint64_t first;
	unsigned n = tsi_membership_claim(&m, 0, 1 + (unsigned)rnd(4), &first);
	bool needed = false;

	for (unsigned i = 0; i < n; i++) {
		check_overwrite(0, first + i);
		*slot_of(0, first + i) = first + i;
		w.pending[w.npending] = first + i;
		w.written[w.npending++] = false;
	}
	for (unsigned i = 0; i < PEOPLE; i++)
		needed |= w.who[i].in;
	/* Nothing is made for nobody. */
	if (n)
		check(needed);
}

static void do_publish(void)
{
	unsigned done = 0;

	if (!w.npending)
		return;
	w.written[rnd(w.npending)] = true;
	while (done < w.npending && w.written[done])
		done++;
	if (done) {
		tsi_membership_published(&m, 0, w.pending[done - 1] + 1);
		w.npending -= done;
		memmove(w.pending, w.pending + done,
			w.npending * sizeof(w.pending[0]));
		memmove(w.written, w.written + done,
			w.npending * sizeof(w.written[0]));
	}
	tsi_membership_apply_jump(&m);
}

/* What a view's stage reads is the least of the runs under way. */
static void state_reading(unsigned v)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 0; i < w.nruns[v]; i++)
		least = min64(least, w.run[v][i].first);
	tsi_membership_reading(&m, v, least);
}

static void do_stage_begin(unsigned v)
{
	struct run *r = &w.run[v][w.nruns[v]];

	if (w.nruns[v] == w.lanes[v] || !m.view[v].active)
		return;
	r->n = tsi_membership_claim(&m, v, 1 + (unsigned)rnd(4), &r->first);
	r->opening = m.view[v].opening;
	for (uint64_t s = r->first; s < r->first + r->n; s++) {
		check(s < m.view[m.view[v].source].head);
		check_overwrite(v, s);
		*slot_of(v, s) = SPOILT;
	}
	w.nruns[v] += r->n > 0;
	state_reading(v);
}

/* The oldest run ends.  Only now is it certain what it has read. */
static void do_stage_end(unsigned v)
{
	struct run r = w.run[v][0];
	bool live = m.view[v].active && m.view[v].opening == r.opening;

	if (!w.nruns[v])
		return;
	for (uint64_t s = r.first; s < r.first + r.n; s++) {
		/* One of before the view ended may read anything. */
		check(!live || *slot_of(m.view[v].source, s) == s);
		*slot_of(v, s) = *slot_of(m.view[v].source, s);
	}
	w.run[v][0] = w.run[v][1];
	w.nruns[v]--;
	state_reading(v);
	(void)tsi_membership_done(&m, v, r.opening, r.first, r.first + r.n);
	if (m.view[v].active)
		for (uint64_t s = m.view[v].base; s < m.view[v].head; s++)
			if (s + w.cap[v] >= m.view[v].claimed)
				check(*slot_of(v, s) == s);
}

/* ---- what a tail wakes ---- */

struct wants {
	bool asleep;
	uint64_t gate, front;
};

static bool made_of(unsigned view, unsigned ring)
{
	while (view) {
		view = m.view[view].source;
		if (view == ring)
			return true;
	}
	return false;
}

static bool rings(const struct wants *a, unsigned ring, const struct person *q,
		  uint64_t start, uint64_t old, uint64_t now)
{
	if (q->view == ring && old <= a->gate && a->gate < now)
		return true;
	if (old < a->front && a->front <= now)
		return true;
	return made_of(q->view, ring) && old <= start && start < now;
}

/* The producer sees a tail; whoever may go on by it was to be woken. */
static void do_refresh(struct person *q)
{
	struct wants a[RINGS];
	uint64_t start, old = q->seen;

	if (old == q->tail)
		return;
	for (unsigned v = 0; v < RINGS; v++) {
		a[v].asleep = m.view[v].active &&
			      tsi_membership_limit(&m, v) == m.view[v].claimed;
		tsi_membership_waits(&m, v, &a[v].gate, &a[v].front);
	}
	start = tsi_membership_next_start(&m, q->view);
	check(tsi_membership_tail(&m, q->id, q->tail, 0) == 0);
	q->seen = q->tail;
	for (unsigned v = 0; v < RINGS; v++)
		if (a[v].asleep && m.view[v].active &&
		    tsi_membership_limit(&m, v) > m.view[v].claimed)
			check(rings(&a[v], v, q, start, old, q->seen));
}

/* ---- leaving ---- */

static unsigned count_in(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PEOPLE; i++)
		n += w.who[i].in;
	return n;
}

static void leave(struct person *q)
{
	w.alone = count_in() == 1 ? q : NULL;
	q->in = false;
	tsi_membership_leave(&m, q->id);
	tsi_membership_apply_jump(&m);
}

static void do_die(struct person *q)
{
	leave(q);
	q->liar = false;
	q->after = 0; /* who comes next is a stranger */
	q->again = false;
}

/* All batches are given back, the tail says so, and then it goes. */
static void leave_in_order(struct person *q)
{
	if (q->liar) {
		do_die(q);
		return;
	}
	q->tail = q->p;
	do_refresh(q);
	leave(q);
	q->again = true;
}

static void all_die(unsigned view)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in && w.who[i].view == view)
			do_die(&w.who[i]);
}

/* ---- a source that is lost ---- */

/* What the base ring once held for a view stays there while it's needed. */
static void check_spare(void)
{
	const struct tsi_view_state *v = &m.view[4], *base = &m.view[0];
	bool held = base->base <= v->head && base->claimed <= v->head + w.c;

	if (!v->active || !v->needs_base)
		w.spare = false;
	else if (w.spare)
		check(held);
	else
		w.spare = held;
}

/* View 4 loses its source, or is made anew when nobody reads it. */
static void do_lose(void)
{
	if (!m.view[4].needs_base) {
		if (!m.view[4].active && !w.nruns[4])
			tsi_membership_source(&m, 4, 1, w.cap[4], true);
		return;
	}
	/* What was on its way has spoilt its slots. */
	w.nruns[4] = 0;
	if (!tsi_membership_fall_back_to_base(&m, 4)) {
		check(!w.spare);
		state_reading(4);
		all_die(4);
		all_die(5);
	}
	if (rnd(2))
		all_die(1);
	tsi_membership_apply_jump(&m);
}

/* ---- joining ---- */

static uint64_t start_at_or_after(bool segments, uint64_t s)
{
	uint64_t epoch = s - s % w.n;

	for (unsigned i = 0; segments && i < w.segments; i++)
		if (epoch + w.bounds[i] >= s)
			return epoch + w.bounds[i];
	return epoch == s ? s : epoch + w.n;
}

/* Not those, in truth or not, who are beyond the end. */
static bool anybody_needs(void)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in && w.who[i].seen < w.end)
			return true;
	return false;
}

static uint64_t lead_now(void)
{
	uint64_t front = 0;

	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in)
			front = max64(front, min64(w.who[i].seen,
						   m.view[w.who[i].view].head));
	/* A view may begin where the stream hasn't come to. */
	return min64(front, m.view[0].head);
}

/* The latest start that a join may get, by what was promised. */
static uint64_t latest_start(const struct person *q)
{
	unsigned v = q->view;
	uint64_t s = q->after;

	if (w.alone == q && q->again)
		return start_at_or_after(
			q->join == TSOCK_JOIN_SEGMENT && q->leaves, s);
	if (!anybody_needs())
		return SPOILT;
	while (!m.view[v].active)
		v = m.view[v].source;
	s = max64(s, (lead_now() / w.n + 1) * w.n);
	/* A view may have begun for somebody who waits for a later start. */
	s = max64(s, m.view[v].base);
	if (m.jumping)
		s = max64(s, m.target);
	return start_at_or_after(false, s);
}

static void come_in(struct person *q, const struct tsi_joined *c)
{
	w.alone = NULL;
	q->in = true;
	q->again = false;
	q->id = c->id;
	q->p = q->tail = q->seen = c->start;
	q->end = q->after = c->epoch_end;
}

static void check_claim(const struct person *q, const struct tsi_joined *c)
{
	uint64_t claimed = m.view[q->view].claimed;
	bool whole = q->join != TSOCK_JOIN_NOW || q->after;

	check(c->start >= q->after);
	if (q->join == TSOCK_JOIN_EPOCH ||
	    (q->after && whole && q->join == TSOCK_JOIN_NOW))
		check(c->start % w.n == 0);
	check(c->epoch_end > c->start && c->epoch_end <= c->start + w.n);
	if (whole)
		check(c->epoch_end == c->start + w.n);
	check(c->epoch_end <= w.end);
	/* All that exists from the start on is there, or on its way. */
	for (uint64_t s = c->start; s < claimed; s++) {
		bool on_its_way = s >= m.view[q->view].head;

		check(*slot_of(q->view, s) == s || on_its_way);
	}
}

static void choose(struct person *q)
{
	q->view = (unsigned)rnd(RINGS);
	q->join = (uint32_t)rnd(3);
	q->leaves = rnd(2);
	q->b = 1 + rnd((w.c - w.w) / 2 ? (w.c - w.w) / 2 : 1);
	q->drop_last = q->b <= w.n && rnd(4) == 0;
}

static void do_join(struct person *q)
{
	uint64_t latest;
	struct tsi_join j;
	struct tsi_joined c;
	int err;

	if (!q->again)
		choose(q);
	j = (struct tsi_join){ .view = q->view,
			       .join = q->join,
			       .leaves = q->leaves,
			       .after = q->after };
	/* As serve/handshake.c does; it may miss the newest tails. */
	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in && rnd(2))
			do_refresh(&w.who[i]);
	latest = latest_start(q);
	err = tsi_membership_join(&m, &j, 0, &c);
	if (err) {
		/* Where it is now there may be nothing more. */
		check(err == TSOCK_EENDED && w.end != TSI_NEVER);
		check(latest > w.end - w.n ||
		      (q->join == TSOCK_JOIN_NOW && !q->after));
		q->again = false;
		q->after = 0;
		return;
	}
	tsi_membership_apply_jump(&m);
	if (q->join != TSOCK_JOIN_NOW || q->after)
		check(c.start <= latest);
	check_claim(q, &c);
	come_in(q, &c);
}

/* ---- reading ---- */

static void end_of_epoch(struct person *q)
{
	q->epochs_done++;
	if (q->leaves || w.end - q->end < w.n) {
		leave_in_order(q);
		return;
	}
	q->end += w.n;
	q->after = q->end;
}

static void do_read(struct person *q)
{
	uint64_t n = min64(q->end - q->p, q->b);

	if (q->p == q->end) {
		end_of_epoch(q);
		return;
	}
	if (n < q->b && q->drop_last) {
		q->p = q->end;
		return;
	}
	if (m.view[q->view].head < q->p + n)
		return;
	for (uint64_t s = q->p; s < q->p + n; s++)
		check(*slot_of(q->view, s) == s);
	q->p += n;
}

static void do_release(struct person *q)
{
	for (uint64_t s = q->tail; s < q->p && s < m.view[q->view].head; s++)
		check(*slot_of(q->view, s) == s);
	q->tail = q->p;
}

/* A tail that nothing was read for: that the stream goes on is all. */
static void do_lie(struct person *q)
{
	uint64_t to = q->p + rnd(4) * w.n;

	q->liar = true;
	q->p = q->tail =
		w.end != TSI_NEVER && rnd(2) ? w.end : min64(to, w.end);
}

/* ---- schedules ---- */

static void reader_step(struct person *q, bool fair)
{
	if (!q->in) {
		/* In the fair part only those come who were there. */
		if (fair ? q->again : rnd(4) == 0)
			do_join(q);
		return;
	}
	if (q->liar && fair) {
		do_die(q);
		return;
	}
	switch (rnd(fair ? 3 : 4)) {
	case 0:
		if (fair || rnd(3))
			do_refresh(q);
		break;
	case 1:
		if (!q->liar)
			do_read(q);
		break;
	case 2:
		if (!q->liar && (fair || rnd(2)))
			do_release(q);
		break;
	default:
		if (rnd(10) == 0)
			rnd(2) ? do_die(q) : leave_in_order(q);
		else if (rnd(100) == 0)
			do_lie(q);
	}
}

static void step(bool fair)
{
	check_spare();
	if (!fair && rnd(200) == 0)
		do_lose();
	switch (rnd(10)) {
	case 0:
	case 1:
		do_claim();
		break;
	case 2:
	case 3:
		do_publish();
		break;
	case 4:
		do_stage_begin(1 + (unsigned)rnd(RINGS - 1));
		break;
	case 5:
		do_stage_end(1 + (unsigned)rnd(RINGS - 1));
		break;
	default:
		reader_step(&w.who[rnd(w.people)], fair);
	}
}

/* Has everybody got on who is in, or will come back? */
static bool all_got_on(void)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if ((w.who[i].in || w.who[i].again) && w.who[i].epochs_done < 3)
			return false;
	return true;
}

static void everybody_gets_on(void)
{
	uint64_t most = 20000 * (w.n + 60);

	for (unsigned i = 0; i < PEOPLE; i++)
		w.who[i].epochs_done = 0;
	for (uint64_t i = 0; !all_got_on(); i++) {
		check(i < most);
		step(true);
	}
}

/* Nobody is left: an end is one for all who might come. */
static void check_end(void)
{
	bool ended;

	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in)
			leave_in_order(&w.who[i]);
	ended = tsi_membership_ended(&m);
	if (w.end != TSI_NEVER && m.view[0].claimed <= w.end - w.n)
		check(!ended);
	for (uint32_t how = 0; how < 3; how++) {
		struct tsi_join j = { .join = how };
		uint64_t start;

		if (ended)
			check(tsi_membership_forecast(&m, &j, &start) ==
			      TSOCK_EENDED);
	}
	if (!ended) {
		struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
		uint64_t start;

		check(tsi_membership_forecast(&m, &j, &start) == 0 ||
		      w.segments > 1);
	}
}

static unsigned number(const char *name, unsigned otherwise)
{
	return getenv(name) ? (unsigned)atoi(getenv(name)) : otherwise;
}

static void random_schedules_keep_every_promise(void **state)
{
	unsigned first = number("TSOCK_SEED", 1);
	unsigned seeds = number("TSOCK_SEEDS", 500);

	(void)state;
	for (unsigned seed = first; seed < first + seeds; seed++) {
		world_make(seed);
		for (unsigned i = 0; i < 5000; i++)
			step(false);
		everybody_gets_on();
		check_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_schedules_keep_every_promise),
	};

	return cmocka_run_group_tests_name("membership_random", tests, NULL,
					   NULL);
}
