/* SPDX-License-Identifier: MIT */
/*
 * test_sync.c - a stage that sleeps for a head of the base ring is told of that
 * one, and of none before it; of the workers that sleep as many are woken as
 * there are samples for.
 */
#include "serve/sync.h"

#include <pthread.h>
#include <sched.h>

#include "test/lib/production_fixture.h"

static unsigned sleeps; /* that stages began; of the lock */

static void write_samples(unsigned n)
{
	uint64_t first;

	assert_int_equal(tsi_production_claim(&production_p, n, &first), n);
	tsi_production_commit(&production_p, first, n);
}

/* A stage that sleeps until a head is there. */
static void *sleep_for(void *arg)
{
	uint64_t at = *(const uint64_t *)arg;

	tsi_sync_lock(&production_sync);
	while (tsi_membership_head(&membership_m, 0) < at) {
		sleeps++;
		tsi_sync_wait_head(&production_sync, at, INT64_MAX);
	}
	tsi_sync_unlock(&production_sync);
	return NULL;
}

static unsigned slept(void)
{
	unsigned n;

	tsi_sync_lock(&production_sync);
	n = sleeps;
	tsi_sync_unlock(&production_sync);
	return n;
}

/* The least head that a stage sleeps for. */
static uint64_t slept_for(void)
{
	uint64_t at;

	tsi_sync_lock(&production_sync);
	at = production_sync.staged_at;
	tsi_sync_unlock(&production_sync);
	return at;
}

static pthread_t start(const uint64_t *at)
{
	unsigned before = slept();
	pthread_t t;

	assert_int_equal(
		pthread_create(&t, NULL, sleep_for, (void *)(uintptr_t)at), 0);
	while (slept() == before)
		sched_yield();
	return t;
}

static void a_stage_is_told_of_the_head_that_it_sleeps_for(void **state)
{
	static const uint64_t five = 5;
	pthread_t t;

	(void)state;
	production_begin_with_reader();
	t = start(&five);
	write_samples(3);
	write_samples(1);
	/* A thread that wakes stages forgets what they slept for. */
	assert_int_equal(slept_for(), five);
	write_samples(1);
	pthread_join(t, NULL);
	assert_int_equal(slept_for(), TSI_NEVER);
	production_end();
}

static void the_stage_that_wants_the_least_is_told_first(void **state)
{
	static const uint64_t five = 5, nine = 9;
	pthread_t late, early;

	(void)state;
	production_begin_with_reader();
	early = start(&five);
	late = start(&nine);
	assert_int_equal(slept_for(), five);
	write_samples(5);
	pthread_join(early, NULL);
	/* The other one was woken, too, and sleeps on. */
	while (slept_for() != nine)
		sched_yield();
	write_samples(3);
	assert_int_equal(slept_for(), nine);
	write_samples(1);
	pthread_join(late, NULL);
	production_end();
}

static void what_is_committed_with_the_lock_held_counts_too(void **state)
{
	static const uint64_t five = 5;
	uint64_t first;
	pthread_t t;

	(void)state;
	production_begin_with_reader();
	assert_int_equal(tsi_production_claim(&production_p, 5, &first), 5);
	t = start(&five);
	tsi_sync_lock(&production_sync);
	tsi_production_commit(&production_p, 0, 4);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(slept_for(), five);
	tsi_sync_lock(&production_sync);
	tsi_production_commit(&production_p, 4, 1);
	tsi_sync_unlock(&production_sync);
	pthread_join(t, NULL);
	production_end();
}

/* Its samples are there before anybody could tell it. */
static void who_would_sleep_for_what_is_published_at_once_does_not(void **state)
{
	uint64_t first;

	(void)state;
	production_begin_with_reader();
	assert_int_equal(tsi_production_claim(&production_p, 2, &first), 2);
	tsi_sync_lock(&production_sync);
	tsi_production_commit(&production_p, 0, 2);
	tsi_sync_wait_head(&production_sync, 2, INT64_MAX);
	assert_int_equal(tsi_membership_head(&membership_m, 0), 2);
	tsi_sync_unlock(&production_sync);
	production_end();
}

static void a_stage_that_no_head_helps_is_not_told(void **state)
{
	(void)state;
	production_begin_with_reader();
	tsi_sync_lock(&production_sync);
	tsi_sync_wait_head(&production_sync, TSI_NEVER, 1);
	assert_false(tsi_sync_stage_wants(&production_sync, TSI_NEVER - 1));
	assert_false(tsi_sync_stage_wants(&production_sync, TSI_NEVER));
	/* Nor is one that waits for other things than heads. */
	tsi_sync_wait_staged(&production_sync, 1);
	assert_false(tsi_sync_stage_wants(&production_sync, 0));
	/* One that any head helps is. */
	tsi_sync_wait_head(&production_sync, 0, 1);
	assert_true(tsi_sync_stage_wants(&production_sync, 0));
	tsi_sync_unlock(&production_sync);
	production_end();
}

/* ---- workers ---- */

#define WORKERS 32

static void *sleep_once(void *arg)
{
	(void)arg;
	tsi_sync_lock(&production_sync);
	tsi_sync_wait_room(&production_sync, INT64_MAX);
	tsi_sync_unlock(&production_sync);
	return NULL;
}

static void wait_for_sleepers(unsigned n)
{
	unsigned now;

	do {
		sched_yield();
		tsi_sync_lock(&production_sync);
		now = tsi_sync_sleepers(&production_sync);
		tsi_sync_unlock(&production_sync);
	} while (now != n);
}

static void start_sleepers(pthread_t *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&t[i], NULL, sleep_once, NULL),
				 0);
	wait_for_sleepers(n);
}

static void wake(uint64_t samples, unsigned n, unsigned expected)
{
	tsi_sync_wake_workers(&production_sync, samples);
	assert_int_equal(n - tsi_sync_sleepers(&production_sync), expected);
}

/* So many of n sleeping workers are woken for so many samples: at once, and by
 * whoever looks again before they do. */
static void wakes(unsigned n, uint64_t samples, unsigned expected,
		  unsigned again)
{
	pthread_t t[WORKERS];

	production_begin_with_reader();
	start_sleepers(t, n);
	tsi_sync_lock(&production_sync);
	wake(samples, n, expected);
	wake(samples, n, again);
	assert_int_equal(production_sync.woken, again);
	tsi_sync_wake_all_workers(&production_sync);
	assert_int_equal(tsi_sync_sleepers(&production_sync), 0);
	tsi_sync_unlock(&production_sync);
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(production_sync.coming, 0);
	production_end();
}

static void no_more_workers_are_woken_than_there_are_samples_for(void **state)
{
	(void)state;
	wakes(1, 0, 1, 1);
	wakes(1, 1000, 1, 1);
	wakes(8, 0, 1, 1);
	wakes(8, 16, 2, 2);
	wakes(WORKERS, 0, 1, 1);
	wakes(WORKERS, 1, 1, 1);
	wakes(WORKERS, 16, 2, 2);
	wakes(WORKERS, 24, 2, 3);
}

/* The others are theirs to wake. */
static void two_workers_are_woken_at_a_time(void **state)
{
	(void)state;
	wakes(WORKERS, 64, 2, 4);
	wakes(WORKERS, 100000, 2, 4);
}

static void a_worker_that_waits_no_longer_is_woken_by_nobody(void **state)
{
	pthread_t t[2];

	(void)state;
	production_begin_with_reader();
	start_sleepers(t, 2);
	tsi_sync_lock(&production_sync);
	tsi_sync_wait_room(&production_sync, 1);
	assert_int_equal(tsi_sync_sleepers(&production_sync), 2);
	assert_int_equal(production_sync.coming, 0);
	tsi_sync_wake_all_workers(&production_sync);
	tsi_sync_unlock(&production_sync);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	production_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_stage_is_told_of_the_head_that_it_sleeps_for),
		cmocka_unit_test(the_stage_that_wants_the_least_is_told_first),
		cmocka_unit_test(
			what_is_committed_with_the_lock_held_counts_too),
		cmocka_unit_test(
			who_would_sleep_for_what_is_published_at_once_does_not),
		cmocka_unit_test(a_stage_that_no_head_helps_is_not_told),
		cmocka_unit_test(
			no_more_workers_are_woken_than_there_are_samples_for),
		cmocka_unit_test(two_workers_are_woken_at_a_time),
		cmocka_unit_test(
			a_worker_that_waits_no_longer_is_woken_by_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
