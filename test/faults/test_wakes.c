/* SPDX-License-Identifier: MIT */
/*
 * test_wakes.c - workers that sleep because a ring is full: as many are woken
 * as there are samples for, however many sleep, and none sleeps on while there
 * are samples for it.
 *
 * Once readers have joined no time wakes anybody here: the server's waits have
 * no end of their own.
 */
#include "serve/server.h"

#include <sched.h>
#include <unistd.h>

#include "test/faults/inject.h"
#include "test/lib/inproc.h"

#define MOST 32
#define RING 512 /* as inproc_opts() has it */
#define EPOCH 2000
#define WINDOW 256
#define BATCH 16
#define BATCHES 64
#define HANGS_S 120

static struct pool {
	tsock_server *s;
	unsigned n;
	pthread_t worker[MOST];
	_Atomic unsigned claimed, ended;
	_Atomic unsigned company; /* so many samples are claimed before one of
				   * them is written */
} pool;

static void *work(void *arg)
{
	uint64_t first;

	(void)arg;
	while (tsock_serve_claim(pool.s, 1, -1, &first) == 1) {
		atomic_fetch_add(&pool.claimed, 1);
		while (atomic_load(&pool.claimed) < atomic_load(&pool.company))
			sched_yield();
		tsock_serve_commit(pool.s, first, 1);
	}
	atomic_fetch_add(&pool.ended, 1);
	return NULL;
}

static uint64_t produced(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	assert_int_equal(tsock_serve_stats(pool.s, &st), 0);
	return st.produced;
}

static uint64_t woken(void)
{
	uint64_t n;

	tsi_sync_lock(&pool.s->sync);
	n = pool.s->sync.woken;
	tsi_sync_unlock(&pool.s->sync);
	return n;
}

static void wait_until_all_sleep(void)
{
	unsigned n;

	do {
		sched_yield();
		tsi_sync_lock(&pool.s->sync);
		n = tsi_sync_sleepers(&pool.s->sync);
		tsi_sync_unlock(&pool.s->sync);
	} while (n < pool.n);
}

static void wait_until_made(uint64_t n)
{
	while (produced() < n)
		sched_yield();
	wait_until_all_sleep();
}

/* A stream, and workers of which each sleeps. */
static void begin(unsigned workers, unsigned window)
{
	struct tsock_serve_opts o = inproc_opts(EPOCH);

	inproc_open_folder();
	o.join_window = window;
	assert_int_equal(tsock_serve_open("unit", &o, &pool.s), 0);
	pool.n = workers;
	atomic_store(&pool.claimed, 0);
	atomic_store(&pool.ended, 0);
	atomic_store(&pool.company, 0);
	for (unsigned i = 0; i < workers; i++)
		assert_int_equal(
			pthread_create(&pool.worker[i], NULL, work, NULL), 0);
	wait_until_all_sleep();
}

/* The control thread is in a wait that no time ends. */
static void stop_timers(void)
{
	inject_stop_timers();
	while (!inject_untimed_polls())
		sched_yield();
}

/* A consumer, for which the ring is filled. */
static tsock *join(uint32_t batch)
{
	tsock *t = inproc_join(batch, 0);

	assert_int_equal(tsock_begin(t), 0);
	wait_until_made(RING);
	stop_timers();
	return t;
}

static void read_batches(tsock *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		tsock_batch_release(inproc_next(t));
}

static void stop(void)
{
	inject_start_timers();
	tsock_serve_stop(pool.s);
	for (unsigned i = 0; i < pool.n; i++)
		pthread_join(pool.worker[i], NULL);
	tsock_serve_close(pool.s);
	inproc_close_folder();
}

/* A reader gives back a batch at a time. */
static uint64_t woken_for_batches(unsigned workers)
{
	uint64_t n;
	tsock *t;

	begin(workers, 1);
	t = join(BATCH);
	n = woken();
	for (unsigned i = 1; i <= BATCHES; i++) {
		read_batches(t, 1);
		wait_until_made(RING + i * BATCH);
	}
	n = woken() - n;
	tsock_close(t);
	stop();
	return n;
}

/* At most one for each sample, and for each batch one that comes too late. */
static void more_workers_are_not_woken_more_often(void **state)
{
	static const unsigned workers[] = { 1, 8, MOST };

	(void)state;
	for (unsigned i = 0; i < sizeof(workers) / sizeof(workers[0]); i++) {
		uint64_t n = woken_for_batches(workers[i]);

		print_message("%u workers, %u batches: %u wake-ups\n",
			      workers[i], BATCHES, (unsigned)n);
		assert_in_range(n, 1, BATCHES * (BATCH + 1));
	}
}

/* None of a batch's samples is made until all of them are begun. */
static void workers_that_take_long_are_joined_by_others(void **state)
{
	tsock *t;

	(void)state;
	begin(MOST, 1);
	t = join(BATCH);
	atomic_store(&pool.claimed, 0);
	atomic_store(&pool.company, BATCH);
	read_batches(t, 1);
	wait_until_made(RING + BATCH);
	tsock_close(t);
	stop();
}

/* The first one isn't back to say that it could do with more. */
static void who_sleeps_makes_the_next_sample_while_others_work(void **state)
{
	tsock *t;

	(void)state;
	begin(2, 1);
	t = join(1);
	atomic_store(&pool.claimed, 0);
	atomic_store(&pool.company, 2);
	read_batches(t, 1);
	while (!atomic_load(&pool.claimed))
		sched_yield();
	read_batches(t, 1);
	wait_until_made(RING + 2);
	tsock_close(t);
	stop();
}

/*
 * What is awaited is that a reader comes to the end of the join window; it may
 * be one who joined when all workers slept.
 */
static void what_workers_wait_for_is_stated_anew(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *first, *second;

	(void)state;
	begin(2, WINDOW);
	first = join(BATCH);
	read_batches(first, WINDOW / BATCH - 1);
	o.batch_size = BATCH;
	o.dtype = TSOCK_F32;
	inject_start_timers();
	assert_int_equal(tsock_open("unit", &o, &second), 0);
	assert_int_equal(tsock_begin(second), 0);
	stop_timers();
	assert_int_equal(produced(), RING);
	read_batches(second, WINDOW / BATCH + 1);
	wait_until_made(RING + WINDOW - BATCH);
	tsock_close(first);
	tsock_close(second);
	stop();
}

static void wait_until_all_have_ended(void)
{
	while (atomic_load(&pool.ended) < pool.n)
		sched_yield();
}

static void all_hear_that_there_is_nothing_left_to_make(void **state)
{
	tsock *t;

	(void)state;
	begin(MOST, 1);
	t = join(BATCH);
	assert_int_equal(tsock_serve_end_after(pool.s, 0), 0);
	read_batches(t, EPOCH / BATCH);
	wait_until_all_have_ended();
	tsock_close(t);
	stop();
}

static void all_hear_that_the_stream_has_failed(void **state)
{
	(void)state;
	begin(MOST, 1);
	stop_timers();
	tsock_serve_fail(pool.s, "no disk");
	wait_until_all_have_ended();
	stop();
}

static void all_hear_that_the_server_is_closing(void **state)
{
	(void)state;
	begin(MOST, 1);
	stop_timers();
	tsock_serve_stop(pool.s);
	wait_until_all_have_ended();
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_workers_are_not_woken_more_often),
		cmocka_unit_test(workers_that_take_long_are_joined_by_others),
		cmocka_unit_test(
			who_sleeps_makes_the_next_sample_while_others_work),
		cmocka_unit_test(what_workers_wait_for_is_stated_anew),
		cmocka_unit_test(all_hear_that_there_is_nothing_left_to_make),
		cmocka_unit_test(all_hear_that_the_stream_has_failed),
		cmocka_unit_test(all_hear_that_the_server_is_closing),
	};

	if (!inject_share_timers())
		return 1;
	/* A thread that is never woken ends the test. */
	alarm(HANGS_S);
	return cmocka_run_group_tests_name("wakes", tests, NULL, NULL);
}
