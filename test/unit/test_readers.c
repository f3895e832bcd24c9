/* SPDX-License-Identifier: MIT */
/*
 * test_readers.c - peers that become readers or can't, and readers that lose
 * their view, of a producer that has nothing but its tables and rings.
 */
#include "test/lib/readers_fixture.h"

#include "base/clock.h"

static struct tsi_reply reply; /* to who joined last */

/* A rank of a job of two, which have both asked. */
static struct tsi_offer offer_of_rank(uint32_t rank)
{
	struct tsi_offer o[2];

	for (uint32_t i = 0; i < 2; i++) {
		o[i] = readers_offer_of((uint8_t)(1 + i));
		o[i].join.world = 2;
		o[i].join.rank = i;
		memset(o[i].join.job, 'j', TSOCK_JOB);
		tsi_jobs_ask(&readers_table.jobs, &o[i].join, tsi_now_ms());
	}
	return o[rank];
}

static int joins(const struct tsi_offer *o)
{
	return readers_join_by(o, &reply);
}

/* A reader that has come so far that the ring no longer holds sample 0. */
static void pass_the_first_samples(unsigned id)
{
	struct tsi_tail_page *page = readers_page_of(id);

	tsi_tail_page_move(page, C);
	munmap(page, sizeof(*page));
	/* Other ranks of its job are waited for no longer. */
	tsi_membership_keep(&membership_m, TSI_NEVER);
	membership_fill_all();
	tsi_membership_tail(&membership_m, id, C, 0);
	membership_fill_all();
	assert_int_equal(tsi_membership_head(&membership_m, 0), 2 * C);
}

static void said(const char *text)
{
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

/* Where the stream goes on is known when they have said where they are. */
static void nobody_joins_before_it_is_known_where_others_return(void **state)
{
	struct tsi_reader_row row = { .nonce = { 9 } };
	struct tsi_offer o = readers_offer_of(1);
	uint64_t from;

	(void)state;
	assert_true(tsi_returners_add(&readers_table.returners, &row, 0));
	assert_int_equal(joins(&o), TSOCK_EAGAIN);
	assert_int_equal(membership_m.count, 0);
	assert_true(tsi_returners_take(&readers_table.returners, row.nonce));
	assert_int_equal(tsi_returners_step(&readers_table.returners, 0, &from),
			 TSI_RETURNERS_RELEASE);
	assert_int_equal(joins(&o), 0);
	assert_true(tsi_readers_has(&readers_table, o.join.nonce));
}

static void a_rank_whose_job_was_forgotten_asks_again(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	tsi_jobs_fini(&readers_table.jobs);
	tsi_jobs_init(&readers_table.jobs, N);
	assert_int_equal(joins(&o), TSOCK_EAGAIN);
	said("the job's ranks came too late");
	assert_int_equal(membership_m.count, 0);
}

static void ranks_that_go_on_go_on_at_one_sample(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	o.join.epoch_end = N;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, 0);
	o = offer_of_rank(1);
	o.join.epoch_end = N;
	o.join.position = 4;
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("rank 1 goes on at sample 4, and the other ranks of its job at 0");
	o.join.position = 0;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(membership_m.count, 2);
}

/* Before it has its reply: the base ring goes on meanwhile for a GPU's. */
static void a_start_is_kept_from_the_first_rank_s_join_on(void **state)
{
	struct tsi_offer o = offer_of_rank(0), other = offer_of_rank(1);

	(void)state;
	o.view = 1;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(tsi_membership_kept(&membership_m), 0);
	assert_int_equal(joins(&other), 0);
	assert_int_equal(reply.start, 0);
	tsi_readers_confirm(&readers_table, &other, reply.row);
	assert_int_equal(tsi_membership_kept(&membership_m), TSI_NEVER);
}

/* A rank of that job begins this epoch or a later one, by a new connection. */
static int begins_from(uint8_t job, uint32_t rank, uint64_t epoch)
{
	static uint8_t connections = 10;
	struct tsi_offer o = readers_offer_of(connections++);
	uint64_t start;
	int err;

	o.join.world = 2;
	o.join.rank = rank;
	o.join.from = epoch * N;
	o.join.between = TSOCK_BETWEEN_HOLD;
	memset(o.join.job, job, TSOCK_JOB);
	err = tsi_readers_forecast(&readers_table, &o.join, 0, &start);
	if (!err)
		err = joins(&o);
	if (!err)
		tsi_readers_confirm(&readers_table, &o, reply.row);
	return err;
}

/* A reader of the stream that leaves by itself: its LEAVE comes after all. */
static void leaves(unsigned id)
{
	uint8_t nonce[TSI_NONCE];

	memcpy(nonce, tsi_conn_nonce(tsi_readers_conn(&readers_table, id)),
	       TSI_NONCE);
	tsi_readers_leave(&readers_table, nonce);
}

static void a_job_takes_a_stream_of_its_own_to_any_epoch(void **state)
{
	(void)state;
	assert_int_equal(begins_from('j', 0, 0), 0);
	assert_int_equal(begins_from('j', 1, 0), 0);
	membership_fill_all();
	leaves(0);
	assert_int_equal(begins_from('j', 0, 1000), 0);
	assert_int_equal(reply.start, 1000 * N);
	/* The other rank is where it was, and nothing is made for it. */
	assert_false(tsi_membership_jumping(&membership_m));
	leaves(1);
	assert_int_equal(begins_from('j', 1, 1000), 0);
	assert_int_equal(reply.start, 1000 * N);
	assert_int_equal(tsi_membership_head(&membership_m, 0), 1000 * N);
}

/* Only the epoch that it has begun is kept for the rank that didn't come. */
static void a_stream_that_is_kept_for_a_job_goes_on_with_it(void **state)
{
	(void)state;
	assert_int_equal(begins_from('j', 0, 0), 0);
	leaves(0);
	assert_int_equal(tsi_membership_kept(&membership_m), 0);
	assert_int_equal(begins_from('k', 0, 1000), TSOCK_EREFUSED);
	said("epoch 1000 can't be begun");
	assert_int_equal(begins_from('j', 0, 1000), 0);
	assert_int_equal(reply.start, 1000 * N);
	assert_int_equal(tsi_membership_kept(&membership_m), 1000 * N);
	/* No epoch before that is made. */
	assert_int_equal(tsi_membership_head(&membership_m, 0), 1000 * N);
	assert_int_equal(begins_from('j', 1, 0), 0);
	assert_int_equal(reply.start, 1000 * N);
}

static void a_job_does_not_take_another_one_far(void **state)
{
	(void)state;
	assert_int_equal(begins_from('j', 0, 0), 0);
	assert_int_equal(begins_from('j', 1, 0), 0);
	assert_int_equal(begins_from('k', 0, 0), 0);
	leaves(0);
	assert_int_equal(begins_from('j', 0, 1000), TSOCK_EREFUSED);
	said("for 1 other consumer;");
	assert_int_equal(begins_from('j', 0, 2), 0);
	assert_int_equal(reply.start, 2 * N);
}

/* Then it need not wait a thousand epochs for that one. */
static void nor_where_the_other_job_came_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(begins_from('j', 0, 0), 0);
	assert_int_equal(begins_from('j', 1, 0), 0);
	leaves(0);
	assert_int_equal(begins_from('j', 0, 1000), 0);
	assert_int_equal(begins_from('k', 0, 0), 0);
	assert_int_equal(reply.start, 0);
	leaves(1);
	assert_int_equal(begins_from('j', 1, 1000), TSOCK_EREFUSED);
	said("for 1 other consumer;");
	/* Nor by a nearer one, since it would begin where rank 0 did. */
	assert_int_equal(begins_from('j', 1, 1), TSOCK_EREFUSED);
}

/* The one that is behind reads on, or goes there as well. */
static void ranks_that_want_different_epochs_get_them(void **state)
{
	(void)state;
	assert_int_equal(begins_from('j', 0, 0), 0);
	assert_int_equal(begins_from('j', 1, 0), 0);
	leaves(0);
	assert_int_equal(begins_from('j', 0, 1000), 0);
	leaves(1);
	assert_int_equal(begins_from('j', 1, 500), 0);
	assert_int_equal(reply.start, 1000 * N);
	leaves(1);
	assert_int_equal(begins_from('j', 1, 3000), 0);
	assert_int_equal(reply.start, 3000 * N);
	membership_fill_all();
	assert_int_equal(tsi_membership_head(&membership_m, 0), 1000 * N + C);
	leaves(0);
	assert_int_equal(begins_from('j', 0, 2000), 0);
	assert_int_equal(reply.start, 3000 * N);
}

/* A GPU's batch comes back when its copy has ended; its process may not. */
static void what_a_dead_reader_had_taken_counts_as_read(void **state)
{
	struct tsi_offer o = readers_offer_of(1);
	struct tsi_tail_page *page;

	(void)state;
	assert_int_equal(joins(&o), 0);
	membership_fill_all();
	page = readers_page_of(reply.row);
	atomic_store(&page->position, 20);
	munmap(page, sizeof(*page));
	assert_int_equal(membership_m.greatest, 0);
	/* The other end of its connection is closed. */
	tsi_readers_reap(&readers_table);
	assert_int_equal(membership_m.count, 0);
	assert_int_equal(membership_m.greatest, 20);
}

/* Nobody reads its tail after that, although its job waits for the other. */
static void what_a_rank_has_read_counts_when_it_leaves(void **state)
{
	struct tsi_offer o = offer_of_rank(0);
	struct tsi_tail_page *page;

	(void)state;
	assert_int_equal(joins(&o), 0);
	tsi_readers_confirm(&readers_table, &o, reply.row);
	membership_fill_all();
	page = readers_page_of(reply.row);
	tsi_tail_page_move(page, N);
	munmap(page, sizeof(*page));
	tsi_readers_refresh(&readers_table);
	assert_int_equal(membership_m.greatest, 0);
	tsi_readers_leave(&readers_table, o.join.nonce);
	assert_int_equal(membership_m.count, 0);
	assert_int_equal(membership_m.greatest, N);
	/* What the other one needs is kept. */
	assert_int_equal(tsi_membership_kept(&membership_m), 0);
}

/* The rank has read the epoch that the first rank begins with. */
static void a_rank_that_is_ahead_begins_later(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	assert_int_equal(joins(&o), 0);
	o = offer_of_rank(1);
	o.join.after = N;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, N);
}

/* One that leaves between epochs has no claim to it; one that stays does. */
static void a_start_that_is_gone_is_missed_by_ranks_that_stay(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	assert_int_equal(joins(&o), 0);
	pass_the_first_samples(reply.row);
	o = offer_of_rank(1);
	o.join.between = TSOCK_BETWEEN_HOLD;
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("rank 1 can't begin at sample 0");
	o.join.between = TSOCK_BETWEEN_LEAVE;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, C);
}

static void who_cannot_return_to_its_job_makes_none(void **state)
{
	struct tsi_reader_row row = { .nonce = { 9 }, .together = 1 };
	struct tsi_offer o = readers_offer_of(1);
	uint64_t from;

	(void)state;
	assert_int_equal(joins(&o), 0);
	pass_the_first_samples(reply.row);
	assert_true(tsi_returners_add(&readers_table.returners, &row, 0));
	assert_int_equal(
		tsi_returners_step(&readers_table.returners, 600, &from),
		TSI_RETURNERS_HOLD);
	o = readers_offer_of(2);
	o.join.world = 2;
	o.join.epoch_end = N;
	o.join.returns = 1;
	memcpy(o.join.was, row.nonce, TSI_NONCE);
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("sample 0 (of epoch 0) can't be read again");
	assert_int_equal(readers_table.jobs.waiting, 0);
}

/* The rank begins as any rank does, when all have asked. */
static void who_begins_anew_does_not_return_to_its_job(void **state)
{
	struct tsi_reader_row row = { .nonce = { 9 }, .together = 1 };
	struct tsi_offer o = readers_offer_of(2);
	uint64_t from;

	(void)state;
	assert_true(tsi_returners_add(&readers_table.returners, &row, 0));
	assert_int_equal(
		tsi_returners_step(&readers_table.returners, 600, &from),
		TSI_RETURNERS_HOLD);
	o.join.world = 2;
	memcpy(o.join.was, row.nonce, TSI_NONCE);
	assert_int_equal(joins(&o), TSOCK_EAGAIN);
	said("the job's ranks came too late");
	assert_int_equal(membership_m.count, 0);
}

static void a_view_that_is_lost_takes_its_readers_and_no_others(void **state)
{
	struct tsi_offer o = readers_offer_of(1), other = readers_offer_of(2);

	(void)state;
	assert_int_equal(joins(&other), 0);
	o.view = 1;
	assert_int_equal(joins(&o), 0);
	assert_true(tsi_readers_need(&readers_table, 1));
	tsi_readers_drop_view(&readers_table, 1);
	assert_false(tsi_readers_has(&readers_table, o.join.nonce));
	assert_true(tsi_readers_has(&readers_table, other.join.nonce));
	assert_false(tsi_readers_need(&readers_table, 1));
}

/* Its consumer was told that it can join. */
static void a_stream_with_an_offer_is_not_over(void **state)
{
	struct tsi_offer o = readers_offer_of(1);

	(void)state;
	readers_stop(NULL);
	readers_begin_with(N, fixture_ring_make);
	assert_false(tsi_readers_over(&readers_table));
	assert_int_equal(joins(&o), 0);
	membership_fill_all();
	tsi_membership_tail(&membership_m, reply.row, N, 0);
	tsi_membership_leave(&membership_m, reply.row);
	tsi_conn_close(&readers_table.conn[reply.row]);
	assert_true(tsi_membership_ended(&membership_m));
	assert_non_null(tsi_offers_add(&readers_offers, &o.join, 0, 0));
	assert_false(tsi_readers_over(&readers_table));
	tsi_offers_withdraw(&readers_offers, o.join.nonce);
	assert_true(tsi_readers_over(&readers_table));
	/* For good. */
	assert_non_null(tsi_offers_add(&readers_offers, &o.join, 0, 0));
	assert_true(tsi_readers_over(&readers_table));
}

/* There is space for 32, and the furthest tells least. */
static void of_many_readers_the_last_are_shown(void **state)
{
	struct tsock_stats st = { .nrows = 0 };
	bool shown[64] = { false };

	(void)state;
	for (unsigned i = 0; i < TSOCK_STATS_ROWS + 2; i++) {
		struct tsi_offer o = readers_offer_of((uint8_t)(1 + i));

		/* By that the rows are told apart. */
		o.join.batch_size = i;
		assert_int_equal(joins(&o), 0);
	}
	membership_fill_all();
	tsi_membership_tail(&membership_m, 5, 10, 0);
	tsi_membership_tail(&membership_m, TSOCK_STATS_ROWS + 1, 20, 0);
	tsi_readers_stats(&readers_table, &st);
	assert_int_equal(st.nrows, TSOCK_STATS_ROWS);
	for (unsigned i = 0; i < TSOCK_STATS_ROWS; i++)
		shown[st.row[i].batch_size] = true;
	for (unsigned i = 0; i < TSOCK_STATS_ROWS + 2; i++)
		assert_int_equal(shown[i], i != 5 && i != TSOCK_STATS_ROWS + 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, readers_begin, readers_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_joins_before_it_is_known_where_others_return),
		TEST(a_rank_whose_job_was_forgotten_asks_again),
		TEST(ranks_that_go_on_go_on_at_one_sample),
		TEST(a_start_is_kept_from_the_first_rank_s_join_on),
		TEST(a_job_takes_a_stream_of_its_own_to_any_epoch),
		TEST(a_stream_that_is_kept_for_a_job_goes_on_with_it),
		TEST(a_job_does_not_take_another_one_far),
		TEST(nor_where_the_other_job_came_meanwhile),
		TEST(ranks_that_want_different_epochs_get_them),
		TEST(what_a_dead_reader_had_taken_counts_as_read),
		TEST(what_a_rank_has_read_counts_when_it_leaves),
		TEST(a_rank_that_is_ahead_begins_later),
		TEST(a_start_that_is_gone_is_missed_by_ranks_that_stay),
		TEST(who_cannot_return_to_its_job_makes_none),
		TEST(who_begins_anew_does_not_return_to_its_job),
		TEST(a_view_that_is_lost_takes_its_readers_and_no_others),
		TEST(a_stream_with_an_offer_is_not_over),
		TEST(of_many_readers_the_last_are_shown),
	};

	return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
