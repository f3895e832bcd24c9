/* SPDX-License-Identifier: MIT */
/*
 * test_rank_readers.c - the ranks of a job read one stream: each its part of
 * the same epochs.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/server.h"
#include "test/lib/inproc.h"

#define RANKS 3
#define BATCH 8
#define EPOCHS 3
#define MOST 1000

struct rank {
	pthread_t thread;
	uint32_t rank;
	uint32_t flags, between;
	bool late;  /* it learns of its rank after it has connected */
	uint64_t n; /* samples of an epoch */
	uint64_t first_epoch;
	uint64_t samples[EPOCHS];
	uint8_t job;
	bool good;
};

/* How many ranks read a sample, by epoch and index. */
static _Atomic unsigned seen[EPOCHS][MOST];

static tsock *open_rank(const struct rank *k)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	uint8_t job[TSOCK_JOB];
	tsock *t;

	o.batch_size = BATCH;
	o.flags = k->flags;
	o.between = k->between;
	memset(job, k->job, sizeof(job));
	if (!k->late) {
		o.rank = k->rank;
		o.world = RANKS;
		memcpy(o.job, job, sizeof(job));
	}
	if (tsock_open("unit", &o, &t) ||
	    (k->late && tsock_set_rank(t, k->rank, RANKS, job))) {
		fprintf(stderr, "open: %s\n", tsock_errmsg());
		abort();
	}
	return t;
}

static int read_epoch(struct rank *k, tsock *t, unsigned e)
{
	tsock_batch *b;
	int err = tsock_begin_timed(t, 60000);

	if (err)
		return err;
	if (!e)
		k->first_epoch = tsock_epoch(t);
	while (!(err = tsock_next(t, 60000, &b))) {
		const int64_t *index = tsock_batch_data(b, 1);

		k->good = k->good && inproc_good(b, k->n) &&
			  tsock_batch_count(b) <= BATCH;
		for (uint64_t i = 0; i < tsock_batch_count(b); i++)
			atomic_fetch_add(&seen[e][index[i]], 1);
		k->samples[e] += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	return err == TSOCK_EEPOCH ? 0 : err;
}

static void *run_rank(void *arg)
{
	struct rank *k = arg;
	tsock *t = open_rank(k);

	k->good = true;
	for (unsigned e = 0; e < EPOCHS; e++) {
		if (!read_epoch(k, t, e))
			continue;
		fprintf(stderr, "rank %u: %s\n", k->rank, tsock_errmsg());
		k->good = false;
	}
	tsock_close(t);
	return NULL;
}

/* All ranks of a job, which are like one another, read EPOCHS epochs. */
static void run_job_like(struct rank *k, struct rank like)
{
	memset(seen, 0, sizeof(seen));
	for (uint32_t r = 0; r < RANKS; r++) {
		k[r] = like;
		k[r].rank = r;
		k[r].job = 1;
		assert_int_equal(
			pthread_create(&k[r].thread, NULL, run_rank, &k[r]), 0);
	}
	for (unsigned r = 0; r < RANKS; r++)
		pthread_join(k[r].thread, NULL);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_true(k[r].good);
		assert_int_equal(k[r].first_epoch, k[0].first_epoch);
	}
}

/* 500 = 3 * 167 - 1 */
static void check_equal_parts(const struct rank *k, uint64_t n)
{
	for (unsigned e = 0; e < EPOCHS; e++) {
		unsigned twice = 0;

		for (uint64_t i = 0; i < n; i++) {
			assert_in_range(seen[e][i], 1, 2);
			twice += seen[e][i] == 2;
		}
		assert_int_equal(twice, 1);
		for (unsigned r = 0; r < RANKS; r++)
			assert_int_equal(k[r].samples[e], 167);
	}
}

static void check_each_once(uint64_t n)
{
	for (unsigned e = 0; e < EPOCHS; e++)
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(seen[e][i], 1);
}

/* The ranks of a job, which are like this one, read a stream that is theirs. */
static void run_alone(struct rank *k, bool sequential, struct rank like)
{
	struct tsock_serve_opts o = inproc_opts(like.n);
	struct inproc st;

	o.sequential = sequential;
	inproc_serve(&st, &o);
	run_job_like(k, like);
	inproc_stop(&st);
}

static void training_ranks_have_equal_parts(void **state)
{
	struct rank k[RANKS];

	(void)state;
	run_alone(k, false, (struct rank){ .n = 500 });
	check_equal_parts(k, 500);
}

static void evaluating_ranks_read_each_sample_once(void **state)
{
	struct rank k[RANKS];

	(void)state;
	run_alone(k, true, (struct rank){ .n = 500 });
	check_each_once(500);
}

static void evaluating_ranks_have_equal_parts_if_they_ask(void **state)
{
	struct rank k[RANKS];

	(void)state;
	run_alone(k, true, (struct rank){ .n = 500, .flags = TSOCK_EVEN });
	check_equal_parts(k, 500);
}

static void a_rank_may_be_told_after_it_has_connected(void **state)
{
	struct rank k[RANKS];

	(void)state;
	run_alone(k, true, (struct rank){ .n = 500, .late = true });
	check_each_once(500);
}

static void told_wrongly(tsock *t, int err, const char *text)
{
	assert_int_equal(err, TSOCK_EARG);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
	/* 200 samples in batches of 8, for one rank still */
	assert_int_equal(tsock_epoch_batches(t), 25);
}

static void a_rank_is_not_told_in_an_epoch(void **state)
{
	const uint8_t job[TSOCK_JOB] = { 1 };
	struct inproc st;
	tsock *t;
	int err;

	(void)state;
	inproc_serve_n(&st, 200);
	t = inproc_join(8, 0);
	told_wrongly(t, tsock_set_rank(t, 2, 2, job), "rank 2 of world 2");
	assert_int_equal(tsock_begin(t), 0);
	told_wrongly(t, tsock_set_rank(t, 1, 2, job), "tsock_leave() first");
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 1, 2, job), 0);
	assert_int_equal(tsock_epoch_batches(t), 13);
	/* A question is under way: the rank that it is about stays. */
	err = tsock_begin_timed(t, 0);
	assert_true(!err || err == TSOCK_EAGAIN);
	assert_int_equal(tsock_set_rank(t, 0, 0, NULL), TSOCK_EARG);
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 0, 0, NULL), 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_close(t);
	inproc_stop(&st);
}

static void ranks_whose_batches_no_epoch_has_are_refused(void **state)
{
	const uint8_t job[TSOCK_JOB] = { 1 };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 200);
	o.batch_size = 64;
	o.flags = TSOCK_DROP_LAST;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	assert_int_equal(tsock_set_rank(t, 0, 4, job), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "64 for each rank"));
	assert_int_equal(tsock_epoch_batches(t), 3);
	assert_int_equal(tsock_set_rank(t, 0, 3, job), 0);
	assert_int_equal(tsock_epoch_batches(t), 1);
	tsock_close(t);
	inproc_stop(&st);
}

/* Others read the stream, and are somewhere in an epoch. */
static void ranks_begin_together_beside_other_readers(void **state)
{
	const uint64_t n = 500;
	struct rank k[RANKS];
	struct inproc st;
	tsock *other;

	(void)state;
	inproc_serve_n(&st, n);
	other = inproc_join(16, 0);
	assert_int_equal(tsock_begin(other), 0);
	for (unsigned i = 0; i < 24; i++)
		tsock_batch_release(inproc_next(other));
	tsock_leave(other);
	run_job_like(k, (struct rank){ .n = n });
	tsock_close(other);
	inproc_stop(&st);
}

/* Another reader is in the next epoch when the last ranks come. */
static void late_ranks_begin_where_the_first_one_did(void **state)
{
	const uint64_t n = 400;
	struct inproc st;
	tsock_batch *b;
	tsock *t[RANKS], *other;

	(void)state;
	inproc_serve_n(&st, n);
	other = inproc_join(16, 0);
	assert_int_equal(tsock_begin(other), 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct rank k = { .rank = r, .job = 3 };

		t[r] = open_rank(&k);
	}
	assert_int_equal(tsock_begin_timed(t[0], 60000), 0);
	while (!tsock_next(other, 60000, &b))
		tsock_batch_release(b);
	assert_int_equal(tsock_begin(other), 0);
	tsock_batch_release(inproc_next(other));
	for (unsigned r = 0; r < RANKS; r++) {
		if (r)
			assert_int_equal(tsock_begin_timed(t[r], 60000), 0);
		b = inproc_next(t[r]);
		assert_int_equal(tsock_batch_seq(b), r * BATCH);
		tsock_batch_release(b);
	}
	for (unsigned r = 0; r < RANKS; r++)
		tsock_close(t[r]);
	tsock_close(other);
	inproc_stop(&st);
}

/* The time in which all ranks have to begin is over. */
static void let_jobs_go(struct inproc *st)
{
	int64_t now = tsi_now_ms();

	tsi_sync_lock(&st->s->sync);
	/* A job's time may begin when that is first looked at. */
	tsi_jobs_expire(&st->s->readers.jobs, now);
	tsi_jobs_expire(&st->s->readers.jobs, now + 60001);
	tsi_sync_unlock(&st->s->sync);
}

static void ask_as_the_last_rank(struct inproc *st, uint8_t job)
{
	struct tsi_msg_join j = { .pid = (uint32_t)getpid(),
				  .nonce = { 1 },
				  .rank = RANKS - 1,
				  .world = RANKS,
				  .batch_size = BATCH };

	memset(j.job, job, sizeof(j.job));
	tsi_sync_lock(&st->s->sync);
	assert_int_equal(tsi_jobs_ask(&st->s->readers.jobs, &j, tsi_now_ms()),
			 0);
	tsi_sync_unlock(&st->s->sync);
}

static void read_beyond(tsock *t, uint64_t seq)
{
	uint64_t at = 0;
	tsock_batch *b;

	while (at <= seq) {
		int err = tsock_next(t, 60000, &b);

		if (err) {
			assert_int_equal(err, TSOCK_EEPOCH);
			assert_int_equal(tsock_begin(t), 0);
			continue;
		}
		at = tsock_batch_seq(b);
		tsock_batch_release(b);
	}
}

static void a_rank_that_comes_too_late_for_its_start_is_refused(void **state)
{
	struct inproc st;
	tsock *t[RANKS];

	(void)state;
	inproc_serve_n(&st, 400);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct rank k = { .rank = r, .job = 4 };

		t[r] = open_rank(&k);
	}
	for (unsigned r = 0; r < 2; r++)
		assert_int_equal(tsock_begin_timed(t[r], 60000), 0);
	tsock_leave(t[1]);
	/* The last rank asks, and is held up. */
	ask_as_the_last_rank(&st, 4);
	let_jobs_go(&st);
	/* The ring has 512: sample 0 is written over. */
	read_beyond(t[0], 512);
	assert_int_equal(tsock_begin_timed(t[2], 60000), TSOCK_EREFUSED);
	assert_non_null(strstr(
		tsock_errmsg(),
		"rank 2 can't begin at sample 0, where other ranks of its job "
		"have begun; start all of them again: the stream no longer "
		"holds sample 0 for this rank"));
	for (unsigned r = 0; r < RANKS; r++)
		tsock_close(t[r]);
	inproc_stop(&st);
}

/* As many batches as there are without other ranks; where the next begins. */
static uint64_t read_all(tsock *t)
{
	uint64_t at = 0;
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, 300, &b)) != TSOCK_EAGAIN) {
		if (err) {
			assert_int_equal(err, TSOCK_EEPOCH);
			assert_int_equal(tsock_begin(t), 0);
			continue;
		}
		at = tsock_batch_seq(b) + BATCH;
		tsock_batch_release(b);
	}
	return at;
}

static void the_first_rank_reads_at_once_and_then_waits(void **state)
{
	struct rank k = { .rank = 1, .job = 2 };
	tsock *t[RANKS];
	struct inproc st;
	char text[512];
	tsock_batch *b;

	(void)state;
	inproc_serve_n(&st, 400);
	t[1] = open_rank(&k);
	assert_int_equal(tsock_begin_timed(t[1], 60000), 0);
	/* The ring has 512 samples, from the start on. */
	assert_in_range(read_all(t[1]), 401, 512);
	assert_int_equal(tsock_waits_for(t[1], 60000, text, sizeof(text)), 0);
	assert_string_equal(
		text, "ranks 0, 2 of 3 of its job, which have not begun epoch "
		      "0 (none is connected); a loader that reads everything "
		      "alone: rank=0, world_size=1");
	for (unsigned r = 0; r < RANKS; r += 2) {
		k.rank = r;
		t[r] = open_rank(&k);
		assert_int_equal(tsock_begin_timed(t[r], 60000), 0);
		b = inproc_next(t[r]);
		assert_int_equal(tsock_batch_seq(b), r * BATCH);
		tsock_batch_release(b);
	}
	for (unsigned r = 0; r < RANKS; r++)
		tsock_close(t[r]);
	inproc_stop(&st);
}

static void serve_two_samples(struct inproc *st)
{
	struct tsock_serve_opts o = inproc_opts(2);

	o.sequential = true;
	o.epochs = EPOCHS;
	inproc_serve(st, &o);
}

static void read_all_epochs(uint32_t rank)
{
	struct rank k = { .rank = rank,
			  .job = 6,
			  .n = 2,
			  .good = true,
			  .between = TSOCK_BETWEEN_HOLD };
	tsock *t = open_rank(&k);

	for (unsigned e = 0; e < EPOCHS; e++)
		assert_int_equal(read_epoch(&k, t, e), 0);
	assert_true(k.good);
	assert_int_equal(k.samples[0], rank < 2);
	tsock_close(t);
}

static bool is_over(struct inproc *st)
{
	bool over;

	tsi_sync_lock(&st->s->sync);
	over = tsi_readers_over(&st->s->readers);
	tsi_sync_unlock(&st->s->sync);
	return over;
}

static void stream_ends(struct inproc *st)
{
	int64_t until = tsi_now_ms() + 60000;

	while (!is_over(st)) {
		if (tsi_now_ms() > until)
			fail_msg("the stream has not ended after a minute");
		sched_yield();
	}
	inproc_stop(st);
}

/* The last of three ranks has none of two samples; it comes last. */
static void a_stream_ends_with_a_rank_that_has_no_sample(void **state)
{
	struct inproc st;

	(void)state;
	serve_two_samples(&st);
	for (uint32_t r = 0; r < RANKS; r++)
		read_all_epochs(r);
	stream_ends(&st);
}

static void a_stream_ends_without_ranks_that_never_come(void **state)
{
	struct inproc st;

	(void)state;
	serve_two_samples(&st);
	read_all_epochs(2);
	read_all_epochs(1);
	assert_false(is_over(&st));
	let_jobs_go(&st);
	stream_ends(&st);
}

static void refused(struct tsock_opts *o, const char *text)
{
	tsock *t;

	o->batch_size = 4;
	assert_int_equal(tsock_open("unit", o, &t), TSOCK_EARG);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

static void ranks_that_make_no_sense_are_refused(void **state)
{
	struct tsock_opts a = TSOCK_OPTS_INIT, b = TSOCK_OPTS_INIT;

	(void)state;
	a.rank = 2;
	a.world = 2;
	refused(&a, "rank 2 of world 2");
	b.world = 2;
	b.join = TSOCK_JOIN_NOW;
	refused(&b, "begin together");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_ranks_have_equal_parts),
		cmocka_unit_test(evaluating_ranks_read_each_sample_once),
		cmocka_unit_test(evaluating_ranks_have_equal_parts_if_they_ask),
		cmocka_unit_test(a_rank_may_be_told_after_it_has_connected),
		cmocka_unit_test(a_rank_is_not_told_in_an_epoch),
		cmocka_unit_test(ranks_whose_batches_no_epoch_has_are_refused),
		cmocka_unit_test(ranks_begin_together_beside_other_readers),
		cmocka_unit_test(late_ranks_begin_where_the_first_one_did),
		cmocka_unit_test(
			a_rank_that_comes_too_late_for_its_start_is_refused),
		cmocka_unit_test(the_first_rank_reads_at_once_and_then_waits),
		cmocka_unit_test(a_stream_ends_with_a_rank_that_has_no_sample),
		cmocka_unit_test(a_stream_ends_without_ranks_that_never_come),
		cmocka_unit_test(ranks_that_make_no_sense_are_refused),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
