/* SPDX-License-Identifier: MIT */
/*
 * test_membership_starts.c - where readers start: which starts are kept for
 * them, and when the stream jumps to one.
 */
#include "test/lib/membership_fixture.h"

static void no_start_lies_before_the_epoch_last_begun_ends(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 64, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 10, 0);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 0);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 0).start,
			 membership_m.view[0].head);
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 300).start, 300);
}

static void a_lone_joiner_jumps_to_a_fresh_epoch(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(10000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 500, 0);
	tsi_membership_leave(&membership_m, a.id);
	a = membership_join(TSOCK_JOIN_EPOCH, 10000);
	assert_int_equal(a.start, 10000);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_m.view[0].head, 10000);
	assert_int_equal(membership_fill(), 10128);
}

static void a_jump_waits_for_what_is_in_flight(void **state)
{
	struct tsi_joined a;
	uint64_t first;

	(void)state;
	membership_make(10000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 100, &first),
			 100);
	tsi_membership_published(&membership_m, 0, 70);
	tsi_membership_tail(&membership_m, a.id, 70, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	assert_false(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 1, &first), 0);
	/* The live edge is the target now, for others too. */
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 0).start, 10000);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_membership_published(&membership_m, 0, 100);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_m.view[0].base, 10000);
}

static int refused(uint32_t how, uint64_t after)
{
	struct tsi_join j = { .join = how, .after = after };
	struct tsi_joined c;

	return tsi_membership_join(&membership_m, &j, 0, &c);
}

/* All have left: within the window as if the last of them still read. */
static void an_epoch_that_was_only_begun_is_whole_for_a_newcomer(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, 1000);
	for (unsigned i = 0; i < 3; i++) {
		a = membership_join(TSOCK_JOIN_EPOCH, 0);
		assert_int_equal(a.start, 0);
		membership_fill();
		tsi_membership_tail(&membership_m, a.id, 63, 0);
		tsi_membership_leave(&membership_m, a.id);
		assert_false(tsi_membership_ended(&membership_m));
	}
	/* A reader that counts it as begun has had it. */
	assert_int_equal(refused(TSOCK_JOIN_EPOCH, 1000), TSOCK_EENDED);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_membership_tail(&membership_m, a.id, 64, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(refused(TSOCK_JOIN_EPOCH, 0), TSOCK_EENDED);
	assert_true(tsi_membership_ended(&membership_m));
}

static int join_from(uint64_t from, uint64_t after, uint64_t *start)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH,
			      .after = after,
			      .from = from };
	struct tsi_joined c;
	int err = tsi_membership_join(&membership_m, &j, 0, &c);

	if (!err)
		*start = c.start;
	return err;
}

/* Ranks of other producers have begun that epoch. */
static void a_lone_reader_takes_the_stream_to_an_epoch_however_far(void **state)
{
	uint64_t start;

	(void)state;
	membership_make(100, 50, 256, 1000);
	assert_int_equal(join_from(900, 0, &start), 0);
	assert_int_equal(start, 900);
	membership_make(100, 50, 256, 1000);
	assert_int_equal(join_from(1000, 0, &start), TSOCK_EENDED);
	assert_int_equal(join_from(UINT64_MAX / 2, 0, &start), TSOCK_EREFUSED);
	assert_int_equal(join_from(100, 200, &start), 0);
	assert_int_equal(start, 200);
}

static void others_are_not_taken_far(void **state)
{
	uint64_t start;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(membership_m.view[0].claimed, 256);
	assert_int_equal(join_from(500, 0, &start), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "epoch 5 can't be begun"));
	assert_int_equal(join_from(400, 0, &start), 0);
	assert_int_equal(start, 400);
}

/* Its first epoch is dealt anew, from sample 340 on. */
static void a_stream_may_begin_amid_an_epoch(void **state)
{
	struct tsi_membership_config c = { .epoch_len = 100,
					   .join_window = 50,
					   .capacity = 256,
					   .first = 340,
					   .begins = 340,
					   .end = TSI_NEVER,
					   .segments = 1,
					   .min_members = 1 };
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH,
			      .after = 340,
			      .exact = true,
			      .moves = true };
	struct tsi_joined a;

	(void)state;
	tsi_membership_init(&membership_m, &c);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &a), 0);
	assert_int_equal(a.start, 340);
	assert_false(membership_m.jumping);
	/* Others get whole epochs, of those that it has. */
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 400);
	assert_int_equal(membership_join(TSOCK_JOIN_NOW, 0).start, 340);
	tsi_membership_init(&membership_m, &c);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(a.start, 400);
	tsi_membership_leave(&membership_m, a.id);
	/* The job itself may come later, and again. */
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &a), 0);
	assert_int_equal(a.start, 340);
	tsi_membership_leave(&membership_m, a.id);
	j.after = 339;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &a),
			 TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "begins at sample 340"));
}

/* Other ranks of a job begin where the first one does, wherever that is. */
static void an_exact_start_is_given_as_long_as_it_is_held(void **state)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH,
			      .after = 100,
			      .exact = true };
	struct tsi_joined a, b;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &b), 0);
	assert_int_equal(b.start, 100);
	assert_int_equal(b.epoch_end, 200);
	tsi_membership_leave(&membership_m, b.id);
	tsi_membership_tail(&membership_m, a.id, 250, 0);
	membership_fill();
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &b),
			 TSOCK_EREFUSED);
	j.after = 400;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &b), 0);
	assert_int_equal(b.start, 400);
}

static void no_jump_when_the_next_start_is_in_the_ring(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 30, 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 100).start, 100);
	assert_false(membership_m.jumping);
}

static void when_only_waiting_readers_are_left_the_stream_skips(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(10000, 64, 128, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 500, 0);
	membership_fill();
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 10000);
	tsi_membership_leave(&membership_m, a.id);
	tsi_membership_apply_jump(&membership_m);
	assert_int_equal(membership_m.view[0].head, 10000);
}

/* A start is kept for a rank that has still to come. */
static void a_stream_does_not_skip_what_is_kept(void **state)
{
	struct tsi_joined a;
	uint64_t start;

	(void)state;
	membership_make(100, 50, 64, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_keep(&membership_m, 0);
	assert_int_equal(join_from(200, 0, &start), 0);
	tsi_membership_leave(&membership_m, a.id);
	assert_false(tsi_membership_jumping(&membership_m));
	/* Its tail is where the first batch of its own is. */
	assert_int_equal(tsi_membership_tail(&membership_m, 1, 210, 0), 0);
	tsi_membership_keep(&membership_m, 200);
	assert_true(tsi_membership_apply_jump(&membership_m));
	assert_int_equal(membership_m.view[0].head, 200);
}

/* The stage is done with the epoch, its reader is not. */
static void the_base_keeps_the_next_start_for_readers_of_views(void **state)
{
	struct tsi_joined view;

	(void)state;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	view = membership_join_view(1, 0);
	membership_fill_all();
	membership_read_on(view.id, 0, 960);
	/* Not 960 + 2 * 128. */
	assert_int_equal(membership_m.view[1].head, 1088);
	assert_int_equal(membership_m.view[0].head, 1128);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 0).start, 1000);
	tsi_membership_leave(&membership_m, view.id + 1);
	/* On the start, and about to leave. */
	tsi_membership_tail(&membership_m, view.id, 1000, 0);
	membership_fill_all();
	assert_int_equal(membership_m.view[0].head, 1128);
	tsi_membership_leave(&membership_m, view.id);
	view = membership_join_view(1, 1000);
	assert_int_equal(view.start, 1000);
	assert_false(membership_m.jumping);
}

static void a_chain_of_views_keeps_it_as_well(void **state)
{
	struct tsi_joined chain;

	(void)state;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	chain = membership_join_view(3, 0);
	membership_fill_all();
	membership_read_on(chain.id, 0, 960);
	assert_int_equal(membership_m.view[3].head, 1088);
	assert_int_equal(membership_m.view[2].head, 1128);
	assert_int_equal(membership_m.view[0].head, 1128);
	assert_int_equal(membership_join_view(2, 0).start, 1000);
	assert_int_equal(membership_join_view(1, 0).start, 1000);
}

static void a_writer_asks_for_the_tail_that_passes_it(void **state)
{
	struct tsi_joined view;
	uint64_t gate, front;

	(void)state;
	membership_make_views(1000, 1, 128, TSI_NEVER);
	view = membership_join_view(1, 0);
	membership_fill_all();
	membership_read_on(view.id, 0, 960);
	tsi_membership_waits(&membership_m, 0, &gate, &front);
	assert_int_equal(tsi_membership_next_start(&membership_m, 1), 1000);
	assert_int_equal(tsi_membership_next_start(&membership_m, 0),
			 TSI_NEVER);
	tsi_membership_tail(&membership_m, view.id, 1001, 0);
	assert_int_equal(tsi_membership_next_start(&membership_m, 1), 2000);
	assert_true(tsi_membership_limit(&membership_m, 0) > 1128);
}

/* Another one, which is gone, was far ahead. */
static void who_is_alone_gets_its_own_next_epoch(void **state)
{
	struct tsi_joined a, b;

	(void)state;
	membership_make(100, 50, 256, TSI_NEVER);
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	b = membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	tsi_membership_tail(&membership_m, a.id, 240, 0);
	tsi_membership_leave(&membership_m, a.id);
	tsi_membership_tail(&membership_m, b.id, 100, 0);
	tsi_membership_leave(&membership_m, b.id);
	assert_int_equal(membership_join(TSOCK_JOIN_EPOCH, 100).start, 100);
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
	membership_make_views(1000, 64, 128, TSI_NEVER);
	membership_m.c.segments = 2;
	membership_m.c.bounds = bounds;
	j.after = 500;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 500);
	membership_fill_all();
	membership_read_on(c.id, 500, 1460);
	assert_int_equal(membership_m.view[0].head, 1628);
	tsi_membership_tail(&membership_m, c.id, 1500, 0);
	tsi_membership_leave(&membership_m, c.id);
	j.after = c.epoch_end;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 1500);
}

/* The reader holds: the next epoch's start is kept, its segment's is not. */
static void who_breaks_off_is_not_sent_to_where_others_were(void **state)
{
	static const uint64_t bounds[] = { 0, 5, 10 };
	struct tsi_join j = { .view = 1, .join = TSOCK_JOIN_SEGMENT };
	struct tsi_joined a, c;

	(void)state;
	membership_make_views(10, 5, 40, TSI_NEVER);
	membership_m.c.segments = 2;
	membership_m.c.bounds = bounds;
	a = membership_join(TSOCK_JOIN_EPOCH, 0);
	j.after = 5;
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 5);
	membership_fill_all();
	tsi_membership_tail(&membership_m, a.id, 40, 0);
	tsi_membership_tail(&membership_m, c.id, 15, 0);
	membership_fill_all();
	tsi_membership_tail(&membership_m, a.id, 58, 0);
	tsi_membership_leave(&membership_m, a.id);
	membership_fill_all();
	assert_int_equal(membership_m.view[0].head, 60);
	tsi_membership_leave(&membership_m, c.id);
	j.after = c.epoch_end;
	assert_int_equal(c.epoch_end, 15);
	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	assert_int_equal(c.start, 20);
}

static void only_the_first_epoch_of_joining_now_is_short(void **state)
{
	struct tsi_joined a;

	(void)state;
	membership_make(1000, 64, 128, TSI_NEVER);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	membership_fill();
	a = membership_join(TSOCK_JOIN_NOW, 0);
	assert_int_equal(a.start, 128);
	assert_int_equal(a.epoch_end, 1000);
	tsi_membership_leave(&membership_m, a.id);
	membership_read_on(0, 0, 1024);
	a = membership_join(TSOCK_JOIN_NOW, a.epoch_end);
	assert_int_equal(a.start, 1000);
	assert_int_equal(a.epoch_end, 2000);
}

/* A view may hold the epoch's start when the base ring no longer does. */
static void ranks_begin_where_every_ring_holds_the_start(void **state)
{
	struct tsi_join j = { .view = 1 };
	struct tsi_joined a;
	uint64_t start;

	(void)state;
	membership_make_views(1000, 64, 128, TSI_NEVER);
	a = membership_hold_view(1, 0);
	membership_fill();
	membership_stage(1, 128);
	tsi_membership_tail(&membership_m, a.id, 100, 0);
	membership_fill();
	assert_int_equal(membership_m.view[0].claimed, 256);
	assert_int_equal(membership_m.view[1].claimed, 128);
	assert_int_equal(tsi_membership_forecast(&membership_m, &j, &start), 0);
	assert_int_equal(start, 0);
	j.together = true;
	assert_int_equal(tsi_membership_forecast(&membership_m, &j, &start), 0);
	assert_int_equal(start, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			no_start_lies_before_the_epoch_last_begun_ends),
		cmocka_unit_test(a_lone_joiner_jumps_to_a_fresh_epoch),
		cmocka_unit_test(a_jump_waits_for_what_is_in_flight),
		cmocka_unit_test(
			an_epoch_that_was_only_begun_is_whole_for_a_newcomer),
		cmocka_unit_test(
			a_lone_reader_takes_the_stream_to_an_epoch_however_far),
		cmocka_unit_test(others_are_not_taken_far),
		cmocka_unit_test(a_stream_may_begin_amid_an_epoch),
		cmocka_unit_test(an_exact_start_is_given_as_long_as_it_is_held),
		cmocka_unit_test(no_jump_when_the_next_start_is_in_the_ring),
		cmocka_unit_test(
			when_only_waiting_readers_are_left_the_stream_skips),
		cmocka_unit_test(a_stream_does_not_skip_what_is_kept),
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
		cmocka_unit_test(ranks_begin_where_every_ring_holds_the_start),
	};

	return cmocka_run_group_tests_name("membership_starts", tests, NULL,
					   NULL);
}
