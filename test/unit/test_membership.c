/* SPDX-License-Identifier: MIT */
/*
 * test_membership.c - how far the writer may go, and which tails a
 * reader may have.
 *
 * Where readers start is in test_membership_starts.c, when a stream is over in
 * test_membership_end.c, the sources of views in test_membership_views.c, and
 * slow readers in test_membership_slow.c; random schedules try all rules
 * together in test_membership_random.c.
 */
#include "test/lib/membership_fixture.h"

static void nothing_is_made_for_nobody(void **state)
{
	uint64_t first;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 1, &first), 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 128);
}

static void writer_stops_at_the_lowest_tail(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	assert_int_equal(membership_fill(), 128);
	tsi_membership_tail(&membership_m, b.id, 30, 0);
	assert_int_equal(membership_fill(), 158);
	tsi_membership_leave(&membership_m, b.id);
	assert_int_equal(membership_fill(), 228);
}

static void pin_keeps_the_epochs_start_until_the_lead_is_w_in(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 63, 0);
	assert_int_equal(membership_fill(), 128);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 0);
	tsi_membership_leave(&membership_m, 1);
	tsi_membership_tail(&membership_m, a.id, 64, 0);
	assert_int_equal(membership_fill(), 192);
	/* Now it is gone: the next epoch. */
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 1000);
}

static void a_tail_beyond_the_head_lets_nobody_run_ahead_of_it(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 1000, 0);
	/* min(tail, head) counts: 128 + 128. */
	assert_int_equal(tsi_membership_limit(&membership_m, 0), 256);
}

static void nothing_is_made_before_min_members_are_there(void **state)
{
	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_m.c.min_members = 2;
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 0);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(membership_fill(), 128);
	tsi_membership_tail(&membership_m, 0, 64, 0);
	tsi_membership_leave(&membership_m, 1);
	assert_int_equal(membership_fill(), 192);
}

static void nonsense_is_refused(void **state)
{
	struct tsi_join j = { .after = UINT64_MAX - 5 };
	struct tsi_joined c;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c),
			 TSOCK_EREFUSED);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_tail(&membership_m, 0, 50, 0), 0);
	assert_int_equal(tsi_membership_tail(&membership_m, 0, 49, 0),
			 TSOCK_EPROTO);
	assert_int_equal(tsi_membership_tail(&membership_m, 0, UINT64_MAX, 0),
			 TSOCK_EPROTO);
}

static void a_tail_that_nobody_could_have_is_refused(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 64, 128, 1000);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 1000, 0), 0);
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 1001, 0),
			 TSOCK_EPROTO);

	membership_make(100, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, TSI_LAST, 0),
			 TSOCK_EPROTO);
	assert_int_equal(
		tsi_membership_tail(&membership_m, a.id, UINT64_C(1) << 40, 0),
		TSOCK_EPROTO);
	/* What isn't there can't have been read. */
	assert_int_equal(
		tsi_membership_tail(&membership_m, a.id, 100 * 1000, 0), 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 100);
}

static void no_tail_is_needed_before_the_rings_are_mapped(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	a = membership_join(TSOCK_JOIN_EPOCH, 100);
	assert_int_equal(a.start, 100);
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 0, 0), 0);
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 101, 0), 0);
	assert_int_equal(tsi_membership_tail(&membership_m, a.id, 0, 0),
			 TSOCK_EPROTO);
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
		cmocka_unit_test(nothing_is_made_before_min_members_are_there),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_tail_that_nobody_could_have_is_refused),
		cmocka_unit_test(no_tail_is_needed_before_the_rings_are_mapped),
	};

	return cmocka_run_group_tests_name("membership", tests, NULL, NULL);
}
