/*
 * test_members.c - the rules of membership, one by one, and under seeded
 * random schedules with an oracle that knows what is in every slot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/members.h"

static struct tsi_members m;

static void make(uint64_t n, uint64_t w, uint64_t c, uint64_t end)
{
	static const uint64_t bounds[] = { 0, 0 };
	static uint64_t b[2];

	memcpy(b, bounds, sizeof(b));
	b[1] = n;
	tsi_members_init(&m, &(struct tsi_members_config){ .epoch_len = n,
							   .join_window = w,
							   .capacity = c,
							   .end = end,
							   .segments = 1,
							   .bounds = b,
							   .min_members = 1 });
}

static struct tsi_claim join(uint32_t how, uint64_t after)
{
	struct tsi_join j = { .join = how, .after = after };
	struct tsi_claim c = { 0 };

	assert_int_equal(tsi_members_join(&m, &j, 0, &c), 0);
	return c;
}

/* Fill and publish all that may be filled. */
static uint64_t fill(void)
{
	uint64_t first;

	while (tsi_members_take(&m, 0, 1, &first))
		tsi_members_head(&m, 0, first + 1);
	tsi_members_settle(&m);
	return m.view[0].head;
}

static void nothing_is_made_for_nobody(void **state)
{
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	assert_int_equal(tsi_members_take(&m, 0, 1, &first), 0);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(fill(), 128);
}

static void writer_stops_at_the_lowest_tail(void **state)
{
	struct tsi_claim a, b;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	b = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 100, 0);
	assert_int_equal(fill(), 128);
	tsi_members_tail(&m, b.id, 30, 0);
	assert_int_equal(fill(), 158);
	tsi_members_leave(&m, b.id);
	assert_int_equal(fill(), 228);
}

static void pin_keeps_the_epochs_start_until_the_lead_is_w_in(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 63, 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 0);
	tsi_members_leave(&m, 1);
	tsi_members_tail(&m, a.id, 64, 0);
	assert_int_equal(fill(), 192);
	/* Now it is gone: the next epoch. */
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 1000);
}

static void a_tail_beyond_the_head_lets_nobody_run_ahead_of_it(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 1000, 0);
	/* min(tail, head) counts: 128 + 128. */
	assert_int_equal(tsi_members_limit(&m, 0), 256);
}

static void no_start_lies_before_the_epoch_last_begun_ends(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(100, 64, 256, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 10, 0);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 0);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_int_equal(join(TSOCK_JOIN_NOW, 0).start, m.view[0].head);
	assert_int_equal(join(TSOCK_JOIN_NOW, 300).start, 300);
}

static void a_lone_joiner_jumps_to_a_fresh_epoch(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 500, 0);
	tsi_members_leave(&m, a.id);
	a = join(TSOCK_JOIN_EPOCH, 10000);
	assert_int_equal(a.start, 10000);
	assert_true(tsi_members_settle(&m));
	assert_int_equal(m.view[0].head, 10000);
	assert_int_equal(fill(), 10128);
}

static void a_jump_waits_for_what_is_in_flight(void **state)
{
	struct tsi_claim a;
	uint64_t first;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_members_take(&m, 0, 50, &first), 50);
	tsi_members_head(&m, 0, 20);
	tsi_members_tail(&m, a.id, 20, 0);
	tsi_members_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	assert_false(tsi_members_settle(&m));
	assert_int_equal(tsi_members_take(&m, 0, 1, &first), 0);
	/* The live edge is the target now, for others too. */
	assert_int_equal(join(TSOCK_JOIN_NOW, 0).start, 10000);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_members_head(&m, 0, 50);
	assert_true(tsi_members_settle(&m));
	assert_int_equal(m.view[0].base, 10000);
}

static void no_jump_when_the_next_start_is_in_the_ring(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(100, 50, 256, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 30, 0);
	tsi_members_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_false(m.jumping);
}

static void when_only_waiting_readers_are_left_the_stream_skips(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, a.id, 500, 0);
	fill();
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_members_leave(&m, a.id);
	tsi_members_settle(&m);
	assert_int_equal(m.view[0].head, 10000);
}

static void views_skip_with_the_stream(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_claim a, b;
	uint64_t first;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	tsi_members_source(&m, 1, 0, 128, false);
	tsi_members_source(&m, 2, 1, 128, false);
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &a), 0);
	fill();
	assert_int_equal(tsi_members_take(&m, 1, 100, &first), 100);
	tsi_members_reading(&m, 1, first);
	tsi_members_head(&m, 1, 80);
	assert_int_equal(tsi_members_take(&m, 2, 100, &first), 80);
	tsi_members_head(&m, 2, 80);
	tsi_members_tail(&m, a.id, 70, 0);
	on_view.after = 10000;
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &b), 0);
	assert_int_equal(b.start, 10000);
	tsi_members_leave(&m, a.id);
	fill();
	assert_int_equal(m.view[0].base, 10000);
	for (unsigned v = 0; v < 3; v++)
		assert_int_equal(m.view[v].head, 10000);
	/* A stage still reads what was below. */
	assert_int_equal(tsi_members_limit(&m, 0), 10000);
	tsi_members_reading(&m, 1, TSI_NEVER);
	assert_int_equal(tsi_members_limit(&m, 0), 10128);
}

static void nothing_is_made_before_min_members_are_there(void **state)
{
	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	m.c.min_members = 2;
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(fill(), 0);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(fill(), 128);
	tsi_members_tail(&m, 0, 64, 0);
	tsi_members_leave(&m, 1);
	assert_int_equal(fill(), 192);
}

static void nobody_joins_behind_the_end(void **state)
{
	struct tsi_join j = { .after = 200 };
	struct tsi_claim c;

	(void)state;
	make(100, 50, 256, 200);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_members_join(&m, &j, 0, &c), TSOCK_EENDED);
	fill();
	tsi_members_tail(&m, 0, 100, 0);
	assert_int_equal(fill(), 200);
}

static void nonsense_is_refused(void **state)
{
	struct tsi_join j = { .after = UINT64_MAX - 5 };
	struct tsi_claim c;

	(void)state;
	make(100, 50, 256, TSI_NEVER);
	assert_int_equal(tsi_members_join(&m, &j, 0, &c), TSOCK_EREFUSED);
	join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_members_tail(&m, 0, 50, 0), 0);
	assert_int_equal(tsi_members_tail(&m, 0, 49, 0), TSOCK_EPROTO);
	assert_int_equal(tsi_members_tail(&m, 0, UINT64_MAX, 0), TSOCK_EPROTO);
}

/* It would be where the stream begins anew. */
static void a_tail_that_nobody_could_have_is_refused(void **state)
{
	struct tsi_claim a;

	(void)state;
	make(100, 64, 128, 1000);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_members_tail(&m, a.id, 1000, 0), 0);
	assert_int_equal(tsi_members_tail(&m, a.id, 1001, 0), TSOCK_EPROTO);

	make(100, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_members_tail(&m, a.id, TSI_LAST, 0), TSOCK_EPROTO);
	assert_int_equal(tsi_members_tail(&m, a.id, UINT64_C(1) << 40, 0),
			 TSOCK_EPROTO);
	/* By drop_last with batches larger than epochs. */
	assert_int_equal(tsi_members_tail(&m, a.id, 100 * 1000, 0), 0);
	tsi_members_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 100 * 1000);
}

static void slowest_names_the_one_that_holds_all_up(void **state)
{
	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	join(TSOCK_JOIN_EPOCH, 0);
	join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_members_tail(&m, 0, 100, 900);
	assert_int_equal(tsi_members_slowest(&m, 0, 10, 900, 1000), -1);
	assert_int_equal(tsi_members_slowest(&m, 0, 10, 1010, 1000), 1);
	tsi_members_tail(&m, 1, 128, 1000);
	tsi_members_tail(&m, 0, 128, 1000);
	/* A reader that waits for data is not slow. */
	assert_int_equal(tsi_members_slowest(&m, 0, 10, 9000, 1000), -1);
}

static void
what_a_stage_is_reading_is_kept_when_its_readers_are_gone(void **state)
{
	struct tsi_join on_view = { .view = 1 };
	struct tsi_claim base, view;
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	tsi_members_source(&m, 1, 0, 128, false);
	base = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &view), 0);
	fill();
	assert_int_equal(tsi_members_take(&m, 1, 16, &first), 16);
	tsi_members_reading(&m, 1, first);
	tsi_members_leave(&m, view.id);
	/* The base's own reader has gone far ahead of the stage. */
	tsi_members_tail(&m, base.id, 120, 0);
	assert_int_equal(fill(), 128);
	tsi_members_reading(&m, 1, TSI_NEVER);
	assert_int_equal(fill(), 248);
}

static void a_view_that_loses_its_source_goes_on_from_the_base(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_claim c;
	uint64_t first;

	(void)state;
	make(1000, 16, 128, TSI_NEVER);
	tsi_members_source(&m, 1, 0, 128, false);
	tsi_members_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_members_take(&m, 1, 128, &first), 128);
	tsi_members_head(&m, 1, 128);
	/* View 1 has them all, and the base ring keeps them for view 2. */
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_members_take(&m, 2, 32, &first), 32);
	tsi_members_head(&m, 2, 32);
	tsi_members_tail(&m, c.id, 32, 0);
	assert_int_equal(fill(), 160);
	/* Twenty samples were on their way, and are claimed again. */
	assert_int_equal(tsi_members_take(&m, 2, 20, &first), 20);
	assert_true(tsi_members_refeed(&m, 2));
	assert_false(m.view[1].active);
	assert_int_equal(tsi_members_take(&m, 2, 200, &first), 128);
	assert_int_equal(first, 32);
}

static void what_never_came_has_spoilt_its_slots(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_claim c;
	uint64_t first;

	(void)state;
	make(1000, 16, 128, TSI_NEVER);
	tsi_members_source(&m, 1, 0, 128, false);
	tsi_members_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &c), 0);
	fill();
	(void)tsi_members_take(&m, 1, 128, &first);
	tsi_members_head(&m, 1, 128);
	assert_int_equal(tsi_members_take(&m, 2, 120, &first), 120);
	tsi_members_head(&m, 2, 120);
	tsi_members_tail(&m, c.id, 20, 0);
	fill();
	(void)tsi_members_take(&m, 1, 128, &first);
	tsi_members_head(&m, 1, 148);
	assert_int_equal(tsi_members_take(&m, 2, 20, &first), 20);
	assert_true(tsi_members_refeed(&m, 2));
	/* Samples 0 to 11 were written over: the epoch's start is gone. */
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(c.start, 1000);
}

static void
a_view_that_began_behind_the_base_is_lost_with_its_source(void **state)
{
	struct tsi_join on_view = { .view = 1 }, late = { .view = 2 };
	struct tsi_claim c;
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	tsi_members_source(&m, 1, 0, 128, false);
	tsi_members_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_members_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_members_take(&m, 1, 128, &first), 128);
	tsi_members_head(&m, 1, 128);
	tsi_members_tail(&m, c.id, 100, 0);
	assert_int_equal(fill(), 256);
	/* View 1 has the epoch's start, the base ring hasn't. */
	assert_int_equal(tsi_members_join(&m, &late, 0, &c), 0);
	assert_int_equal(c.start, 0);
	assert_false(tsi_members_refeed(&m, 2));
	/* When it has caught up, it can do without. */
	assert_int_equal(tsi_members_take(&m, 2, 128, &first), 128);
	tsi_members_head(&m, 2, 128);
	assert_true(tsi_members_refeed(&m, 2));
}

/* ---- random schedules ---- */

#define PEOPLE 6
#define MOST_C 64

struct person {
	bool in, waiting;
	unsigned id, view;
	uint64_t p, tail, end, after, b;
	bool drop_last;
	uint64_t epochs_done;
};

struct world {
	uint64_t rng;
	uint64_t n, w, c;
	uint64_t slot[TSI_VIEWS][MOST_C];
	uint64_t pending[MOST_C * 2]; /* claimed, unpublished, by order */
	bool written[MOST_C * 2];
	unsigned npending;
	struct person who[PEOPLE];
	uint64_t bounds[5];
	unsigned segments;
	bool spare; /* the base ring holds what view 4 needs next */
};

static struct world w;

static uint64_t rnd(uint64_t below)
{
	w.rng ^= w.rng << 13;
	w.rng ^= w.rng >> 7;
	w.rng ^= w.rng << 17;
	return w.rng % below;
}

#define check(what) \
	do { \
		if (!(what)) { \
			print_error("%s (seed %llu)\n", #what, \
				    (unsigned long long)seed_now); \
			fail(); \
		} \
	} while (0)
static uint64_t seed_now;

static void world_make(uint64_t seed)
{
	memset(&w, 0, sizeof(w));
	seed_now = seed;
	w.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	w.c = 8 + rnd(MOST_C - 8);
	w.w = 1 + rnd(w.c / 2);
	w.n = 1 + rnd(rnd(2) ? 40 : 200);
	w.segments = w.n >= 4 && rnd(2) ? 4 : 1;
	for (unsigned i = 0; i <= w.segments; i++)
		w.bounds[i] = w.n * i / w.segments;
	memset(w.slot, 0xff, sizeof(w.slot));
	tsi_members_init(&m,
			 &(struct tsi_members_config){ .epoch_len = w.n,
						       .join_window = w.w,
						       .capacity = w.c,
						       .end = TSI_NEVER,
						       .segments = w.segments,
						       .bounds = w.bounds,
						       .min_members = 1 });
	/* Two views of the base, one made of the second; one of the first that
	 * may lose it, and one made of that. */
	tsi_members_source(&m, 1, 0, w.c, false);
	tsi_members_source(&m, 2, 0, w.c, false);
	tsi_members_source(&m, 3, 2, w.c, false);
	tsi_members_source(&m, 4, 1, w.c, true);
	tsi_members_source(&m, 5, 4, w.c, false);
}

/* Writing s must not hit what a reader of that view still needs. */
static void check_overwrite(unsigned view, uint64_t s)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct person *q = &w.who[i];

		if (q->in && q->view == view && q->tail <= s)
			check(s < q->tail + w.c);
	}
	for (unsigned v = 1; v < TSI_VIEWS; v++)
		if (m.view[v].source == view && m.view[v].active &&
		    m.view[v].head <= s)
			check(s < m.view[v].head + w.c);
}

static void do_claim(void)
{
	uint64_t first;
	unsigned n = tsi_members_take(&m, 0, 1 + (unsigned)rnd(4), &first);
	bool needed = false;

	for (unsigned i = 0; i < n; i++) {
		check_overwrite(0, first + i);
		w.slot[0][(first + i) % w.c] = first + i;
		w.pending[w.npending] = first + i;
		w.written[w.npending++] = false;
	}
	for (unsigned i = 0; i < PEOPLE; i++)
		needed |= w.who[i].in && w.who[i].p <= first + n;
	/* Nothing is made for nobody: somebody is there already, or was when
	 * these were granted. */
	if (n)
		check(needed || m.count);
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
		tsi_members_head(&m, 0, w.pending[done - 1] + 1);
		w.npending -= done;
		memmove(w.pending, w.pending + done,
			w.npending * sizeof(w.pending[0]));
		memmove(w.written, w.written + done,
			w.npending * sizeof(w.written[0]));
	}
	tsi_members_settle(&m);
}

static void do_stage(unsigned v)
{
	uint64_t first;
	unsigned n;

	if (!m.view[v].active)
		return;
	n = tsi_members_take(&m, v, 1 + (unsigned)rnd(4), &first);
	for (uint64_t s = first; s < first + n; s++) {
		check(s < m.view[m.view[v].source].head);
		check(w.slot[m.view[v].source][s % w.c] == s);
		check_overwrite(v, s);
		w.slot[v][s % w.c] = s;
	}
	if (n)
		tsi_members_head(&m, v, first + n);
}

static void all_leave(unsigned view)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (w.who[i].in && w.who[i].view == view) {
			w.who[i].in = false;
			tsi_members_leave(&m, w.who[i].id);
		}
}

/* What the base ring once held for a view stays there while it's needed. */
static void check_spare(void)
{
	const struct tsi_view_state *v = &m.view[4], *base = &m.view[0];
	bool held = base->base <= v->head && base->claimed <= v->head + w.c;

	if (!v->active || !v->keeps_base)
		w.spare = false;
	else if (w.spare)
		check(held);
	else
		w.spare = held;
}

/* View 4 loses its source, or is made anew when nobody reads it. */
static void do_lose(void)
{
	uint64_t first;
	unsigned n;

	if (!m.view[4].keeps_base) {
		if (!m.view[4].active)
			tsi_members_source(&m, 4, 1, w.c, true);
		return;
	}
	if (m.view[4].active) {
		n = tsi_members_take(&m, 4, 1 + (unsigned)rnd(4), &first);
		for (uint64_t s = first; s < first + n; s++) {
			check_overwrite(4, s);
			w.slot[4][s % w.c] = UINT64_MAX;
		}
	}
	if (!tsi_members_refeed(&m, 4)) {
		check(!w.spare);
		all_leave(4);
		all_leave(5);
	}
	if (rnd(2))
		all_leave(1);
	tsi_members_settle(&m);
}

static void do_join(struct person *q)
{
	struct tsi_join j = { .view = (unsigned)rnd(6),
			      .join = (uint32_t)rnd(3),
			      .after = q->after };
	struct tsi_claim c;
	uint64_t claimed;

	assert_int_equal(tsi_members_join(&m, &j, 0, &c), 0);
	tsi_members_settle(&m);
	check(c.start >= q->after);
	if (j.join == TSOCK_JOIN_EPOCH)
		check(c.start % w.n == 0);
	check(c.epoch_end > c.start && c.epoch_end <= c.start + w.n);
	if (j.join != TSOCK_JOIN_NOW)
		check(c.epoch_end == c.start + w.n);
	/* All that exists from the start on is still there. */
	claimed = m.view[j.view].claimed;
	for (uint64_t s = c.start; s < claimed; s++)
		check(w.slot[j.view][s % w.c] == s);
	q->in = true;
	q->id = c.id;
	q->view = j.view;
	q->p = q->tail = c.start;
	q->end = q->after = c.epoch_end;
	q->b = 1 + rnd((w.c - w.w) / 2 ? (w.c - w.w) / 2 : 1);
	q->drop_last = rnd(4) == 0;
}

static void do_read(struct person *q)
{
	uint64_t n = q->end - q->p < q->b ? q->end - q->p : q->b;

	if (q->p == q->end) { /* between=hold */
		q->epochs_done++;
		q->end += w.n;
		q->after = q->end;
		return;
	}
	if (n < q->b && q->drop_last) {
		q->p = q->end;
		return;
	}
	if (m.view[q->view].head < q->p + n)
		return;
	for (uint64_t s = q->p; s < q->p + n; s++)
		check(w.slot[q->view][s % w.c] == s);
	q->p += n;
}

static void do_release(struct person *q)
{
	for (uint64_t s = q->tail; s < q->p && s < m.view[q->view].head; s++)
		check(w.slot[q->view][s % w.c] == s);
	q->tail = q->p;
}

static void step(bool fair)
{
	struct person *q = &w.who[rnd(PEOPLE)];

	check_spare();
	if (!fair && rnd(200) == 0)
		do_lose();
	switch (rnd(12)) {
	case 0:
	case 1:
	case 2:
		do_claim();
		break;
	case 3:
	case 4:
	case 5:
		do_publish();
		break;
	case 6:
		do_stage(1 + (unsigned)rnd(5));
		break;
	case 7:
		if (!q->in && !fair)
			do_join(q);
		break;
	case 8:
		if (q->in && !fair && rnd(8) == 0) {
			if (rnd(2)) {
				do_release(q);
				tsi_members_tail(&m, q->id, q->tail, 0);
			} else { /* a death: the next one is a stranger */
				q->after = 0;
			}
			q->in = false;
			tsi_members_leave(&m, q->id);
			tsi_members_settle(&m);
		}
		break;
	case 9:
		if (q->in && (fair || rnd(3)))
			assert_int_equal(
				tsi_members_tail(&m, q->id, q->tail, 0), 0);
		break;
	case 10:
		if (q->in)
			do_read(q);
		break;
	default:
		if (q->in && (fair || rnd(2)))
			do_release(q);
	}
}

static void random_schedules_keep_every_promise(void **state)
{
	unsigned seeds = getenv("TSOCK_SEEDS")
				 ? (unsigned)atoi(getenv("TSOCK_SEEDS"))
				 : 500;

	(void)state;
	for (unsigned seed = 1; seed <= seeds; seed++) {
		world_make(seed);
		for (unsigned i = 0; i < 3000; i++)
			step(false);
		/* From here on all are fair: everybody must get on. */
		for (unsigned i = 0; i < PEOPLE; i++)
			w.who[i].epochs_done = 0;
		for (unsigned i = 0; i < 1200 * (w.n + 60); i++)
			step(true);
		for (unsigned i = 0; i < PEOPLE; i++)
			if (w.who[i].in)
				check(w.who[i].epochs_done > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_made_for_nobody),
		cmocka_unit_test(writer_stops_at_the_lowest_tail),
		cmocka_unit_test(
			pin_keeps_the_epochs_start_until_the_lead_is_w_in),
		cmocka_unit_test(
			a_tail_beyond_the_head_lets_nobody_run_ahead_of_it),
		cmocka_unit_test(
			no_start_lies_before_the_epoch_last_begun_ends),
		cmocka_unit_test(a_lone_joiner_jumps_to_a_fresh_epoch),
		cmocka_unit_test(a_jump_waits_for_what_is_in_flight),
		cmocka_unit_test(no_jump_when_the_next_start_is_in_the_ring),
		cmocka_unit_test(
			when_only_waiting_readers_are_left_the_stream_skips),
		cmocka_unit_test(views_skip_with_the_stream),
		cmocka_unit_test(nothing_is_made_before_min_members_are_there),
		cmocka_unit_test(nobody_joins_behind_the_end),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_tail_that_nobody_could_have_is_refused),
		cmocka_unit_test(slowest_names_the_one_that_holds_all_up),
		cmocka_unit_test(
			what_a_stage_is_reading_is_kept_when_its_readers_are_gone),
		cmocka_unit_test(
			a_view_that_loses_its_source_goes_on_from_the_base),
		cmocka_unit_test(what_never_came_has_spoilt_its_slots),
		cmocka_unit_test(
			a_view_that_began_behind_the_base_is_lost_with_its_source),
		cmocka_unit_test(random_schedules_keep_every_promise),
	};

	return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
