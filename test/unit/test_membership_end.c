/* SPDX-License-Identifier: MIT */
/*
 * test_membership_end.c - when a stream is over, and for whom its last epoch
 * is kept.
 */
#include "test/lib/membership_fixture.h"

static void nobody_joins_behind_the_end(void **state)
{
	struct tsi_join j = { .after = 200 };
	struct tsi_joined c;

	(void)state;
	membership_make(100, 50, 256, 200);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c),
			 TSOCK_EENDED);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 100, 0);
	assert_int_equal(membership_fill(), 200);
}

static void who_stops_in_the_last_epoch_ends_the_stream(void **state)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, 2000);
	assert_false(tsi_membership_ended(&membership_m));
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	tsi_membership_leave(&membership_m, a.id);
	/* There is another epoch. */
	assert_false(tsi_membership_ended(&membership_m));
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 1000);
	tsi_membership_apply_jump(&membership_m);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 1100, 0);
	assert_false(tsi_membership_ended(&membership_m));
	tsi_membership_leave(&membership_m, a.id);
	assert_true(tsi_membership_ended(&membership_m));
	for (j.join = 0; j.join < 3; j.join++)
		assert_int_equal(
			tsi_membership_forecast(&membership_m, &j, &a.start),
			TSOCK_EENDED);
}

static void the_last_epoch_is_kept_for_who_left_before_it(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(100, 50, 256, 300);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 200, 0);
	tsi_membership_tail(&membership_m, b.id, 200, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 250, 0);
	tsi_membership_leave(&membership_m, a.id);
	tsi_membership_leave(&membership_m, b.id);
	assert_false(tsi_membership_ended(&membership_m));
	b = membership_join(TSOCK_JOIN_EPOCH, 200);
	assert_int_equal(b.start, 200);
	membership_fill();
	tsi_membership_tail(&membership_m, b.id, 300, 0);
	/* The reader needs nothing more, and may stay as long as it likes. */
	assert_true(tsi_membership_ended(&membership_m));
	tsi_membership_leave(&membership_m, b.id);
	assert_true(tsi_membership_ended(&membership_m));
}

static void a_tail_at_the_end_does_not_end_the_stream(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	membership_make(1000, 64, 128, 5000);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 5000, 0);
	/* The reader needs nothing, so nothing is made for it. */
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 1, &first), 0);
	assert_false(tsi_membership_ended(&membership_m));
	tsi_membership_leave(&membership_m, a.id);
	assert_false(tsi_membership_ended(&membership_m));
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 1000);
	tsi_membership_apply_jump(&membership_m);
	assert_int_equal(membership_fill(), 1128);
}

/*
 * The first epoch's start was in the view alone when the last reader left,
 * which had read none of it.  This reader's next epoch is the second one.
 */
static void who_left_at_a_start_that_is_gone_gets_the_next_one(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(17, 1, 33, 34);
	tsi_membership_source(&membership_m, 1, 0, 37, false);
	a = membership_hold_view(1, 0);
	membership_fill();
	membership_stage(1, 6);
	tsi_membership_tail(&membership_m, a.id, 1, 0);
	assert_int_equal(membership_fill(), 34);
	b = membership_join_view(1, 0);
	assert_int_equal(b.start, 0);
	membership_stage(1, 28);
	tsi_membership_tail(&membership_m, a.id, 34, 0);
	tsi_membership_leave(&membership_m, a.id);
	tsi_membership_leave(&membership_m, b.id);
	assert_false(tsi_membership_ended(&membership_m));
	assert_int_equal(membership_join_view(1, 17).start, 17);
}

/* ---- an end that is decided while the stream is served ---- */

static void the_end_is_behind_all_that_was_handed_out(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	assert_int_equal(tsi_membership_epochs(&membership_m), 0);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 256);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 300);
	assert_int_equal(tsi_membership_epochs(&membership_m), 3);
	/* Never later than was said. */
	assert_int_equal(tsi_membership_end_after(&membership_m, 7), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 300);
	tsi_membership_tail(&membership_m, a.id, 200, 0);
	assert_int_equal(membership_fill(), 300);
	assert_true(tsi_membership_all_claimed(&membership_m));
	assert_false(tsi_membership_ended(&membership_m));
	tsi_membership_tail(&membership_m, a.id, 300, 0);
	assert_true(tsi_membership_ended(&membership_m));
}

static void a_stream_that_nobody_read_has_an_epoch_still(void **state)
{
	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 100);
	assert_false(tsi_membership_ended(&membership_m));
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 0);
}

static void what_nobody_has_seen_is_not_read(void **state)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };
	struct tsi_joined a;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 256);
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 100);
	assert_true(tsi_membership_complete(&membership_m, 0));
	assert_true(tsi_membership_ended(&membership_m));
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &a),
			 TSOCK_EENDED);
}

static void an_end_may_be_chosen_that_is_later_than_it_has_to_be(void **state)
{
	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_end_after(&membership_m, 6), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 700);
	assert_int_equal(tsi_membership_end_after(&membership_m, TSI_LAST),
			 TSOCK_EARG);
	assert_int_equal(tsi_membership_end(&membership_m), 700);
}

static void a_reader_gets_the_epoch_that_it_was_promised(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	membership_fill();
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(b.start, 1000);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 2000);
	/* The stream jumps to it, once the other one has left. */
	tsi_membership_leave(&membership_m, b.id);
	tsi_membership_leave(&membership_m, a.id);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(b.start, 1000);
	assert_true(tsi_membership_jumping(&membership_m));
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 2000);
	for (uint64_t at = 1100; at <= 2000; at += 100) {
		membership_fill();
		assert_false(tsi_membership_ended(&membership_m));
		tsi_membership_tail(&membership_m, b.id, at, 0);
	}
	assert_true(tsi_membership_ended(&membership_m));
}

/* From a segment's start to the same one of the next epoch. */
static void an_epoch_that_began_at_a_segment_is_whole(void **state)
{
	static const uint64_t bounds[] = { 0, 40, 100 };
	struct tsi_join j = { .join = TSOCK_JOIN_SEGMENT, .leaves = true };
	struct tsi_joined a, b;

	(void)state;
	membership_make(100, 10, 64, TSI_NEVER);
	membership_m.c.segments = 2;
	membership_m.c.bounds = bounds;
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 38, 0);
	membership_fill();
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &b), 0);
	assert_int_equal(b.start, 40);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 200);
}

/* The reader skips there, and learns only then that the stream ends. */
static void a_tail_may_be_where_the_end_was_before(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 350, 0), 0);
	assert_true(tsi_membership_ended(&membership_m));
	/* One that is ahead keeps no stream from ending. */
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 350, 0), 0);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 300);
}

/* Another reader left in an epoch before, which the ring may still hold. */
static void an_end_where_the_last_reader_is_ends_the_stream(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(24, 12, 72, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 72);
	tsi_membership_tail(&membership_m, a.id, 5, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(tsi_membership_tail(&membership_m, b.id, 72, 0), 0);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 72);
	assert_true(tsi_membership_ended(&membership_m));
	tsi_membership_leave(&membership_m, b.id);
	assert_true(tsi_membership_ended(&membership_m));
}

/* A rank without a sample comes last, and is gone before its view is filled. */
static void an_empty_view_does_not_keep_a_stream_from_ending(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(3, 64, 64, 9);
	tsi_membership_source(&membership_m, 1, 0, 64, false);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	b = membership_hold_view(1, 0);
	assert_int_equal(membership_fill(), 9);
	tsi_membership_tail(&membership_m, a.id, 9, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(membership_m.view[1].head, 0);
	tsi_membership_tail(&membership_m, b.id, 9, 0);
	assert_true(tsi_membership_ended(&membership_m));
	tsi_membership_leave(&membership_m, b.id);
	assert_true(tsi_membership_ended(&membership_m));
}

/* The reader drops them, and is gone before they are made. */
static void a_stream_ends_without_an_epochs_last_samples(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	membership_make(20, 64, 128, 40);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 40, &first),
			 40);
	tsi_membership_published(&membership_m, 0, 37);
	tsi_membership_tail(&membership_m, a.id, 40, 0);
	tsi_membership_leave(&membership_m, a.id);
	tsi_membership_published(&membership_m, 0, 40);
	assert_true(tsi_membership_ended(&membership_m));
}

static void no_end_is_decided_while_readers_are_awaited(void **state)
{
	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	tsi_membership_hold(&membership_m, 130);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0),
			 TSOCK_EAGAIN);
	assert_int_equal(tsi_membership_end(&membership_m), TSI_NEVER);
	tsi_membership_give_up_hold(&membership_m);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 200);
}

static void a_stream_may_begin_with_a_later_epoch(void **state)
{
	struct tsi_membership_config c;
	struct tsi_joined a;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	c = membership_m.c;
	c.first = 500;
	tsi_membership_init(&membership_m, &c);
	assert_int_equal(tsi_membership_end_after(&membership_m, 0), 0);
	assert_int_equal(tsi_membership_end(&membership_m), 600);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 500);
	assert_int_equal(a.epoch_end, 600);
	assert_false(tsi_membership_jumping(&membership_m));
	assert_int_equal(membership_fill(), 600);
	tsi_membership_tail(&membership_m, a.id, 600, 0);
	assert_true(tsi_membership_ended(&membership_m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_joins_behind_the_end),
		cmocka_unit_test(who_stops_in_the_last_epoch_ends_the_stream),
		cmocka_unit_test(the_last_epoch_is_kept_for_who_left_before_it),
		cmocka_unit_test(a_tail_at_the_end_does_not_end_the_stream),
		cmocka_unit_test(
			who_left_at_a_start_that_is_gone_gets_the_next_one),
		cmocka_unit_test(the_end_is_behind_all_that_was_handed_out),
		cmocka_unit_test(a_stream_that_nobody_read_has_an_epoch_still),
		cmocka_unit_test(what_nobody_has_seen_is_not_read),
		cmocka_unit_test(
			an_end_may_be_chosen_that_is_later_than_it_has_to_be),
		cmocka_unit_test(a_reader_gets_the_epoch_that_it_was_promised),
		cmocka_unit_test(an_epoch_that_began_at_a_segment_is_whole),
		cmocka_unit_test(a_tail_may_be_where_the_end_was_before),
		cmocka_unit_test(
			an_end_where_the_last_reader_is_ends_the_stream),
		cmocka_unit_test(
			an_empty_view_does_not_keep_a_stream_from_ending),
		cmocka_unit_test(a_stream_ends_without_an_epochs_last_samples),
		cmocka_unit_test(no_end_is_decided_while_readers_are_awaited),
		cmocka_unit_test(a_stream_may_begin_with_a_later_epoch),
	};

	return cmocka_run_group_tests_name("membership_end", tests, NULL, NULL);
}
