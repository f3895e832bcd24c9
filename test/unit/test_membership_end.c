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
	make(100, 50, 256, 200);
	join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), TSOCK_EENDED);
	fill();
	tsi_membership_tail(&m, 0, 100, 0);
	assert_int_equal(fill(), 200);
}

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

/*
 * The first epoch's start was in the view alone when the last reader left,
 * which had read none of it.  This reader's next epoch is the second one.
 */
static void who_left_at_a_start_that_is_gone_gets_the_next_one(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	make(17, 1, 33, 34);
	tsi_membership_source(&m, 1, 0, 37, false);
	a = hold_view(1, 0);
	fill();
	stage(1, 6);
	tsi_membership_tail(&m, a.id, 1, 0);
	assert_int_equal(fill(), 34);
	b = join_view(1, 0);
	assert_int_equal(b.start, 0);
	stage(1, 28);
	tsi_membership_tail(&m, a.id, 34, 0);
	tsi_membership_leave(&m, a.id);
	tsi_membership_leave(&m, b.id);
	assert_false(tsi_membership_ended(&m));
	assert_int_equal(join_view(1, 17).start, 17);
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
	};

	return cmocka_run_group_tests_name("membership_end", tests, NULL, NULL);
}
