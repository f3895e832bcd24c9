/* SPDX-License-Identifier: MIT */
/*
 * test_membership_slow.c - a reader is slow when another reader waits for it,
 * and only then.
 */
#include "test/lib/membership_fixture.h"

static int64_t now;
static struct tsi_slow slow;

/* What is found by looking every 100 ms for that long; -1: nothing. */
static int look_for(int64_t ms)
{
	bool found = false;

	for (int64_t until = now + ms; now < until && !found; now += 100) {
		unsigned first = 0;

		found = tsi_membership_look(&membership_m, now) &&
			tsi_membership_slow(&membership_m, &first, 1000, &slow);
	}
	return found ? (int)slow.id : -1;
}

static void slow_is_who_holds_up_one_that_waits(void **state)
{
	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, now);
	membership_fill();
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(look_for(1000), -1);
	assert_int_equal(look_for(200), 1);
	/* A reader that waits for data is not slow. */
	tsi_membership_tail(&membership_m, 1, 128, now);
	tsi_membership_want(&membership_m, 1, 150);
	assert_int_equal(look_for(5000), -1);
}

static void who_pauses_while_nobody_waits_is_not_slow(void **state)
{
	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(look_for(10000), -1);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(look_for(10000), -1);
	/* The first reader waits, but for the workers. */
	tsi_membership_tail(&membership_m, 0, 128, now);
	tsi_membership_tail(&membership_m, 1, 10, now);
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(look_for(10000), -1);
	membership_fill();
	assert_int_equal(look_for(10000), -1);
	/* The first reader waits now and then. */
	tsi_membership_want(&membership_m, 0, 139);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(look_for(800), -1);
		tsi_membership_want(&membership_m, 0, i % 2 ? 139 : 0);
	}
	/* The first reader always waits, and the other one advances slowly. */
	tsi_membership_want(&membership_m, 0, 200);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(look_for(800), -1);
		tsi_membership_tail(&membership_m, 1, 11 + i, now);
		membership_fill();
	}
	assert_int_equal(look_for(2000), 1);
}

static void who_says_that_it_waits_for_more_than_it_allows_is_slow(void **state)
{
	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, now);
	tsi_membership_want(&membership_m, 0, 138);
	tsi_membership_want(&membership_m, 1, 129);
	assert_int_equal(look_for(1200), 1);
	/* Nor is anybody slow for one that says so. */
	tsi_membership_tail(&membership_m, 1, 10, now);
	membership_fill();
	tsi_membership_want(&membership_m, 0, 257);
	assert_int_equal(look_for(9000), -1);
}

static void a_wait_in_slices_is_a_wait(void **state)
{
	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, now);
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(look_for(500), -1);
	tsi_membership_want(&membership_m, 0, 0);
	assert_int_equal(look_for(100), -1);
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(look_for(300), -1);
	assert_int_equal(look_for(300), 1);
}

static void the_one_that_waits_is_named_with_its_time(void **state)
{
	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	for (unsigned i = 0; i < 3; i++)
		membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, now);
	tsi_membership_tail(&membership_m, 2, 128, now);
	membership_fill();
	/* Reader 0 has work, 2 waits; then it is 0 that waits. */
	tsi_membership_tail(&membership_m, 0, 100, now);
	tsi_membership_want(&membership_m, 2, 138);
	assert_int_equal(look_for(500), -1);
	tsi_membership_want(&membership_m, 0, 138);
	tsi_membership_want(&membership_m, 2, 0);
	assert_int_equal(look_for(600), 1);
	assert_int_equal(slow.waiter, 0);
	assert_int_equal(slow.held_ms, 1000);
}

static void who_waits_is_told_what_for(void **state)
{
	unsigned other = 99;

	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 3;
	for (unsigned i = 0; i < 2; i++)
		membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_membership_want(&membership_m, 0, 10);
	assert_int_equal(tsi_membership_lacks(&membership_m), 1);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_START);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_SAMPLES);
	membership_fill();
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_NOTHING);
	/* Two keep the ring full: the one behind is slow. */
	tsi_membership_tail(&membership_m, 0, 128, now);
	tsi_membership_tail(&membership_m, 1, 64, now);
	membership_fill();
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_MEMBER);
	assert_int_equal(other, 2);
	/* That one has nothing left, and waits as well: for workers. */
	tsi_membership_tail(&membership_m, 1, 128, now);
	tsi_membership_tail(&membership_m, 2, 128, now);
	tsi_membership_want(&membership_m, 2, 138);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_SAMPLES);
}

static void who_waits_for_those_that_return_is_told_so(void **state)
{
	unsigned other = 99;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_hold(&membership_m, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, 100);
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_HOLD);
}

/* A reader of the view waits for the base ring's reader, or for the stage. */
static void who_waits_for_its_view_is_told_so(void **state)
{
	unsigned other = 99;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	membership_join_view(1, 0);
	membership_fill();
	tsi_membership_want(&membership_m, 0, 10);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_VIEW);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill_all();
	tsi_membership_tail(&membership_m, 0, 128, 100);
	membership_fill_all();
	tsi_membership_want(&membership_m, 0, 138);
	assert_int_equal(tsi_membership_awaits(&membership_m, 0, &other),
			 TSI_AWAITS_MEMBER);
	assert_int_equal(other, 1);
}

/* A reader goes on to a sample, as fast as it is let. */
static void go(const struct tsi_joined *c, uint64_t tail)
{
	uint64_t head;

	do {
		membership_fill_all();
		head = membership_m.view[membership_m.member[c->id].view].head;
		tsi_membership_tail(&membership_m, c->id,
				    head < tail ? head : tail, now);
		membership_fill_all();
	} while (
		head < tail &&
		head < membership_m.view[membership_m.member[c->id].view].head);
}

/* The base ring is full since a view is, whose reader sleeps. */
static void slow_is_found_through_views(void **state)
{
	struct tsi_joined base, view, chain;

	(void)state;
	now = 100;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	base = membership_join(TSOCK_JOIN_EPOCH, 0);
	view = membership_join_view(1, 0);
	chain = membership_join_view(3, 0);
	go(&chain, 1);
	for (unsigned i = 0; i < 3; i++) {
		go(&base, 900);
		go(&view, 900);
	}
	/* View 2 is full of what view 3's reader hasn't read. */
	assert_int_equal(membership_m.view[0].head, 1 + 3 * 128);
	tsi_membership_want(&membership_m, base.id, 1 + 3 * 128 + 16);
	assert_int_equal(look_for(1200), chain.id);
	assert_int_equal(slow.waiter, base.id);
	/* Not while view 3 has work to do. */
	tsi_membership_tail(&membership_m, chain.id, 100, now);
	assert_int_equal(look_for(9000), -1);
	for (unsigned i = 0; i < 9; i++) {
		go(&base, 900);
		go(&chain, 900);
	}
	tsi_membership_want(&membership_m, base.id,
			    membership_m.view[0].head + 16);
	assert_int_equal(look_for(1200), view.id);
}

/* The base ring is full for a view that is made of another one. */
static void slow_is_found_through_a_view_that_needs_the_base(void **state)
{
	struct tsi_joined base, chain;

	(void)state;
	now = 100;
	membership_make_chain(1000, 64, 128, true);
	base = membership_join(TSOCK_JOIN_EPOCH, 0);
	chain = membership_join_view(2, 0);
	go(&chain, 1);
	for (unsigned i = 0; i < 3; i++)
		go(&base, 900);
	/* View 1, of which that view is made, could go on. */
	assert_int_equal(membership_m.view[2].head, 1 + 128);
	assert_int_equal(membership_m.view[0].head, 1 + 2 * 128);
	tsi_membership_want(&membership_m, base.id, 1 + 2 * 128 + 16);
	assert_int_equal(look_for(1200), chain.id);
	assert_int_equal(slow.waiter, base.id);
}

/* The view is full as well, and behind the other, but there is room in the base
 * ring, which is larger. */
static void a_view_beside_the_full_one_is_not_to_blame(void **state)
{
	struct tsi_joined beside, sleeps, waits;
	unsigned first = 0;

	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 64, true);
	tsi_membership_source(&membership_m, 2, 0, 64, false);
	tsi_membership_source(&membership_m, 3, 2, 64, false);
	beside = membership_hold_view(1, 0);
	sleeps = membership_hold_view(2, 0);
	waits = membership_hold_view(3, 0);
	tsi_membership_tail(&membership_m, beside.id, 1, now);
	tsi_membership_tail(&membership_m, sleeps.id, 66, now);
	tsi_membership_tail(&membership_m, waits.id, 130, now);
	membership_fill_all();
	assert_int_equal(membership_m.view[1].head, 1 + 64);
	assert_int_equal(membership_m.view[2].head, 66 + 64);
	assert_int_equal(membership_m.view[0].head, 1 + 64 + 128);
	tsi_membership_want(&membership_m, waits.id, 131);
	assert_int_equal(look_for(1200), sleeps.id);
	while (tsi_membership_slow(&membership_m, &first, 0, &slow))
		assert_int_equal(first++, sleeps.id);
	assert_int_not_equal(beside.id, sleeps.id);
}

/* View 2 is full, and further behind than the base ring's reader that sleeps,
 * but view 1, of which alone it is made, has room. */
static void a_view_made_of_one_with_room_is_not_to_blame(void **state)
{
	struct tsi_joined chain, sleeps, waits;
	unsigned first = 0;

	(void)state;
	now = 100;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	tsi_membership_source(&membership_m, 2, 1, 16, false);
	chain = membership_hold_view(2, 0);
	sleeps = membership_join(TSOCK_JOIN_EPOCH, 0);
	waits = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_membership_tail(&membership_m, chain.id, 1, now);
	membership_fill_all();
	tsi_membership_tail(&membership_m, sleeps.id, 30, now);
	tsi_membership_tail(&membership_m, waits.id, 128, now);
	membership_fill_all();
	tsi_membership_tail(&membership_m, waits.id, 30 + 128, now);
	assert_int_equal(membership_m.view[2].head, 1 + 16);
	assert_int_equal(membership_m.view[1].head, 1 + 16 + 128);
	assert_int_equal(membership_m.view[0].head, 30 + 128);
	tsi_membership_want(&membership_m, waits.id, 30 + 128 + 1);
	assert_int_equal(look_for(1200), sleeps.id);
	while (tsi_membership_slow(&membership_m, &first, 0, &slow))
		assert_int_equal(first++, sleeps.id);
	assert_int_not_equal(chain.id, sleeps.id);
}

/* The reader that waits is in a view, the one that sleeps reads the base. */
static void slow_is_found_from_a_view_on(void **state)
{
	struct tsi_joined base, chain;

	(void)state;
	now = 100;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	base = membership_join(TSOCK_JOIN_EPOCH, 0);
	chain = membership_join_view(3, 0);
	membership_fill_all();
	tsi_membership_tail(&membership_m, chain.id, 128, now);
	tsi_membership_tail(&membership_m, base.id, 20, now);
	membership_fill_all();
	tsi_membership_tail(&membership_m, chain.id, 148, now);
	tsi_membership_want(&membership_m, chain.id, 164);
	assert_int_equal(look_for(1100), base.id);
	assert_int_equal(slow.waiter, chain.id);
}

/* The next epoch's start is kept for one that hasn't come to it. */
static void slow_is_who_keeps_an_epochs_start(void **state)
{
	struct tsi_joined base, view;

	(void)state;
	now = 100;
	membership_make_views(200, 64, 128, TSI_NEVER);
	base = membership_join(TSOCK_JOIN_EPOCH, 0);
	view = membership_join_view(1, 0);
	membership_fill_all();
	tsi_membership_tail(&membership_m, base.id, 128, now);
	tsi_membership_tail(&membership_m, view.id, 128, now);
	membership_fill_all();
	tsi_membership_tail(&membership_m, base.id, 256, now);
	membership_fill_all();
	tsi_membership_tail(&membership_m, base.id, 328, now);
	membership_fill_all();
	assert_int_equal(membership_m.view[0].head, 328);
	tsi_membership_want(&membership_m, base.id, 330);
	assert_int_equal(look_for(1100), view.id);
}

/* ---- being detached ---- */

static void the_others_go_on_in_the_other_half(void **state)
{
	uint64_t since;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	for (unsigned i = 0; i < 3; i++)
		membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	for (unsigned i = 0; i < 3; i++)
		tsi_membership_entered(&membership_m, i, 1);
	tsi_membership_tail(&membership_m, 0, 128, 0);
	tsi_membership_tail(&membership_m, 2, 100, 0);
	assert_int_equal(membership_fill(), 128);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 1),
			 TSI_DETACH_TURN);
	tsi_membership_detach(&membership_m, 1);
	assert_int_equal(tsi_membership_generation(&membership_m, 0, &since),
			 2);
	assert_int_equal(since, 128);
	assert_int_equal(membership_fill(), 228);
	/* One that has entered the new one may have samples in both. */
	tsi_membership_entered(&membership_m, 2, 2);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 2),
			 TSI_DETACH_NEVER);
	tsi_membership_tail(&membership_m, 2, 128, 0);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 2),
			 TSI_DETACH_NEVER);
	/* One that hasn't costs nothing. */
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_FREE);
	tsi_membership_detach(&membership_m, 0);
	assert_int_equal(tsi_membership_generation(&membership_m, 0, &since),
			 2);
	/* Their numbers, and their half, are theirs till they let go. */
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 0).id, 3);
	tsi_membership_let_go(&membership_m, 1);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 2),
			 TSI_DETACH_NEVER);
	tsi_membership_let_go(&membership_m, 0);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 2),
			 TSI_DETACH_TURN);
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 0).id, 0);
}

/* By their numbers they might be there, but their half is written into. */
static void what_a_generation_left_behind_is_not_held(void **state)
{
	struct tsi_join j = {
		.exact = true, .moves = true, .after = 64, .end = 128
	};
	struct tsi_joined c;
	uint64_t first, since;

	(void)state;
	membership_make(64, 8, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	for (unsigned i = 0; i < 2; i++)
		tsi_membership_entered(&membership_m, i, 1);
	tsi_membership_tail(&membership_m, 0, 128, 0);
	tsi_membership_detach(&membership_m, 1);
	tsi_membership_let_go(&membership_m, 1);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 40, &first),
			 40);
	tsi_membership_published(&membership_m, 0, first + 40);
	membership_join(TSOCK_JOIN_NOW, 0);
	tsi_membership_entered(&membership_m, 0, 2);
	tsi_membership_detach(&membership_m, 0);
	assert_int_equal(tsi_membership_generation(&membership_m, 0, &since),
			 3);
	assert_int_equal(since, 168);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c),
			 TSOCK_EREFUSED);
	j.after = 128;
	j.end = 192;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
}

static void who_was_detached_goes_on_at_the_live_edge(void **state)
{
	struct tsi_join j = {
		.detached = true, .moves = true, .after = 10, .end = 100
	};
	struct tsi_joined c;

	(void)state;
	membership_make(100, 16, 128, 1000);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	for (unsigned i = 0; i < 2; i++)
		tsi_membership_entered(&membership_m, i, 1);
	tsi_membership_tail(&membership_m, 1, 128, 0);
	membership_fill();
	tsi_membership_detach(&membership_m, 0);
	tsi_membership_tail(&membership_m, 1, 128, 0);
	assert_int_equal(membership_fill(), 256);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 256);
	assert_int_equal(c.epoch_end, 300);
	tsi_membership_leave(&membership_m, c.id);
	/* Where it was, if that is further on. */
	j.after = 270;
	j.end = 350;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 270);
	assert_int_equal(c.epoch_end, 350);
	j.after = 1000;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c),
			 TSOCK_EENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_is_who_holds_up_one_that_waits),
		cmocka_unit_test(who_pauses_while_nobody_waits_is_not_slow),
		cmocka_unit_test(
			who_says_that_it_waits_for_more_than_it_allows_is_slow),
		cmocka_unit_test(a_wait_in_slices_is_a_wait),
		cmocka_unit_test(the_one_that_waits_is_named_with_its_time),
		cmocka_unit_test(who_waits_is_told_what_for),
		cmocka_unit_test(who_waits_for_those_that_return_is_told_so),
		cmocka_unit_test(who_waits_for_its_view_is_told_so),
		cmocka_unit_test(slow_is_found_through_views),
		cmocka_unit_test(
			slow_is_found_through_a_view_that_needs_the_base),
		cmocka_unit_test(a_view_beside_the_full_one_is_not_to_blame),
		cmocka_unit_test(a_view_made_of_one_with_room_is_not_to_blame),
		cmocka_unit_test(slow_is_found_from_a_view_on),
		cmocka_unit_test(slow_is_who_keeps_an_epochs_start),
		cmocka_unit_test(the_others_go_on_in_the_other_half),
		cmocka_unit_test(what_a_generation_left_behind_is_not_held),
		cmocka_unit_test(who_was_detached_goes_on_at_the_live_edge),
	};

	return cmocka_run_group_tests_name("membership_slow", tests, NULL,
					   NULL);
}
