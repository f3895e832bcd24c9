/* SPDX-License-Identifier: MIT */
/*
 * test_membership_restart.c - readers that go on where they had come to: with a
 * producer that was started again, and from a position that they saved.
 */
#include "test/lib/membership_fixture.h"

static int resume(unsigned view, uint64_t at, uint64_t end,
		  struct tsi_joined *out)
{
	struct tsi_join j = { .view = view,
			      .after = at,
			      .exact = true,
			      .moves = true,
			      .returns = true,
			      .end = end };

	return tsi_membership_join(&membership_m, &j, 0, out);
}

static uint64_t resumed(unsigned view, uint64_t at, uint64_t end)
{
	struct tsi_joined c = { 0 };

	assert_int_equal(resume(view, at, end, &c), 0);
	assert_int_equal(c.epoch_end, end);
	return c.start;
}

static void the_stream_goes_on_from_the_hold(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(membership_fill(), 5300);
	assert_int_equal(resumed(0, 5310, 6000), 5310);
	assert_int_equal(membership_fill(), 5428);
}

static void samples_are_kept_for_those_who_come_later(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(resumed(0, 5340, 6000), 5340);
	membership_fill();
	tsi_membership_tail(&membership_m, 0, 5420, 0);
	assert_int_equal(membership_fill(), 5428);
	assert_int_equal(resumed(0, 5300, 6000), 5300);
	tsi_membership_tail(&membership_m, 1, 5320, 0);
	assert_int_equal(membership_fill(), 5428);
	tsi_membership_give_up_hold(&membership_m);
	assert_int_equal(membership_fill(), 5448);
}

/* One rank has had the epoch and left before another one has begun it. */
static void samples_are_kept_for_ranks_that_have_still_to_begin(void **state)
{
	struct tsi_joined r;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	r = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 128);
	tsi_membership_keep(&membership_m, 0);
	assert_int_equal(tsi_membership_held_from(&membership_m), 0);
	tsi_membership_leave(&membership_m, r.id);
	/* Others read on, as far as the ring goes. */
	r = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_membership_tail(&membership_m, r.id, 100, 0);
	assert_int_equal(membership_fill(), 128);
	assert_int_equal(resumed(0, 0, 1000), 0);
	tsi_membership_keep(&membership_m, TSI_NEVER);
	assert_int_equal(tsi_membership_held_from(&membership_m), TSI_NEVER);
	/* What a producer holds for returners is held besides. */
	tsi_membership_hold(&membership_m, 2000);
	tsi_membership_keep(&membership_m, 3000);
	assert_int_equal(tsi_membership_held_from(&membership_m), 2000);
	tsi_membership_give_up_hold(&membership_m);
	assert_int_equal(tsi_membership_held_from(&membership_m), 3000);
}

/* The readers that have yet to return are further on by then. */
static void no_more_is_kept_than_those_who_come_later_need(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_follow_hold(&membership_m, 5000); /* there is none */
	assert_int_equal(tsi_membership_held_from(&membership_m), TSI_NEVER);
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(resumed(0, 5428, 6000), 5428);
	assert_int_equal(membership_fill(), 5428);
	tsi_membership_follow_hold(&membership_m, 5310);
	assert_int_equal(membership_fill(), 5438);
	tsi_membership_follow_hold(&membership_m, 5305);
	assert_int_equal(tsi_membership_held_from(&membership_m), 5310);
	/* What isn't made need not be kept. */
	tsi_membership_follow_hold(&membership_m, 9000);
	assert_int_equal(tsi_membership_held_from(&membership_m), 5438);
	assert_int_equal(resumed(0, 5438, 6000), 5438);
}

/* The number of readers was there when the stream began. */
static void a_stream_that_goes_on_waits_for_no_number_of_readers(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 2;
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(resumed(0, 5310, 6000), 5310);
	assert_int_equal(membership_fill(), 5428);
	tsi_membership_give_up_hold(&membership_m);
	tsi_membership_tail(&membership_m, 0, 5320, 0);
	assert_int_equal(membership_fill(), 5448);
	/* Nor for one that doesn't know that it was a reader. */
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 2;
	tsi_membership_hold(&membership_m, 6000);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 6000);
	assert_int_equal(membership_fill(), 6128);
}

/* The reader was busy until it wasn't waited for any longer. */
static void a_stream_goes_on_with_who_was_given_up_too(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 2;
	tsi_membership_hold(&membership_m, 5300);
	tsi_membership_give_up_hold(&membership_m);
	assert_int_equal(resumed(0, 5310, 6000), 5310);
	membership_fill();
	assert_int_equal(membership_fill(), 5438);
}

static void one_to_which_nobody_returned_begins_as_a_new_one_does(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 2;
	tsi_membership_hold(&membership_m, 5300);
	tsi_membership_give_up_hold(&membership_m);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 6000);
	/* The stream jumps there, and makes nothing. */
	assert_int_equal(membership_fill(), 6000);
	assert_int_equal(membership_fill(), 6000);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 6000);
	assert_int_equal(membership_fill(), 6128);
}

static void a_view_begins_where_those_who_come_later_need_it(void **state)
{
	(void)state;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(resumed(3, 5340, 6000), 5340);
	membership_fill_all();
	assert_int_equal(resumed(3, 5300, 6000), 5300);
	assert_int_equal(resumed(1, 5310, 6000), 5310);
}

static void while_there_is_a_hold_nobody_moves_the_stream(void **state)
{
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, 7000);
	tsi_membership_hold(&membership_m, 5300);
	/* A newcomer waits for the next epoch. */
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 6000);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 6000);
	assert_false(tsi_membership_apply_jump(&membership_m));
	/* The reader that stays is waiting: no reason to skip what others
	 * need. */
	tsi_membership_leave(&membership_m, 1);
	assert_false(tsi_membership_apply_jump(&membership_m));
	tsi_membership_leave(&membership_m, 0);
	assert_int_equal(resume(0, 5200, 6000, &c), TSOCK_EREFUSED);
	assert_false(tsi_membership_ended(&membership_m));
	assert_int_equal(resumed(0, 5300, 6000), 5300);
}

static void when_the_hold_ends_waiting_readers_wait_no_longer(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_hold(&membership_m, 5300);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 6000);
	tsi_membership_give_up_hold(&membership_m);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_fill(), 6128);
}

static void a_sole_reader_takes_the_stream_back(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	for (uint64_t tail = 0; tail <= 900; tail += 50) {
		tsi_membership_tail(&membership_m, a.id, tail, 0);
		membership_fill();
	}
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(resumed(0, 300, 1000), 300);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_m.view[0].head, 300);
	assert_int_equal(membership_fill(), 428);
	/* And when it has left, the stream is there, and no further. */
	tsi_membership_leave(&membership_m, 0);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 1000);
}

static void it_goes_back_when_no_sample_is_being_made(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 128, 0);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 9, &first), 9);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(resume(0, 4, 1000, &a), TSOCK_EAGAIN);
	tsi_membership_published(&membership_m, 0, 137);
	assert_int_equal(resumed(0, 4, 1000), 4);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_m.view[0].claimed, 4);
}

static void it_goes_ahead_however_far(void **state)
{
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, 90000);
	assert_int_equal(resumed(0, 50123, 51000), 50123);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_fill(), 50251);
	tsi_membership_leave(&membership_m, 0);
	assert_int_equal(resume(0, 90000, 91000, &c), TSOCK_EENDED);
	assert_int_equal(resume(0, 89500, 90001, &c), TSOCK_EENDED);
	membership_make(1000, 64, 128, TSI_NEVER);
	assert_int_equal(resume(0, UINT64_C(1) << 61, 0, &c), TSOCK_EREFUSED);
}

static void beyond_two_to_the_32_epochs_nobody_takes_it(void **state)
{
	uint64_t most = 1000 * (UINT64_C(1) << 32);
	struct tsi_joined c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	assert_int_equal(resume(0, most, most + 1000, &c), TSOCK_EREFUSED);
	assert_int_equal(resumed(0, most - 1, most), most - 1);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_fill(), most - 1 + 128);
}

static void with_others_it_gets_what_is_held_and_else_a_reason(void **state)
{
	struct tsi_joined a, c;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	for (uint64_t tail = 0; tail <= 400; tail += 50) {
		tsi_membership_tail(&membership_m, a.id, tail, 0);
		membership_fill();
	}
	assert_int_equal(resumed(0, 430, 1000), 430);
	assert_int_equal(resume(0, 300, 1000, &c), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "2 other consumers"));
	/* What is still to come is waited for. */
	assert_int_equal(resumed(0, 2500, 3000), 2500);
}

/*
 * The view holds sample 90 until its slot is claimed for sample 218.  A reader
 * that goes on there begins its next epoch at sample 100, perhaps alone, when
 * the view has ended: so the base ring has to hold sample 100.
 */
static void
nobody_goes_on_where_the_base_has_passed_its_next_epoch(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make_chain(100, 1, 128, false);
	b = membership_join_view(1, 0);
	membership_fill();
	membership_stage(1, 128);
	tsi_membership_tail(&membership_m, b.id, 90, 0);
	assert_int_equal(membership_fill(), 228);
	membership_stage(1, 90);
	tsi_membership_tail(&membership_m, b.id, 110, 0);
	assert_int_equal(resume(1, 90, 100, &a), 0);
	assert_int_equal(membership_fill(), 228);
	tsi_membership_leave(&membership_m, a.id);
	membership_stage(0, 1);
	assert_true(membership_m.view[1].claimed <= 90 + 128);
	assert_int_equal(resume(1, 90, 100, &a), TSOCK_EREFUSED);
	/* The next epoch after this place is still to come. */
	assert_int_equal(resumed(1, 101, 200), 101);
}

static void who_went_on_in_a_view_finds_its_next_epoch_alone(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make_chain(100, 1, 128, false);
	b = membership_join_view(1, 0);
	membership_fill();
	membership_stage(1, 128);
	tsi_membership_tail(&membership_m, b.id, 90, 0);
	membership_fill();
	membership_stage(1, 90);
	tsi_membership_tail(&membership_m, b.id, 110, 0);
	assert_int_equal(resume(1, 90, 100, &a), 0);
	membership_fill();
	tsi_membership_leave(&membership_m, b.id);
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(membership_join_view(1, 100).start, 100);
}

/* Its only reader reads to sample 450, and leaves. */
static void read_to_450(void)
{
	struct tsi_joined a;

	membership_make(100, 50, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	for (uint64_t tail = 0; tail <= 450; tail += 50) {
		tsi_membership_tail(&membership_m, a.id, tail, 0);
		membership_fill();
	}
	tsi_membership_leave(&membership_m, a.id);
}

/* Where a stream has been is no place that it hasn't come near. */
static void who_was_ahead_of_a_stream_that_went_back_waits(void **state)
{
	(void)state;
	read_to_450();
	assert_int_equal(resumed(0, 4, 100), 4);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_fill(), 132);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 500).start, 500);
	read_to_450();
	tsi_membership_hold(&membership_m, 4);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 500).start, 500);
}

static void an_ended_stream_does_not_go_back(void **state)
{
	struct tsi_joined a, c;

	(void)state;
	membership_make(100, 64, 128, 200);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 120, 0);
	assert_int_equal(membership_fill(), 200);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(resume(0, 30, 100, &c), TSOCK_EENDED);
	assert_int_equal(resumed(0, 130, 200), 130);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stream_goes_on_from_the_hold),
		cmocka_unit_test(
			samples_are_kept_for_ranks_that_have_still_to_begin),
		cmocka_unit_test(
			no_more_is_kept_than_those_who_come_later_need),
		cmocka_unit_test(samples_are_kept_for_those_who_come_later),
		cmocka_unit_test(
			a_stream_that_goes_on_waits_for_no_number_of_readers),
		cmocka_unit_test(a_stream_goes_on_with_who_was_given_up_too),
		cmocka_unit_test(
			one_to_which_nobody_returned_begins_as_a_new_one_does),
		cmocka_unit_test(
			a_view_begins_where_those_who_come_later_need_it),
		cmocka_unit_test(while_there_is_a_hold_nobody_moves_the_stream),
		cmocka_unit_test(
			when_the_hold_ends_waiting_readers_wait_no_longer),
		cmocka_unit_test(a_sole_reader_takes_the_stream_back),
		cmocka_unit_test(it_goes_back_when_no_sample_is_being_made),
		cmocka_unit_test(it_goes_ahead_however_far),
		cmocka_unit_test(beyond_two_to_the_32_epochs_nobody_takes_it),
		cmocka_unit_test(
			with_others_it_gets_what_is_held_and_else_a_reason),
		cmocka_unit_test(
			nobody_goes_on_where_the_base_has_passed_its_next_epoch),
		cmocka_unit_test(
			who_went_on_in_a_view_finds_its_next_epoch_alone),
		cmocka_unit_test(
			who_was_ahead_of_a_stream_that_went_back_waits),
		cmocka_unit_test(an_ended_stream_does_not_go_back),
	};

	return cmocka_run_group_tests_name("membership_restart", tests, NULL,
					   NULL);
}
