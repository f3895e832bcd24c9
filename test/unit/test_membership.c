/* SPDX-License-Identifier: MIT */
/*
 * test_membership.c - the rules of membership, one by one.
 *
 * The rule about slow readers is in test_membership_slow.c; random schedules
 * try all rules together in test_membership_random.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/membership_fixture.h"

static void nothing_is_made_for_nobody(void **state)
{
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	assert_int_equal(tsi_membership_claim(&m, 0, 1, &first), 0);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(fill(), 128);
}

static void writer_stops_at_the_lowest_tail(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	b = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 100, 0);
	assert_int_equal(fill(), 128);
	tsi_membership_tail(&m, b.id, 30, 0);
	assert_int_equal(fill(), 158);
	tsi_membership_leave(&m, b.id);
	assert_int_equal(fill(), 228);
}

static void pin_keeps_the_epochs_start_until_the_lead_is_w_in(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 63, 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 0);
	tsi_membership_leave(&m, 1);
	tsi_membership_tail(&m, a.id, 64, 0);
	assert_int_equal(fill(), 192);
	/* Now it is gone: the next epoch. */
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 1000);
}

static void a_tail_beyond_the_head_lets_nobody_run_ahead_of_it(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 1000, 0);
	/* min(tail, head) counts: 128 + 128. */
	assert_int_equal(tsi_membership_limit(&m, 0), 256);
}

static void no_start_lies_before_the_epoch_last_begun_ends(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(100, 64, 256, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 10, 0);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 0);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_int_equal(join(TSOCK_JOIN_NOW, 0).start, m.view[0].head);
	assert_int_equal(join(TSOCK_JOIN_NOW, 300).start, 300);
}

static void a_lone_joiner_jumps_to_a_fresh_epoch(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 500, 0);
	tsi_membership_leave(&m, a.id);
	a = join(TSOCK_JOIN_EPOCH, 10000);
	assert_int_equal(a.start, 10000);
	assert_true(tsi_membership_apply_jump(&m));
	assert_int_equal(m.view[0].head, 10000);
	assert_int_equal(fill(), 10128);
}

static void a_jump_waits_for_what_is_in_flight(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_claim(&m, 0, 50, &first), 50);
	tsi_membership_published(&m, 0, 20);
	tsi_membership_tail(&m, a.id, 20, 0);
	tsi_membership_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	assert_false(tsi_membership_apply_jump(&m));
	assert_int_equal(tsi_membership_claim(&m, 0, 1, &first), 0);
	/* The live edge is the target now, for others too. */
	assert_int_equal(join(TSOCK_JOIN_NOW, 0).start, 10000);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_membership_published(&m, 0, 50);
	assert_true(tsi_membership_apply_jump(&m));
	assert_int_equal(m.view[0].base, 10000);
}

static void no_jump_when_the_next_start_is_in_the_ring(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(100, 50, 256, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 30, 0);
	tsi_membership_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_false(m.jumping);
}

static void when_only_waiting_readers_are_left_the_stream_skips(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 500, 0);
	fill();
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_membership_leave(&m, a.id);
	tsi_membership_apply_jump(&m);
	assert_int_equal(m.view[0].head, 10000);
}

static void views_skip_with_the_stream(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_joined a, b;
	uint64_t first;

	(void)state;
	make(10000, 64, 128, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, 128, false);
	tsi_membership_source(&m, 2, 1, 128, false);
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &a), 0);
	fill();
	assert_int_equal(tsi_membership_claim(&m, 1, 100, &first), 100);
	tsi_membership_reading(&m, 1, first);
	tsi_membership_published(&m, 1, 80);
	assert_int_equal(tsi_membership_claim(&m, 2, 100, &first), 80);
	tsi_membership_published(&m, 2, 80);
	tsi_membership_tail(&m, a.id, 70, 0);
	on_view.after = 10000;
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &b), 0);
	assert_int_equal(b.start, 10000);
	tsi_membership_leave(&m, a.id);
	fill();
	assert_int_equal(m.view[0].base, 10000);
	for (unsigned v = 0; v < 3; v++)
		assert_int_equal(m.view[v].head, 10000);
	/* A stage still reads what was below. */
	assert_int_equal(tsi_membership_limit(&m, 0), 10000);
	tsi_membership_reading(&m, 1, TSI_NEVER);
	assert_int_equal(tsi_membership_limit(&m, 0), 10128);
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
	tsi_membership_tail(&m, 0, 64, 0);
	tsi_membership_leave(&m, 1);
	assert_int_equal(fill(), 192);
}

static void nobody_joins_behind_the_end(void **state)
{
	struct tsi_join j = { .after = 200 };
	struct tsi_joined c;

	(void)state;
	make(100, 50, 256, 200);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), TSOCK_EENDED);
	fill();
	tsi_membership_tail(&m, 0, 100, 0);
	assert_int_equal(fill(), 200);
}

static void nonsense_is_refused(void **state)
{
	struct tsi_join j = { .after = UINT64_MAX - 5 };
	struct tsi_joined c;

	(void)state;
	make(100, 50, 256, TSI_NEVER);
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), TSOCK_EREFUSED);
	join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_membership_tail(&m, 0, 50, 0), 0);
	assert_int_equal(tsi_membership_tail(&m, 0, 49, 0), TSOCK_EPROTO);
	assert_int_equal(tsi_membership_tail(&m, 0, UINT64_MAX, 0),
			 TSOCK_EPROTO);
}

static void a_tail_that_nobody_could_have_is_refused(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(100, 64, 128, 1000);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_membership_tail(&m, a.id, 1000, 0), 0);
	assert_int_equal(tsi_membership_tail(&m, a.id, 1001, 0), TSOCK_EPROTO);

	make(100, 64, 128, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	assert_int_equal(tsi_membership_tail(&m, a.id, TSI_LAST, 0),
			 TSOCK_EPROTO);
	assert_int_equal(tsi_membership_tail(&m, a.id, UINT64_C(1) << 40, 0),
			 TSOCK_EPROTO);
	/* What isn't there can't have been read. */
	assert_int_equal(tsi_membership_tail(&m, a.id, 100 * 1000, 0), 0);
	tsi_membership_leave(&m, a.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 200);
}

/* ---- the next epoch's start ---- */

/* The stage is done with the epoch, its reader is not. */
static void the_base_keeps_the_next_start_for_readers_of_views(void **state)
{
	struct tsi_joined view;

	(void)state;
	make_views(1000, 64, 128, TSI_NEVER);
	view = join_view(1, 0);
	fill_all();
	for (uint64_t tail = 64; tail <= 960; tail += 64) {
		tsi_membership_tail(&m, view.id, tail, 0);
		fill_all();
	}
	/* Not 960 + 2 * 128. */
	assert_int_equal(m.view[1].head, 1088);
	assert_int_equal(m.view[0].head, 1128);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 0).start, 1000);
	tsi_membership_leave(&m, view.id + 1);
	/* On the start, and about to leave. */
	tsi_membership_tail(&m, view.id, 1000, 0);
	fill_all();
	assert_int_equal(m.view[0].head, 1128);
	tsi_membership_leave(&m, view.id);
	view = join_view(1, 1000);
	assert_int_equal(view.start, 1000);
	assert_false(m.jumping);
}

static void a_chain_of_views_keeps_it_as_well(void **state)
{
	struct tsi_joined chain;

	(void)state;
	make_views(1000, 64, 128, TSI_NEVER);
	chain = join_view(3, 0);
	fill_all();
	for (uint64_t tail = 64; tail <= 960; tail += 64) {
		tsi_membership_tail(&m, chain.id, tail, 0);
		fill_all();
	}
	assert_int_equal(m.view[3].head, 1088);
	assert_int_equal(m.view[2].head, 1128);
	assert_int_equal(m.view[0].head, 1128);
	assert_int_equal(join_view(2, 0).start, 1000);
	assert_int_equal(join_view(1, 0).start, 1000);
}

static void a_writer_asks_for_the_tail_that_passes_it(void **state)
{
	struct tsi_joined view;
	uint64_t gate, front;

	(void)state;
	make_views(1000, 1, 128, TSI_NEVER);
	view = join_view(1, 0);
	fill_all();
	for (uint64_t tail = 64; tail <= 960; tail += 64) {
		tsi_membership_tail(&m, view.id, tail, 0);
		fill_all();
	}
	tsi_membership_waits(&m, 0, &gate, &front);
	assert_int_equal(tsi_membership_next_start(&m, 1), 1000);
	assert_int_equal(tsi_membership_next_start(&m, 0), TSI_NEVER);
	tsi_membership_tail(&m, view.id, 1001, 0);
	assert_int_equal(tsi_membership_next_start(&m, 1), 2000);
	assert_true(tsi_membership_limit(&m, 0) > 1128);
}

/* Another one, which is gone, was far ahead. */
static void who_is_alone_gets_its_own_next_epoch(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	make(100, 50, 256, TSI_NEVER);
	a = join(TSOCK_JOIN_EPOCH, 0);
	b = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 240, 0);
	tsi_membership_leave(&m, a.id);
	tsi_membership_tail(&m, b.id, 100, 0);
	tsi_membership_leave(&m, b.id);
	assert_int_equal(join(TSOCK_JOIN_EPOCH, 100).start, 100);
}

/* A float32 validation set in the middle of its segments. */
static void a_segments_start_is_kept_for_who_joins_by_segment(void **state)
{
	static const uint64_t bounds[] = { 0, 500, 1000 };
	struct tsi_join j = { .view = 1,
			      .join = TSOCK_JOIN_SEGMENT,
			      .leaves = true };
	struct tsi_joined c;

	(void)state;
	make_views(1000, 64, 128, TSI_NEVER);
	m.c.segments = 2;
	m.c.bounds = bounds;
	j.after = 500;
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	assert_int_equal(c.start, 500);
	fill_all();
	for (uint64_t tail = 564; tail <= 1460; tail += 64) {
		tsi_membership_tail(&m, c.id, tail, 0);
		fill_all();
	}
	assert_int_equal(m.view[0].head, 1628);
	tsi_membership_tail(&m, c.id, 1500, 0);
	tsi_membership_leave(&m, c.id);
	j.after = c.epoch_end;
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	assert_int_equal(c.start, 1500);
}

/* It holds, so its segment's start is not kept, but the next epoch's is. */
static void who_breaks_off_is_not_sent_to_where_others_were(void **state)
{
	static const uint64_t bounds[] = { 0, 5, 10 };
	struct tsi_join j = { .view = 1, .join = TSOCK_JOIN_SEGMENT };
	struct tsi_joined a, c;

	(void)state;
	make_views(10, 5, 40, TSI_NEVER);
	m.c.segments = 2;
	m.c.bounds = bounds;
	a = join(TSOCK_JOIN_EPOCH, 0);
	j.after = 5;
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	assert_int_equal(c.start, 5);
	fill_all();
	tsi_membership_tail(&m, a.id, 40, 0);
	tsi_membership_tail(&m, c.id, 15, 0);
	fill_all();
	tsi_membership_tail(&m, a.id, 58, 0);
	tsi_membership_leave(&m, a.id);
	fill_all();
	assert_int_equal(m.view[0].head, 60);
	tsi_membership_leave(&m, c.id);
	j.after = c.epoch_end;
	assert_int_equal(c.epoch_end, 15);
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	assert_int_equal(c.start, 20);
}

static void only_the_first_epoch_of_joining_now_is_short(void **state)
{
	struct tsi_joined a;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	join(TSOCK_JOIN_EPOCH, 0);
	fill();
	a = join(TSOCK_JOIN_NOW, 0);
	assert_int_equal(a.start, 128);
	assert_int_equal(a.epoch_end, 1000);
	tsi_membership_leave(&m, a.id);
	for (uint64_t tail = 64; tail <= 1024; tail += 64) {
		tsi_membership_tail(&m, 0, tail, 0);
		fill();
	}
	a = join(TSOCK_JOIN_NOW, a.epoch_end);
	assert_int_equal(a.start, 1000);
	assert_int_equal(a.epoch_end, 2000);
}

/* ---- the end ---- */

static void who_stops_in_the_last_epoch_ends_the_stream(void **state)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
	struct tsi_joined a;

	(void)state;
	make(1000, 64, 128, 2000);
	assert_false(tsi_membership_ended(&m));
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 100, 0);
	tsi_membership_leave(&m, a.id);
	/* There is another epoch. */
	assert_false(tsi_membership_ended(&m));
	a = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 1000);
	tsi_membership_apply_jump(&m);
	fill();
	tsi_membership_tail(&m, a.id, 1100, 0);
	assert_false(tsi_membership_ended(&m));
	tsi_membership_leave(&m, a.id);
	assert_true(tsi_membership_ended(&m));
	for (j.join = 0; j.join < 3; j.join++)
		assert_int_equal(tsi_membership_forecast(&m, &j, &a.start),
				 TSOCK_EENDED);
}

static void the_last_epoch_is_kept_for_who_left_before_it(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	make(100, 50, 256, 300);
	a = join(TSOCK_JOIN_EPOCH, 0);
	b = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 200, 0);
	tsi_membership_tail(&m, b.id, 200, 0);
	fill();
	tsi_membership_tail(&m, a.id, 250, 0);
	tsi_membership_leave(&m, a.id);
	tsi_membership_leave(&m, b.id);
	assert_false(tsi_membership_ended(&m));
	b = join(TSOCK_JOIN_EPOCH, 200);
	assert_int_equal(b.start, 200);
	fill();
	tsi_membership_tail(&m, b.id, 300, 0);
	/* It needs nothing more, and may stay as long as it likes. */
	assert_true(tsi_membership_ended(&m));
	tsi_membership_leave(&m, b.id);
	assert_true(tsi_membership_ended(&m));
}

static void a_tail_at_the_end_does_not_end_the_stream(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	make(1000, 64, 128, 5000);
	a = join(TSOCK_JOIN_EPOCH, 0);
	fill();
	tsi_membership_tail(&m, a.id, 5000, 0);
	/* It needs nothing, so nothing is made for it. */
	assert_int_equal(tsi_membership_claim(&m, 0, 1, &first), 0);
	assert_false(tsi_membership_ended(&m));
	tsi_membership_leave(&m, a.id);
	assert_false(tsi_membership_ended(&m));
	a = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 1000);
	tsi_membership_apply_jump(&m);
	assert_int_equal(fill(), 1128);
}

/* ---- stages ---- */

/* The view ends while two lanes are at work, and begins again where it was. */
static void a_run_of_before_a_view_ended_is_not_published(void **state)
{
	struct tsi_joined a, b;
	uint64_t old, new;
	uint32_t opening;

	(void)state;
	make_views(1000, 64, 128, TSI_NEVER);
	b = join(TSOCK_JOIN_EPOCH, 0);
	a = join_view(1, 0);
	fill();
	assert_int_equal(tsi_membership_claim(&m, 1, 10, &old), 10);
	opening = m.view[1].opening;
	tsi_membership_reading(&m, 1, old);
	tsi_membership_leave(&m, a.id);
	(void)b;
	a = join_view(1, 0);
	assert_int_equal(a.start, 0);
	assert_int_equal(tsi_membership_claim(&m, 1, 16, &new), 16);
	assert_int_equal(new, old);
	/* Samples 0 .. 9 of before, while 0 .. 15 are being written. */
	assert_false(tsi_membership_done(&m, 1, opening, old, old + 10));
	assert_true(
		tsi_membership_done(&m, 1, m.view[1].opening, new, new + 16));
	assert_int_equal(m.view[1].head, 16);
}

static void
what_a_stage_is_reading_is_kept_when_its_readers_are_gone(void **state)
{
	struct tsi_join on_view = { .view = 1 };
	struct tsi_joined base, view;
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, 128, false);
	base = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &view), 0);
	fill();
	assert_int_equal(tsi_membership_claim(&m, 1, 16, &first), 16);
	tsi_membership_reading(&m, 1, first);
	tsi_membership_leave(&m, view.id);
	/* The base's own reader has gone far ahead of the stage. */
	tsi_membership_tail(&m, base.id, 120, 0);
	assert_int_equal(fill(), 128);
	tsi_membership_reading(&m, 1, TSI_NEVER);
	assert_int_equal(fill(), 248);
}

static void a_view_that_loses_its_source_goes_on_from_the_base(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_joined c;
	uint64_t first;

	(void)state;
	make(1000, 16, 128, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, 128, false);
	tsi_membership_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_membership_claim(&m, 1, 128, &first), 128);
	tsi_membership_published(&m, 1, 128);
	/* View 1 has them all, and the base ring keeps them for view 2. */
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_membership_claim(&m, 2, 32, &first), 32);
	tsi_membership_published(&m, 2, 32);
	tsi_membership_tail(&m, c.id, 32, 0);
	assert_int_equal(fill(), 160);
	/* Twenty samples were on their way, and are claimed again. */
	assert_int_equal(tsi_membership_claim(&m, 2, 20, &first), 20);
	assert_true(tsi_membership_fall_back_to_base(&m, 2));
	assert_false(m.view[1].active);
	assert_int_equal(tsi_membership_claim(&m, 2, 200, &first), 128);
	assert_int_equal(first, 32);
}

static void what_never_came_has_spoilt_its_slots(void **state)
{
	struct tsi_join on_view = { .view = 2 };
	struct tsi_joined c;
	uint64_t first;

	(void)state;
	make(1000, 16, 128, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, 128, false);
	tsi_membership_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &c), 0);
	fill();
	(void)tsi_membership_claim(&m, 1, 128, &first);
	tsi_membership_published(&m, 1, 128);
	assert_int_equal(tsi_membership_claim(&m, 2, 120, &first), 120);
	tsi_membership_published(&m, 2, 120);
	tsi_membership_tail(&m, c.id, 20, 0);
	fill();
	(void)tsi_membership_claim(&m, 1, 128, &first);
	tsi_membership_published(&m, 1, 148);
	assert_int_equal(tsi_membership_claim(&m, 2, 20, &first), 20);
	assert_true(tsi_membership_fall_back_to_base(&m, 2));
	/* Samples 0 to 11 were written over: the epoch's start is gone. */
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(c.start, 1000);
}

static void
a_view_that_began_behind_the_base_is_lost_with_its_source(void **state)
{
	struct tsi_join on_view = { .view = 1 }, late = { .view = 2 };
	struct tsi_joined c;
	uint64_t first;

	(void)state;
	make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, 128, false);
	tsi_membership_source(&m, 2, 1, 128, true);
	assert_int_equal(tsi_membership_join(&m, &on_view, 0, &c), 0);
	assert_int_equal(fill(), 128);
	assert_int_equal(tsi_membership_claim(&m, 1, 128, &first), 128);
	tsi_membership_published(&m, 1, 128);
	tsi_membership_tail(&m, c.id, 100, 0);
	assert_int_equal(fill(), 256);
	/* View 1 has the epoch's start, the base ring hasn't. */
	assert_int_equal(tsi_membership_join(&m, &late, 0, &c), 0);
	assert_int_equal(c.start, 0);
	assert_false(tsi_membership_fall_back_to_base(&m, 2));
	/* When it has caught up, it can do without. */
	assert_int_equal(tsi_membership_claim(&m, 2, 128, &first), 128);
	tsi_membership_published(&m, 2, 128);
	assert_true(tsi_membership_fall_back_to_base(&m, 2));
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
		cmocka_unit_test(
			the_base_keeps_the_next_start_for_readers_of_views),
		cmocka_unit_test(a_chain_of_views_keeps_it_as_well),
		cmocka_unit_test(a_writer_asks_for_the_tail_that_passes_it),
		cmocka_unit_test(who_is_alone_gets_its_own_next_epoch),
		cmocka_unit_test(
			a_segments_start_is_kept_for_who_joins_by_segment),
		cmocka_unit_test(
			who_breaks_off_is_not_sent_to_where_others_were),
		cmocka_unit_test(only_the_first_epoch_of_joining_now_is_short),
		cmocka_unit_test(who_stops_in_the_last_epoch_ends_the_stream),
		cmocka_unit_test(the_last_epoch_is_kept_for_who_left_before_it),
		cmocka_unit_test(a_tail_at_the_end_does_not_end_the_stream),
		cmocka_unit_test(a_run_of_before_a_view_ended_is_not_published),
		cmocka_unit_test(
			what_a_stage_is_reading_is_kept_when_its_readers_are_gone),
		cmocka_unit_test(
			a_view_that_loses_its_source_goes_on_from_the_base),
		cmocka_unit_test(what_never_came_has_spoilt_its_slots),
		cmocka_unit_test(
			a_view_that_began_behind_the_base_is_lost_with_its_source),
	};

	return cmocka_run_group_tests_name("membership", tests, NULL, NULL);
}
