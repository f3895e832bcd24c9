/* SPDX-License-Identifier: MIT */
/*
 * test_membership_views.c - views end, begin again, and lose what they are
 * made of; what a stage reads is kept.
 */
#include "test/lib/membership_fixture.h"

static void views_skip_with_the_stream(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	membership_make_chain(10000, 64, 128, false);
	a = membership_hold_view(2, 0);
	membership_fill();
	assert_int_equal(tsi_membership_claim(&membership_m, 1, 100, &first),
			 100);
	tsi_membership_reading(&membership_m, 1, first);
	tsi_membership_published(&membership_m, 1, 80);
	assert_int_equal(tsi_membership_claim(&membership_m, 2, 100, &first),
			 80);
	tsi_membership_published(&membership_m, 2, 80);
	tsi_membership_tail(&membership_m, a.id, 70, 0);
	assert_int_equal(membership_hold_view(2, 10000).start, 10000);
	tsi_membership_leave(&membership_m, a.id);
	membership_fill();
	assert_int_equal(membership_m.view[0].base, 10000);
	for (unsigned v = 0; v < 3; v++)
		assert_int_equal(membership_m.view[v].head, 10000);
	/* A stage still reads what was below. */
	assert_int_equal(tsi_membership_limit(&membership_m, 0), 10000);
	tsi_membership_reading(&membership_m, 1, TSI_NEVER);
	assert_int_equal(tsi_membership_limit(&membership_m, 0), 10128);
}

/* The view ends while two lanes are at work, and begins again where it was. */
static void a_run_of_before_a_view_ended_is_not_published(void **state)
{
	struct tsi_joined a, b;
	uint64_t old, new;
	uint32_t opening;

	(void)state;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	a = membership_join_view(1, 0);
	membership_fill();
	assert_int_equal(tsi_membership_claim(&membership_m, 1, 10, &old), 10);
	opening = membership_m.view[1].opening;
	tsi_membership_reading(&membership_m, 1, old);
	tsi_membership_leave(&membership_m, a.id);
	(void)b;
	a = membership_join_view(1, 0);
	assert_int_equal(a.start, 0);
	assert_int_equal(tsi_membership_claim(&membership_m, 1, 16, &new), 16);
	assert_int_equal(new, old);
	/* Samples 0 .. 9 of before, while 0 .. 15 are being written. */
	assert_false(
		tsi_membership_done(&membership_m, 1, opening, old, old + 10));
	assert_true(tsi_membership_done(
		&membership_m, 1, membership_m.view[1].opening, new, new + 16));
	assert_int_equal(membership_m.view[1].head, 16);
}

static void
what_a_stage_is_reading_is_kept_when_its_readers_are_gone(void **state)
{
	struct tsi_joined base, view;
	uint64_t first;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, 128, false);
	base = membership_join(TSOCK_JOIN_EPOCH, 0);
	view = membership_hold_view(1, 0);
	membership_fill();
	assert_int_equal(tsi_membership_claim(&membership_m, 1, 16, &first),
			 16);
	tsi_membership_reading(&membership_m, 1, first);
	tsi_membership_leave(&membership_m, view.id);
	/* The base's own reader has gone far ahead of the stage. */
	tsi_membership_tail(&membership_m, base.id, 120, 0);
	assert_int_equal(membership_fill(), 128);
	tsi_membership_reading(&membership_m, 1, TSI_NEVER);
	assert_int_equal(membership_fill(), 248);
}

static void a_view_that_loses_its_source_goes_on_from_the_base(void **state)
{
	struct tsi_joined c;
	uint64_t first;

	(void)state;
	membership_make_chain(1000, 16, 128, true);
	c = membership_hold_view(2, 0);
	assert_int_equal(membership_fill(), 128);
	membership_stage(1, 128);
	/* View 1 has them all, and the base ring keeps them for view 2. */
	assert_int_equal(membership_fill(), 128);
	membership_stage(2, 32);
	tsi_membership_tail(&membership_m, c.id, 32, 0);
	assert_int_equal(membership_fill(), 160);
	/* Twenty samples were on their way, and are claimed again. */
	assert_int_equal(tsi_membership_claim(&membership_m, 2, 20, &first),
			 20);
	assert_true(tsi_membership_fall_back_to_base(&membership_m, 2));
	assert_false(membership_m.view[1].active);
	assert_int_equal(tsi_membership_claim(&membership_m, 2, 200, &first),
			 128);
	assert_int_equal(first, 32);
}

static void what_never_came_has_spoilt_its_slots(void **state)
{
	struct tsi_joined c;
	uint64_t first;

	(void)state;
	membership_make_chain(1000, 16, 128, true);
	c = membership_hold_view(2, 0);
	membership_fill();
	membership_stage(1, 128);
	membership_stage(2, 120);
	tsi_membership_tail(&membership_m, c.id, 20, 0);
	membership_fill();
	membership_stage(1, 20);
	assert_int_equal(tsi_membership_claim(&membership_m, 2, 20, &first),
			 20);
	assert_true(tsi_membership_fall_back_to_base(&membership_m, 2));
	/* Samples 0 to 11 were written over: the epoch's start is gone. */
	assert_int_equal(membership_hold_view(2, 0).start, 1000);
}

static void
a_view_that_began_behind_the_base_is_lost_with_its_source(void **state)
{
	struct tsi_joined c;

	(void)state;
	membership_make_chain(1000, 64, 128, true);
	c = membership_hold_view(1, 0);
	assert_int_equal(membership_fill(), 128);
	membership_stage(1, 128);
	tsi_membership_tail(&membership_m, c.id, 100, 0);
	assert_int_equal(membership_fill(), 256);
	/* View 1 has the epoch's start, the base ring hasn't. */
	assert_int_equal(membership_hold_view(2, 0).start, 0);
	assert_false(tsi_membership_fall_back_to_base(&membership_m, 2));
	/* When it has caught up, it can do without. */
	membership_stage(2, 128);
	assert_true(tsi_membership_fall_back_to_base(&membership_m, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_skip_with_the_stream),
		cmocka_unit_test(a_run_of_before_a_view_ended_is_not_published),
		cmocka_unit_test(
			what_a_stage_is_reading_is_kept_when_its_readers_are_gone),
		cmocka_unit_test(
			a_view_that_loses_its_source_goes_on_from_the_base),
		cmocka_unit_test(what_never_came_has_spoilt_its_slots),
		cmocka_unit_test(
			a_view_that_began_behind_the_base_is_lost_with_its_source),
	};

	return cmocka_run_group_tests_name("membership_views", tests, NULL,
					   NULL);
}
