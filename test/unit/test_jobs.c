/* SPDX-License-Identifier: MIT */
/*
 * test_jobs.c - ranks that begin together after a restart: the producer's table
 * of jobs.
 */
#include "test/lib/jobs_fixture.h"

static int ask(uint8_t name, uint32_t rank, uint32_t world, uint32_t pid,
	       int64_t now)
{
	struct tsi_msg_join j = join_of(name, rank, world, pid);

	return tsi_jobs_ask(&jobs, &j, now);
}

static int begin(uint8_t name, uint32_t rank, bool *started, uint64_t *start)
{
	struct tsi_msg_join j = join_of(name, rank, 3, 10 + rank);

	return tsi_jobs_begin(&jobs, &j, started, start);
}

static void joined(uint8_t name, uint32_t rank, unsigned reader, uint64_t start)
{
	struct tsi_msg_join j = join_of(name, rank, 3, 10 + rank);

	tsi_jobs_joined(&jobs, &j, reader, start);
	tsi_jobs_settle(&jobs, reader);
}

static void make_complete(int64_t now)
{
	assert_int_equal(ask('a', 0, 3, 10, now), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, 11, now), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 2, 3, 12, now), 0);
	assert_int_equal(ask('a', 0, 3, 10, now), 0);
	assert_int_equal(ask('a', 1, 3, 11, now), 0);
}

/* As a rank of three that is through with the epoch that ends at after. */
static int ask_after(uint32_t rank, uint64_t after)
{
	struct tsi_msg_join j = join_of('a', rank, 3, 10 + rank);

	j.after = after;
	j.between = TSOCK_BETWEEN_LEAVE;
	j.batch_size = 10;
	return tsi_jobs_ask(&jobs, &j, 100);
}

static int begin_after(uint32_t rank, uint64_t after, bool *started,
		       uint64_t *start)
{
	struct tsi_msg_join j = join_of('a', rank, 3, 10 + rank);

	j.after = after;
	return tsi_jobs_begin(&jobs, &j, started, start);
}

static void all_ranks_have_to_ask(void **state)
{
	bool started = true;
	uint64_t start;

	(void)state;
	assert_int_equal(ask('a', 0, 3, 10, 100), TSOCK_EAGAIN);
	assert_int_equal(ask('b', 1, 3, 21, 100), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, 11, 100), TSOCK_EAGAIN);
	assert_int_equal(begin('a', 0, &started, &start), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 2, 3, 12, 100), 0);
	assert_int_equal(begin('a', 0, &started, &start), 0);
	assert_false(started);
	assert_int_equal(ask('b', 1, 3, 21, 100), TSOCK_EAGAIN);
}

/* A launcher starts a rank again whose process was killed. */
static void a_rank_takes_the_place_of_a_dead_process(void **state)
{
	pid_t first = process(), second = process();

	(void)state;
	assert_int_equal(ask('a', 1, 3, (uint32_t)first, 100), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, (uint32_t)second, 200), TSOCK_EREFUSED);
	kill(first, SIGKILL);
	assert_int_equal(waitpid(first, NULL, 0), first);
	assert_int_equal(ask('a', 1, 3, (uint32_t)second, 300), TSOCK_EAGAIN);
	assert_int_equal(jobs.job[0].rank[1].pid, second);
	kill(second, SIGKILL);
	assert_int_equal(waitpid(second, NULL, 0), second);
}

static void a_rank_that_asks_no_longer_is_missing(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);

	(void)state;
	assert_int_equal(ask('a', 0, 3, 10, 100), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, 11, 15000), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 2, 3, 12, 15000), TSOCK_EAGAIN);
	tsi_jobs_withdraw(&jobs, j.nonce);
	assert_int_equal(ask('a', 0, 3, 10, 15000), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, 11, 15000), 0);
}

/* Its tail doesn't count until the last rank has joined. */
static void ranks_begin_where_the_first_one_does(void **state)
{
	struct tsi_job_missing missing;
	bool started;
	uint64_t start;

	(void)state;
	make_complete(100);
	joined('a', 2, 7, 5000);
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_false(tsi_jobs_wait(&jobs, 8));
	assert_true(tsi_jobs_missing(&jobs, 7, NULL, &missing));
	assert_int_equal(missing.count, 2);
	assert_int_equal(missing.rank[0], 0);
	assert_int_equal(missing.rank[1], 1);
	assert_int_equal(missing.world, 3);
	assert_true(missing.begun);
	assert_int_equal(missing.epoch, 5);
	assert_int_equal(missing.pid, 10);
	assert_false(tsi_jobs_missing(&jobs, 8, NULL, &missing));
	assert_int_equal(begin('a', 0, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 5000);
	joined('a', 0, 8, 5000);
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_true(tsi_jobs_wait(&jobs, 8));
	joined('a', 1, 9, 5000);
	for (unsigned reader = 0; reader < 10; reader++)
		assert_false(tsi_jobs_wait(&jobs, reader));
	/* A rank that asks now may begin another epoch. */
	assert_int_equal(ask_after(0, 6000), 0);
	assert_int_equal(begin_after(0, 6000, &started, &start), 0);
	assert_false(started);
}

/* The rank finished its epoch before the others had begun. */
static void a_rank_that_was_quick_waits_for_the_others(void **state)
{
	bool started;
	uint64_t start;

	(void)state;
	make_complete(100);
	joined('a', 0, 7, 5000);
	tsi_jobs_left(&jobs, 7, 6000);
	assert_false(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(ask_after(0, 6000), TSOCK_EAGAIN);
	assert_int_equal(begin('a', 1, &started, &start), 0);
	assert_true(started);
	joined('a', 1, 7, 5000);
	assert_int_equal(ask_after(0, 6000), TSOCK_EAGAIN);
	joined('a', 2, 8, 5000);
	assert_int_equal(ask_after(0, 6000), 0);
	assert_int_equal(begin_after(0, 6000, &started, &start), 0);
	assert_false(started);
	joined('a', 0, 9, 6000);
	/* Those that read the epoch before don't hold this one's start. */
	assert_true(tsi_jobs_wait(&jobs, 9));
	assert_false(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(begin_after(1, 6000, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 6000);
}

/* The rank left before it was told, and finds its place unchanged. */
static void a_rank_that_could_not_be_told_joins_again(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);
	bool started = true;
	uint64_t start;

	(void)state;
	make_complete(100);
	tsi_jobs_joined(&jobs, &j, 9, 4000);
	tsi_jobs_undo(&jobs, 9);
	assert_false(tsi_jobs_wait(&jobs, 9));
	assert_int_equal(begin('a', 1, &started, &start), 0);
	assert_false(started);
	joined('a', 0, 7, 5000);
	joined('a', 2, 8, 5000);
	/* The last one, too: the others wait for it where they began. */
	tsi_jobs_joined(&jobs, &j, 9, 5000);
	tsi_jobs_undo(&jobs, 9);
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(ask('a', 1, 3, 11, 200), 0);
	assert_int_equal(begin('a', 1, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 5000);
	joined('a', 1, 9, 5000);
	assert_false(tsi_jobs_wait(&jobs, 7));
}

/* The rank has begun, even if it can't be told that it is a reader. */
static void a_rank_that_returns_fixes_the_start_for_good(void **state)
{
	struct tsi_msg_join j = join_of('a', 2, 3, 12);
	bool started = false;
	uint64_t start = 0;

	(void)state;
	tsi_jobs_return(&jobs, &j, 9, 4000, 100);
	tsi_jobs_undo(&jobs, 9);
	assert_int_equal(ask('a', 1, 3, 11, 100), 0);
	assert_int_equal(begin('a', 1, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 4000);
}

static void ranks_that_do_not_fit_together_are_refused(void **state)
{
	(void)state;
	assert_int_equal(ask('a', 0, 3, 10, 100), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 2, 11, 100), TSOCK_EREFUSED);
	assert_int_equal(ask('a', 3, 3, 13, 100), TSOCK_EREFUSED);
	assert_int_equal(ask('a', 0, 65, 13, 100), TSOCK_EREFUSED);
	/* Two with one rank; the same one again; one in place of a dead one. */
	assert_int_equal(ask('a', 0, 3, 99, 200), TSOCK_EREFUSED);
	assert_int_equal(ask('a', 0, 3, 10, 200), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 0, 3, 99, 9000), TSOCK_EAGAIN);
}

static void what_nobody_comes_for_is_forgotten(void **state)
{
	bool started;
	uint64_t start;

	(void)state;
	make_complete(100);
	joined('a', 0, 7, 5000);
	tsi_jobs_expire(&jobs, 10000);
	assert_true(tsi_jobs_wait(&jobs, 7));
	tsi_jobs_expire(&jobs, 10101);
	assert_false(tsi_jobs_wait(&jobs, 7));
	tsi_jobs_left(&jobs, 7, 5001);
	assert_int_equal(begin('a', 1, &started, &start), TSOCK_EAGAIN);
	for (uint8_t i = 0; i < TSI_JOBS; i++)
		assert_int_equal(ask(i, 0, 2, i, 20000), TSOCK_EAGAIN);
	assert_int_equal(ask('z', 0, 2, 50, 20000), TSOCK_EREFUSED);
	tsi_jobs_expire(&jobs, 30001);
	assert_int_equal(ask('z', 0, 2, 50, 30001), TSOCK_EAGAIN);
}

/* Its job has begun: there is nobody whom it could wait for. */
static void a_rank_that_is_held_up_begins_where_its_job_began(void **state)
{
	bool started = false;
	uint64_t start = 0;

	(void)state;
	make_complete(100);
	joined('a', 0, 7, 5000);
	joined('a', 1, 8, 5000);
	tsi_jobs_expire(&jobs, 10101);
	assert_false(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(ask('a', 2, 3, 12, 20000), 0);
	assert_int_equal(begin('a', 2, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 5000);
	joined('a', 2, 9, 5000);
	/* All have begun: what comes next is another epoch. */
	assert_int_equal(ask_after(0, 6000), 0);
	assert_int_equal(begin_after(0, 6000, &started, &start), 0);
	assert_false(started);
}

static void a_job_is_forgotten_with_the_last_reader_that_had_begun(void **state)
{
	bool started;
	uint64_t start;

	(void)state;
	make_complete(100);
	joined('a', 0, 7, 5000);
	joined('a', 1, 8, 5000);
	tsi_jobs_expire(&jobs, 10101);
	tsi_jobs_left(&jobs, 7, 5001);
	assert_int_equal(begin('a', 2, &started, &start), 0);
	tsi_jobs_left(&jobs, 8, 5001);
	assert_int_equal(begin('a', 2, &started, &start), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 2, 3, 12, 20000), TSOCK_EAGAIN);
}

/* Their places are had by jobs that wait. */
static void jobs_that_have_begun_fill_no_table(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < TSI_JOBS; i++) {
		struct tsi_msg_join j = join_of(i, 0, 2, 10 + i);

		assert_int_equal(ask(i, 1, 2, 100 + i, 100), TSOCK_EAGAIN);
		assert_int_equal(ask(i, 0, 2, 10 + i, 100), 0);
		tsi_jobs_joined(&jobs, &j, i, 5000);
	}
	assert_int_equal(ask('z', 0, 2, 50, 100), TSOCK_EREFUSED);
	tsi_jobs_expire(&jobs, 10101);
	/* Nor do those cost anything who read tails. */
	assert_int_equal(jobs.waiting, 0);
	assert_int_equal(ask('z', 0, 2, 50, 20000), TSOCK_EAGAIN);
	assert_int_equal(jobs.waiting, 1);
}

/* A job's ranks ask by their connections, whichever process has them. */
static void a_connection_may_go_on_in_another_process(void **state)
{
	struct tsi_msg_join j = join_of('a', 0, 3, 10);

	(void)state;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 100), TSOCK_EAGAIN);
	j.pid = 99;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 200), TSOCK_EAGAIN);
	assert_int_equal(jobs.job[0].rank[0].pid, 99);
	/* Nor is one process with two connections two ranks. */
	j.nonce[0]++;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 300), TSOCK_EAGAIN);
	assert_int_equal(jobs.job[0].rank[0].asked_ms, 300);
}

static void who_joins_no_job_makes_none(void **state)
{
	struct tsi_msg_join j = join_of('a', 0, 3, 10);

	(void)state;
	assert_int_equal(ask('b', 0, 3, 20, 100), TSOCK_EAGAIN);
	tsi_jobs_joined(&jobs, &j, 7, 5000);
	assert_false(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(jobs.waiting, 1);
}

/* As many as there are ranks of it: the last one completes the job. */
static void all_ranks_of_a_job_may_return(void **state)
{
	bool started = false;
	uint64_t start = 0;

	(void)state;
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct tsi_msg_join j = join_of('a', rank, 3, 10 + rank);

		tsi_jobs_return(&jobs, &j, rank, 4000 + rank, 100);
		assert_true(tsi_jobs_wait(&jobs, rank));
	}
	assert_int_equal(jobs.waiting, 1);
	assert_int_equal(begin('a', 2, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 4000);
	tsi_jobs_settle(&jobs, 1);
	assert_int_equal(jobs.waiting, 0);
}

/* The job's time to join is what it was when all had asked. */
static void who_returns_to_a_job_that_is_complete_leaves_it_so(void **state)
{
	struct tsi_msg_join j = join_of('a', 0, 3, 10);

	(void)state;
	make_complete(100);
	tsi_jobs_return(&jobs, &j, 7, 4000, 9000);
	tsi_jobs_expire(&jobs, 10101);
	assert_false(tsi_jobs_wait(&jobs, 7));
}

static void an_impossible_rank_returns_to_no_job(void **state)
{
	struct tsi_msg_join j = join_of('a', 3, 3, 10);

	(void)state;
	tsi_jobs_return(&jobs, &j, 7, 4000, 100);
	assert_int_equal(jobs.waiting, 0);
	assert_false(jobs.job[0].used);
}

/* The rank reads alone: no row is free to record the others of its job. */
static void who_returns_to_a_full_table_waits_for_nobody(void **state)
{
	struct tsi_msg_join j = join_of('z', 0, 3, 10);

	(void)state;
	for (uint8_t i = 0; i < TSI_JOBS; i++)
		assert_int_equal(ask(i, 0, 2, i, 100), TSOCK_EAGAIN);
	tsi_jobs_return(&jobs, &j, 7, 4000, 100);
	assert_int_equal(jobs.waiting, TSI_JOBS);
	assert_false(tsi_jobs_wait(&jobs, 7));
}

static void
a_job_that_was_let_go_holds_nobody_beside_one_that_waits(void **state)
{
	(void)state;
	make_complete(100);
	joined('a', 0, 7, 5000);
	assert_int_equal(ask('b', 0, 3, 20, 10000), TSOCK_EAGAIN);
	assert_true(tsi_jobs_wait(&jobs, 7));
	tsi_jobs_expire(&jobs, 10101);
	assert_int_equal(jobs.waiting, 1);
	assert_false(tsi_jobs_wait(&jobs, 7));
}

/* The producer with which the others began has died, and they went on. */
static void who_has_not_begun_with_the_others_is_refused(void **state)
{
	struct tsi_msg_join other = join_of('a', 0, 3, 10);
	struct tsi_msg_join late = join_of('a', 1, 3, 11);

	(void)state;
	other.epoch_end = 2000;
	late.returns = TSI_RETURNS_UNBEGUN;
	late.after = 1000;
	/* They may still come. */
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EAGAIN);
	tsi_jobs_returned(&jobs, &other, 5);
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EREFUSED);
	/* The rank has left that epoch, and waits for the others to leave. */
	late.returns = TSI_RETURNS;
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EAGAIN);
	/* Or it is through with it. */
	late.returns = TSI_RETURNS_UNBEGUN;
	late.after = 2000;
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EAGAIN);
	/* Another job, or the same one when that rank has left. */
	late.after = 1000;
	memset(late.job, 'b', TSOCK_JOB);
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EAGAIN);
	memset(late.job, 'a', TSOCK_JOB);
	tsi_jobs_left(&jobs, 5, 5001);
	assert_int_equal(tsi_jobs_ask(&jobs, &late, 1), TSOCK_EAGAIN);
}

/* Two have had an epoch that the third hasn't: their producer has died. */
static void who_is_behind_begins_where_the_others_had(void **state)
{
	bool started = false;
	uint64_t start = 0;

	(void)state;
	assert_int_equal(ask_after(0, 6000), TSOCK_EAGAIN);
	assert_int_equal(ask_after(1, 5000), TSOCK_EAGAIN);
	assert_int_equal(ask_after(2, 6000), TSOCK_EAGAIN);
	assert_int_equal(ask_after(0, 6000), TSOCK_EAGAIN);
	assert_int_equal(ask_after(1, 5000), 0);
	/* An offer of before is none for who is ahead. */
	assert_int_equal(begin_after(0, 6000, &started, &start), TSOCK_EAGAIN);
	assert_int_equal(begin_after(1, 5000, &started, &start), 0);
	assert_true(started);
	assert_int_equal(start, 5000);
	joined('a', 1, 7, 5000);
	/* All have had it, or have it now. */
	assert_int_equal(jobs.waiting, 0);
	assert_int_equal(ask_after(0, 6000), 0);
	assert_int_equal(begin_after(0, 6000, &started, &start), 0);
	assert_false(started);
}

/* The rank has begun that epoch, too, and broken it off. */
static void who_goes_back_begins_where_it_likes(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);
	bool started = true;
	uint64_t start;

	(void)state;
	assert_int_equal(ask_after(0, 6000), TSOCK_EAGAIN);
	assert_int_equal(ask_after(2, 6000), TSOCK_EAGAIN);
	j.after = 5000;
	j.own = TSI_REWOUND;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 100), 0);
	assert_int_equal(tsi_jobs_begin(&jobs, &j, &started, &start), 0);
	assert_false(started);
	assert_false(tsi_jobs_had(&jobs, &j));
}

static void an_epoch_that_a_rank_has_had_is_kept_for_the_others(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);

	(void)state;
	make_complete(100);
	j.batch_size = 10;
	tsi_jobs_joined(&jobs, &j, 7, 5000);
	assert_false(tsi_jobs_had(&jobs, &j));
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	/* The last of its batches may be 30 samples from the epoch's end. */
	tsi_jobs_left(&jobs, 7, 5971);
	assert_true(tsi_jobs_had(&jobs, &j));
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	joined('a', 0, 8, 5000);
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	/* They don't come; but where that epoch is is still known. */
	tsi_jobs_left(&jobs, 8, 5100);
	tsi_jobs_expire(&jobs, 10101);
	assert_int_equal(tsi_jobs_kept(&jobs), TSI_NEVER);
	j.rank = 2;
	j.pid = 12;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 20000), 0);
	assert_true(tsi_jobs_had(&jobs, &j));
}

/* What one run of a job has left behind is nothing to the next. */
static void another_run_of_a_job_begins_anew(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);
	bool started;
	uint64_t start;

	(void)state;
	make_complete(100);
	j.batch_size = 10;
	tsi_jobs_joined(&jobs, &j, 7, 5000);
	tsi_jobs_left(&jobs, 7, 6000);
	tsi_jobs_expire(&jobs, 10101);
	assert_int_equal(ask('a', 2, 3, 112, 20000), TSOCK_EAGAIN);
	assert_int_equal(begin('a', 2, &started, &start), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 1, 3, 111, 20000), TSOCK_EAGAIN);
	assert_int_equal(ask('a', 0, 3, 110, 20000), 0);
}

/* The rank looked at the epoch's first samples, and left. */
static void what_a_rank_has_not_had_is_not_kept(void **state)
{
	struct tsi_msg_join j = join_of('a', 1, 3, 11);

	(void)state;
	make_complete(100);
	j.batch_size = 10;
	tsi_jobs_joined(&jobs, &j, 7, 5000);
	tsi_jobs_left(&jobs, 7, 5030);
	assert_false(tsi_jobs_had(&jobs, &j));
	tsi_jobs_expire(&jobs, 10101);
	assert_int_equal(tsi_jobs_kept(&jobs), TSI_NEVER);
	assert_int_equal(jobs.waiting, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_clear_table(all_ranks_have_to_ask),
		on_a_clear_table(a_rank_takes_the_place_of_a_dead_process),
		on_a_clear_table(a_rank_that_asks_no_longer_is_missing),
		on_a_clear_table(ranks_begin_where_the_first_one_does),
		on_a_clear_table(a_rank_that_was_quick_waits_for_the_others),
		on_a_clear_table(a_rank_that_could_not_be_told_joins_again),
		on_a_clear_table(a_rank_that_returns_fixes_the_start_for_good),
		on_a_clear_table(ranks_that_do_not_fit_together_are_refused),
		on_a_clear_table(what_nobody_comes_for_is_forgotten),
		on_a_clear_table(
			a_rank_that_is_held_up_begins_where_its_job_began),
		on_a_clear_table(
			a_job_is_forgotten_with_the_last_reader_that_had_begun),
		on_a_clear_table(jobs_that_have_begun_fill_no_table),
		on_a_clear_table(a_connection_may_go_on_in_another_process),
		on_a_clear_table(who_joins_no_job_makes_none),
		on_a_clear_table(all_ranks_of_a_job_may_return),
		on_a_clear_table(
			who_returns_to_a_job_that_is_complete_leaves_it_so),
		on_a_clear_table(an_impossible_rank_returns_to_no_job),
		on_a_clear_table(who_returns_to_a_full_table_waits_for_nobody),
		on_a_clear_table(
			a_job_that_was_let_go_holds_nobody_beside_one_that_waits),
		on_a_clear_table(who_has_not_begun_with_the_others_is_refused),
		on_a_clear_table(who_is_behind_begins_where_the_others_had),
		on_a_clear_table(who_goes_back_begins_where_it_likes),
		on_a_clear_table(
			an_epoch_that_a_rank_has_had_is_kept_for_the_others),
		on_a_clear_table(another_run_of_a_job_begins_anew),
		on_a_clear_table(what_a_rank_has_not_had_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
