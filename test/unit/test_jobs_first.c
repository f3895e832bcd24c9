/* SPDX-License-Identifier: MIT */
/*
 * test_jobs_first.c - the first rank that asks begins, and the others join it:
 * the producer's table of jobs.
 */
#include "test/lib/jobs_fixture.h"

static struct tsi_msg_join at_once(uint32_t rank, uint64_t after, bool leaves)
{
	struct tsi_msg_join j = join_of('a', rank, 2, (uint32_t)getpid());

	j.nonce[5] = (uint8_t)rank;
	j.returns = TSI_RETURNS_NOT;
	j.after = after;
	j.between = leaves ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
	return j;
}

/* The rank asks and joins; returns what it was told of the others' start. */
static uint64_t begins(struct tsi_msg_join j, unsigned reader, uint64_t where,
		       int64_t now)
{
	uint64_t start = 0;
	bool started;

	assert_int_equal(tsi_jobs_ask(&jobs, &j, now), 0);
	assert_int_equal(tsi_jobs_begin(&jobs, &j, &started, &start), 0);
	if (!started)
		start = where;
	tsi_jobs_joined(&jobs, &j, reader, start);
	tsi_jobs_settle(&jobs, reader);
	return started ? start : TSI_NEVER;
}

static void the_first_rank_that_asks_begins_at_once(void **state)
{
	(void)state;
	assert_int_equal(begins(at_once(1, 0, true), 7, 5000, 100), TSI_NEVER);
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	/* For as long as it reads the other one is waited for. */
	tsi_jobs_expire(&jobs, 500000);
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(begins(at_once(0, 0, true), 8, 0, 500000), 5000);
	assert_false(tsi_jobs_wait(&jobs, 7));
	assert_int_equal(tsi_jobs_kept(&jobs), TSI_NEVER);
	tsi_jobs_left(&jobs, 7, 6000);
	tsi_jobs_left(&jobs, 8, 6000);
	assert_false(jobs.job[0].used);
}

/* The rank takes a batch, and begins again with the others. */
static void a_rank_may_look_and_begin_again(void **state)
{
	struct tsi_msg_join j = at_once(0, 5000, false);

	(void)state;
	begins(at_once(0, 0, false), 7, 5000, 100);
	j.own = TSI_REWOUND;
	assert_int_equal(begins(j, 8, 0, 100), 5000);
	tsi_jobs_left(&jobs, 7, 5020);
	assert_true(tsi_jobs_wait(&jobs, 8));
	assert_int_equal(begins(at_once(1, 0, false), 9, 0, 100), 5000);
	assert_int_equal(jobs.waiting, 0);
	/* Also when the other one has begun, and reads on: it chooses. */
	assert_int_equal(begins(j, 10, 5000, 100), TSI_NEVER);
	assert_int_equal(jobs.waiting, 0);
	/* Or an epoch to which the other one comes by itself. */
	assert_int_equal(begins(j, 11, 6000, 100), TSI_NEVER);
	assert_int_equal(jobs.waiting, 0);
	assert_int_equal(jobs.job[0].start, 6000);
}

/* The rank has looked, and asks again before the other rank comes. */
static void a_rank_that_begins_again_is_waited_for(void **state)
{
	struct tsi_msg_join j = at_once(0, 5000, false);

	(void)state;
	begins(at_once(0, 0, false), 7, 5000, 100);
	j.own = TSI_REWOUND;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 100), 0);
	assert_int_equal(begins(at_once(1, 0, false), 8, 0, 100), 5000);
	assert_int_equal(jobs.waiting, 1);
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	assert_int_equal(begins(j, 9, 0, 100), 5000);
	assert_int_equal(jobs.waiting, 0);
}

/* Its claim was made, and it never heard of that. */
static void a_rank_that_has_read_nothing_begins_there_again(void **state)
{
	(void)state;
	begins(at_once(0, 0, true), 7, 5000, 100);
	assert_int_equal(begins(at_once(1, 0, true), 8, 0, 100), 5000);
	tsi_jobs_left(&jobs, 8, 5000);
	assert_int_equal(begins(at_once(1, 0, true), 8, 0, 100), 5000);
}

/* The others have had that epoch, and begun the next one. */
static void who_is_behind_is_not_taken_along(void **state)
{
	struct tsi_msg_join j = at_once(1, 5000, true);

	(void)state;
	begins(at_once(0, 6000, true), 7, 6000, 100);
	assert_int_equal(begins(j, 8, 0, 100), 5000);
	/* That is no begin of the epoch at 6000. */
	assert_true(tsi_jobs_wait(&jobs, 7));
	assert_false(tsi_jobs_wait(&jobs, 8));
	j.after = 6000;
	assert_int_equal(begins(j, 9, 0, 100), 6000);
}

/* One that reads alone, as it validates on the first rank. */
static void a_rank_goes_on_without_one_that_never_comes(void **state)
{
	struct tsi_msg_join j = at_once(0, 6000, true);
	struct tsi_job_missing m;

	(void)state;
	begins(at_once(0, 0, true), 7, 5000, 100);
	tsi_jobs_left(&jobs, 7, 6000);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 200), TSOCK_EAGAIN);
	assert_true(tsi_jobs_missing(&jobs, -1, j.nonce, &m));
	assert_int_equal(m.count, 1);
	assert_int_equal(m.rank[0], 1);
	assert_int_equal(m.world, 2);
	assert_true(m.begun);
	assert_int_equal(m.epoch, 5);
	assert_int_equal(m.pid, 0);
	tsi_jobs_expire(&jobs, 10100);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 10100), TSOCK_EAGAIN);
	tsi_jobs_expire(&jobs, 10300);
	assert_int_equal(begins(j, 8, 6000, 10300), TSI_NEVER);
	/* The rank isn't waited for again, and can't come any more. */
	assert_int_equal(jobs.waiting, 0);
	j = at_once(1, 0, true);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 10400), TSOCK_EREFUSED);
}

/* An epoch that one has had is kept for the others for a minute. */
static void who_comes_late_to_a_job_that_has_left_is_waited_for(void **state)
{
	(void)state;
	begins(at_once(0, 0, true), 7, 5000, 100);
	tsi_jobs_left(&jobs, 7, 6000);
	tsi_jobs_expire(&jobs, 200);
	tsi_jobs_expire(&jobs, 60100);
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	tsi_jobs_expire(&jobs, 60300);
	assert_int_equal(tsi_jobs_kept(&jobs), TSI_NEVER);
	assert_int_equal(begins(at_once(1, 0, true), 8, 0, 60300), 5000);
}

/* The only rank that is known reads up to there; its process ends. */
static pid_t begins_and_leaves(uint64_t tail)
{
	struct tsi_msg_join j = at_once(0, 0, true);
	pid_t pid = process();

	j.pid = (uint32_t)pid;
	begins(j, 7, 5000, 100);
	tsi_jobs_left(&jobs, 7, tail);
	tsi_jobs_expire(&jobs, 200);
	assert_int_equal(jobs.waiting, 1);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Nobody comes any more. */
static void a_job_whose_processes_have_ended_is_not_waited_for(void **state)
{
	(void)state;
	end_process(begins_and_leaves(5500));
	tsi_jobs_expire(&jobs, 300);
	assert_int_equal(jobs.waiting, 0);
}

/* The rank has had all samples, in less time than the other takes to begin. */
static void a_rank_that_is_through_is_followed_by_the_others(void **state)
{
	(void)state;
	end_process(begins_and_leaves(6000));
	tsi_jobs_expire(&jobs, 10100);
	assert_int_equal(tsi_jobs_kept(&jobs), 5000);
	assert_int_equal(begins(at_once(1, 0, true), 8, 0, 10150), 5000);
	assert_int_equal(jobs.waiting, 0);
	/* Ten seconds later the other one isn't waited for any more. */
	forget_all(NULL);
	clear(NULL);
	end_process(begins_and_leaves(6000));
	tsi_jobs_expire(&jobs, 10300);
	assert_int_equal(tsi_jobs_kept(&jobs), TSI_NEVER);
}

/* The other one has asked, and ended, too. */
static void ranks_that_have_all_ended_are_not_waited_for(void **state)
{
	struct tsi_msg_join j = at_once(1, 0, true);
	pid_t pid = begins_and_leaves(6000);

	(void)state;
	j.pid = (uint32_t)process();
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 200), 0);
	end_process(pid);
	tsi_jobs_expire(&jobs, 300);
	assert_int_equal(jobs.waiting, 1);
	end_process((pid_t)j.pid);
	tsi_jobs_expire(&jobs, 300);
	assert_int_equal(jobs.waiting, 0);
}

/* All ranks have a state to resume from; the others have still to leave. */
static void ranks_that_go_elsewhere_do_so_together(void **state)
{
	struct tsi_msg_join j = at_once(0, 6000, false);

	(void)state;
	begins(at_once(0, 0, false), 7, 5000, 100);
	begins(at_once(1, 0, false), 8, 5000, 100);
	assert_int_equal(jobs.waiting, 0);
	tsi_jobs_left(&jobs, 7, 5500);
	j.position = 2300;
	j.epoch_end = 3000;
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 100), TSOCK_EAGAIN);
	assert_false(tsi_jobs_wait(&jobs, 8));
	tsi_jobs_left(&jobs, 8, 5500);
	j = at_once(1, 6000, false);
	j.position = 2300;
	j.epoch_end = 3000;
	assert_int_equal(begins(j, 8, 2300, 100), TSI_NEVER);
	j = at_once(0, 6000, false);
	j.position = 2300;
	j.epoch_end = 3000;
	assert_int_equal(begins(j, 7, 0, 100), 2300);
	assert_int_equal(jobs.waiting, 0);
}

/* Its JOIN may come before the LEAVE of the reader that it was. */
static void a_rank_that_asks_anew_does_not_read_on(void **state)
{
	struct tsi_msg_join j[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begins(at_once(i, 0, false), 7 + i, 5000, 100);
		j[i] = at_once(i, 6000, false);
		j[i].nonce[6] = 1;
		j[i].position = 5500;
		j[i].epoch_end = 6000;
	}
	assert_int_equal(tsi_jobs_ask(&jobs, &j[1], 100), TSOCK_EAGAIN);
	/* Reader 8 is rank 1 still, and has not begun that. */
	assert_int_equal(begins(j[0], 9, 5500, 100), TSI_NEVER);
	assert_int_equal(tsi_jobs_kept(&jobs), 5500);
	tsi_jobs_left(&jobs, 8, 5400);
	assert_true(tsi_jobs_wait(&jobs, 9));
	assert_int_equal(begins(j[1], 8, 0, 100), 5500);
	assert_int_equal(jobs.waiting, 0);
}

/* For a minute: some of them may know how far they have come. */
static void after_a_restart_new_ranks_wait_for_each_other(void **state)
{
	struct tsi_msg_join j = at_once(0, 0, true);

	(void)state;
	tsi_jobs_restart(&jobs, 100);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 200), TSOCK_EAGAIN);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 60100), TSOCK_EAGAIN);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 60300), 0);
	j = at_once(0, 0, true);
	memset(j.job, 'b', TSOCK_JOB);
	assert_int_equal(tsi_jobs_ask(&jobs, &j, 70000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_clear_table(the_first_rank_that_asks_begins_at_once),
		on_a_clear_table(a_rank_may_look_and_begin_again),
		on_a_clear_table(a_rank_that_begins_again_is_waited_for),
		on_a_clear_table(
			a_rank_that_has_read_nothing_begins_there_again),
		on_a_clear_table(who_is_behind_is_not_taken_along),
		on_a_clear_table(a_rank_goes_on_without_one_that_never_comes),
		on_a_clear_table(
			who_comes_late_to_a_job_that_has_left_is_waited_for),
		on_a_clear_table(
			a_job_whose_processes_have_ended_is_not_waited_for),
		on_a_clear_table(
			a_rank_that_is_through_is_followed_by_the_others),
		on_a_clear_table(ranks_that_have_all_ended_are_not_waited_for),
		on_a_clear_table(ranks_that_go_elsewhere_do_so_together),
		on_a_clear_table(a_rank_that_asks_anew_does_not_read_on),
		on_a_clear_table(after_a_restart_new_ranks_wait_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
