/* SPDX-License-Identifier: MIT */
/*
 * test_membership_edges.c - members at the limits: the most that there can be,
 * numbers that can't be, and what is asked when nothing is to be done.
 */
#include "test/lib/membership_fixture.h"

static void without_a_hold_there_is_none_to_give_up(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 1000);
	assert_true(membership_m.jumping);
	tsi_membership_give_up_hold(&membership_m);
	assert_true(tsi_membership_held_from(&membership_m) == TSI_NEVER);
	assert_int_equal(membership_m.target, 1000);
}

/* Only a view that has ended gets a new ring. */
static void a_view_that_has_readers_keeps_its_generation(void **state)
{
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	c = membership_join_view(1, 0);
	membership_m.view[1].generation = 3;
	membership_m.view[1].since = 5;
	tsi_membership_source(&membership_m, 1, 0, 256, true);
	assert_int_equal(membership_m.view[1].capacity, 256);
	assert_int_equal(membership_m.view[1].generation, 3);
	assert_int_equal(membership_m.view[1].since, 5);
	tsi_membership_leave(&membership_m, c.id);
	tsi_membership_source(&membership_m, 1, 0, 256, true);
	assert_int_equal(membership_m.view[1].generation, 1);
	assert_int_equal(membership_m.view[1].since, 0);
}

static void one_more_than_there_can_be_is_refused(void **state)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	for (unsigned i = 0; i < TSI_MAX_MEMBERS; i++)
		assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).id, i);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c),
			 TSOCK_EREFUSED);
	assert_int_equal(membership_m.count, TSI_MAX_MEMBERS);
	tsi_membership_leave(&membership_m, 7);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).id, 7);
}

/* The epoch that it was in may be unknown. */
static void who_was_detached_and_names_no_end_has_a_whole_epoch(void **state)
{
	struct tsi_join j = { .detached = true, .moves = true, .after = 20 };
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 128);
	assert_int_equal(c.epoch_end, 1128);
	j.end = 1000;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.epoch_end, 1000);
}

static void who_has_left_puts_off_no_end(void **state)
{
	struct tsi_joined late;

	(void)state;
	membership_make(100, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	late = membership_join(TSOCK_JOIN_EPOCH, 200);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(late.start, 200);
	tsi_membership_leave(&membership_m, late.id);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 100);
}

/* The stage began before the view ended, began anew, or fell back. */
static void what_a_stage_of_before_has_made_doesnt_count(void **state)
{
	struct tsi_joined c;
	uint64_t first;
	uint32_t opening;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	c = membership_join_view(1, 0);
	membership_fill();
	opening = tsi_membership_opening(&membership_m, 1);
	assert_int_equal(tsi_membership_claim(&membership_m, 1, 8, &first), 8);
	assert_false(tsi_membership_done(&membership_m, 1, opening, 4, 8));
	assert_false(tsi_membership_done(&membership_m, 1, opening + 1, 0, 8));
	assert_int_equal(tsi_membership_head(&membership_m, 1), 0);
	assert_true(tsi_membership_done(&membership_m, 1, opening, 0, 8));
	assert_int_equal(tsi_membership_head(&membership_m, 1), 8);
	tsi_membership_leave(&membership_m, c.id);
	assert_false(tsi_membership_done(&membership_m, 1, opening, 8, 16));
	assert_int_equal(tsi_membership_head(&membership_m, 1), 8);
}

static void no_stream_is_held_where_sums_overflow(void **state)
{
	(void)state;
	membership_make(UINT64_C(1) << 40, 64, 128, TSI_NEVER);
	assert_true(tsi_membership_can_hold(&membership_m, TSI_LAST / 2 - 1));
	assert_false(tsi_membership_can_hold(&membership_m, TSI_LAST / 2));
	membership_make(1, 64, 128, TSI_NEVER);
	assert_false(tsi_membership_can_hold(&membership_m, UINT64_C(1) << 32));
}

/* Whom the jump was for has gone. */
static void a_sole_reader_turns_a_jump_round(void **state)
{
	struct tsi_join j = { .exact = true, .moves = true, .end = 1000 };
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	c = membership_join(TSOCK_JOIN_EPOCH, 1000);
	tsi_membership_leave(&membership_m, c.id);
	assert_true(membership_m.jumping);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 0);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(tsi_membership_head(&membership_m, 0), 0);
}

/* ---- detaching ---- */

/* Two readers, of which the second is a ring behind. */
static void make_slow(void)
{
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 128, 0);
}

static void no_reader_is_in_a_generation_to_come(void **state)
{
	(void)state;
	make_slow();
	tsi_membership_entered(&membership_m, 1, 9);
	assert_int_equal(membership_m.member[1].generation, 1);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 1),
			 TSI_DETACH_TURN);
}

/* The reader has not looked at a sample. */
static void who_has_entered_no_generation_keeps_no_half(void **state)
{
	(void)state;
	make_slow();
	tsi_membership_detach(&membership_m, 1);
	assert_true(tsi_membership_is_detached(&membership_m, 1));
	assert_int_equal(membership_m.member[1].half, -1);
	assert_int_equal(membership_m.view[0].generation, 1);
	assert_int_equal(membership_m.view[0].abandoned[0] +
				 membership_m.view[0].abandoned[1],
			 0);
	tsi_membership_let_go(&membership_m, 1);
	assert_false(tsi_membership_is_detached(&membership_m, 1));
}

/* The reader has read all of its generation, and another one came
 * and went since: that one's half is not the reader's. */
static void who_is_two_generations_behind_keeps_no_half(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	for (unsigned i = 0; i < 3; i++)
		membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	for (unsigned i = 0; i < 3; i++)
		tsi_membership_entered(&membership_m, i, 1);
	tsi_membership_tail(&membership_m, 0, 128, 0);
	tsi_membership_tail(&membership_m, 1, 128, 0);
	tsi_membership_detach(&membership_m, 2);
	tsi_membership_let_go(&membership_m, 2);
	tsi_membership_entered(&membership_m, 0, 2);
	assert_int_equal(membership_fill(), 256);
	tsi_membership_tail(&membership_m, 0, 200, 0);
	tsi_membership_detach(&membership_m, 0);
	assert_int_equal(membership_m.view[0].generation, 3);
	assert_int_equal(membership_m.member[0].half, 1);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 1),
			 TSI_DETACH_FREE);
	tsi_membership_detach(&membership_m, 1);
	assert_int_equal(membership_m.member[1].half, -1);
	assert_int_equal(membership_m.view[0].abandoned[0], 0);
	assert_int_equal(membership_m.view[0].abandoned[1], 1);
}

static void a_detached_reader_has_its_view_still(void **state)
{
	(void)state;
	make_slow();
	assert_true(tsi_membership_has(&membership_m, 1, 0));
	assert_false(tsi_membership_has(&membership_m, 1, 1));
	tsi_membership_entered(&membership_m, 1, 1);
	tsi_membership_detach(&membership_m, 1);
	assert_true(tsi_membership_has(&membership_m, 1, 0));
	assert_true(tsi_membership_has_detached(&membership_m, 0));
	assert_false(tsi_membership_has_detached(&membership_m, 1));
	tsi_membership_let_go(&membership_m, 1);
	assert_false(tsi_membership_has(&membership_m, 1, 0));
}

/* A reader that still needs the other half keeps the ring from going on
 * there. */
static void a_half_that_is_needed_is_not_turned_to(void **state)
{
	struct tsi_join j = { .view = 1, .join = TSOCK_JOIN_EPOCH };
	struct tsi_joined c;
	uint64_t since;

	(void)state;
	make_slow();
	tsi_membership_entered(&membership_m, 0, 1);
	tsi_membership_entered(&membership_m, 1, 1);
	tsi_membership_detach(&membership_m, 1);
	assert_int_equal(tsi_membership_generation(&membership_m, 0, &since),
			 2);
	assert_int_equal(since, 128);
	tsi_membership_let_go(&membership_m, 1);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 200, 0);
	tsi_membership_entered(&membership_m, 0, 2);
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_TURN);
	/* Samples of before are kept for who has to return, ... */
	membership_m.hold = 100;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_NEVER);
	membership_m.hold = TSI_NEVER;
	/* ... or have still to be published, ... */
	membership_m.view[0].head = 127;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_NEVER);
	membership_m.view[0].head = 256;
	/* ... or have still to be read, ... */
	membership_m.member[0].tail = 127;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_NEVER);
	membership_m.member[0].tail = 200;
	/* ... or the ring is about to go elsewhere, ... */
	membership_m.jumping = true;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_NEVER);
	membership_m.jumping = false;
	/* ... or a reader of a view has its next start there. */
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	membership_m.view[1].head = membership_m.view[1].claimed =
		membership_m.view[0].head;
	membership_m.member[c.id].start = membership_m.member[c.id].tail = 0;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_NEVER);
	membership_m.member[c.id].tail = 1;
	assert_int_equal(tsi_membership_may_detach(&membership_m, 0),
			 TSI_DETACH_TURN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_hold_there_is_none_to_give_up),
		cmocka_unit_test(a_view_that_has_readers_keeps_its_generation),
		cmocka_unit_test(one_more_than_there_can_be_is_refused),
		cmocka_unit_test(
			who_was_detached_and_names_no_end_has_a_whole_epoch),
		cmocka_unit_test(who_has_left_puts_off_no_end),
		cmocka_unit_test(what_a_stage_of_before_has_made_doesnt_count),
		cmocka_unit_test(no_stream_is_held_where_sums_overflow),
		cmocka_unit_test(a_sole_reader_turns_a_jump_round),
		cmocka_unit_test(no_reader_is_in_a_generation_to_come),
		cmocka_unit_test(who_has_entered_no_generation_keeps_no_half),
		cmocka_unit_test(who_is_two_generations_behind_keeps_no_half),
		cmocka_unit_test(a_detached_reader_has_its_view_still),
		cmocka_unit_test(a_half_that_is_needed_is_not_turned_to),
	};

	return cmocka_run_group_tests_name("membership_edges", tests, NULL,
					   NULL);
}
