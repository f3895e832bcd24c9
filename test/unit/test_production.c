/* SPDX-License-Identifier: MIT */
/*
 * test_production.c - claims and commits one after the other: what comes while a
 * worker publishes or the lock is held, and what the last commit does.
 */
#include <pthread.h>
#include <sched.h>

#include "ring/futex.h"
#include "ring/tail_page.h"
#include "test/lib/production_fixture.h"

/* ---- futexes: what happens while a worker wakes a reader, with its turn ---- */

static _Atomic(void (*)(void)) while_it_wakes;
static _Atomic unsigned waits; /* for a turn */

void tsi_futex_wake_bits(const _Atomic uint32_t *word, uint32_t bits)
{
	void (*fn)(void) = atomic_exchange(&while_it_wakes, NULL);

	(void)word;
	(void)bits;
	if (fn)
		fn();
}

void tsi_futex_wake(const _Atomic uint32_t *word)
{
	(void)word;
}

void tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
			 uint32_t bits, int timeout_ms)
{
	(void)word;
	(void)value;
	(void)bits;
	(void)timeout_ms;
}

void tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
		    int timeout_ms)
{
	(void)word;
	(void)value;
	(void)timeout_ms;
	atomic_fetch_add(&waits, 1);
	sched_yield();
}

/* ---- what comes while a worker publishes ---- */

/* A reader that sleeps for every sample. */
static struct tsi_tail_page sleeper;

static void attach_sleeper(uint64_t want)
{
	memset(&sleeper, 0, sizeof(sleeper));
	tsi_tail_page_sleep(&sleeper, want);
	tsi_sync_lock(&production_sync);
	tsi_ring_attach(&production_base.ring, 0, &sleeper);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
}

static void commit_another(void)
{
	tsi_production_commit(&production_p, 1, 1);
	/* Another thread has the turn to publish, so the head stays. */
	assert_int_equal(production_head(), 1);
}

static void who_publishes_looks_for_more_at_the_end(void **state)
{
	uint64_t first;

	(void)state;
	production_begin();
	attach_sleeper(1);
	assert_int_equal(tsi_production_claim(&production_p, 2, &first), 2);
	atomic_store(&while_it_wakes, commit_another);
	tsi_production_commit(&production_p, 0, 1);
	assert_null(atomic_load(&while_it_wakes));
	assert_int_equal(production_head(), 2);
	production_end();
}

static _Atomic bool has_lock;
static pthread_t locker;

static void *lock_once(void *arg)
{
	(void)arg;
	tsi_sync_lock(&production_sync);
	atomic_store(&has_lock, true);
	assert_int_equal(tsi_membership_head(&membership_m, 0), 1);
	tsi_sync_unlock(&production_sync);
	return NULL;
}

static void try_to_lock(void)
{
	unsigned before = atomic_load(&waits);

	pthread_create(&locker, NULL, lock_once, NULL);
	while (atomic_load(&waits) < before + 100 && !atomic_load(&has_lock))
		sched_yield();
	assert_false(atomic_load(&has_lock));
}

static void the_lock_waits_for_who_publishes(void **state)
{
	uint64_t first;

	(void)state;
	production_begin();
	attach_sleeper(1);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 1);
	atomic_store(&has_lock, false);
	atomic_store(&while_it_wakes, try_to_lock);
	tsi_production_commit(&production_p, 0, 1);
	pthread_join(locker, NULL);
	assert_true(atomic_load(&has_lock));
	production_end();
}

/* ---- what comes while the lock is held ---- */

static void what_is_committed_meanwhile_is_published_at_the_end(void **state)
{
	uint64_t first;

	(void)state;
	production_begin_with_reader();
	assert_int_equal(tsi_production_claim(&production_p, 2, &first), 2);
	tsi_sync_lock(&production_sync);
	tsi_production_commit(&production_p, 0, 1);
	assert_int_equal(production_head(), 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(production_head(), 1);
	/* A thread that wants to wait may wait for that. */
	tsi_sync_lock(&production_sync);
	tsi_production_commit(&production_p, 1, 1);
	tsi_sync_wait_staged(&production_sync, INT64_MAX);
	assert_int_equal(tsi_membership_head(&membership_m, 0), 2);
	tsi_sync_unlock(&production_sync);
	production_end();
}

/* ---- one thread ---- */

static void a_slot_is_not_done_in_the_next_round(void **state)
{
	struct tsi_joined j;
	uint64_t first;

	(void)state;
	production_begin();
	tsi_sync_lock(&production_sync);
	j = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, C, &first), C);
	tsi_production_commit(&production_p, 0, C);
	assert_int_equal(production_head(), C);
	tsi_sync_lock(&production_sync);
	assert_int_equal(tsi_membership_tail(&membership_m, j.id, C, 0), 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, 2, &first), 2);
	tsi_production_commit(&production_p, C + 1, 1);
	assert_int_equal(production_head(), C);
	tsi_production_commit(&production_p, C, 1);
	assert_int_equal(production_head(), C + 2);
	production_end();
}

/* Samples that nobody has claimed are not published. */
static void a_commit_without_a_claim_moves_nothing(void **state)
{
	uint64_t first;

	(void)state;
	production_begin_with_reader();
	tsi_production_commit(&production_p, 0, 2);
	assert_int_equal(production_head(), 0);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 1);
	tsi_production_commit(&production_p, 5, 1);
	assert_int_equal(production_head(), 1);
	production_end();
}

static void a_server_that_stops_grants_nothing(void **state)
{
	uint64_t first;

	(void)state;
	production_begin_with_reader();
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 1);
	tsi_sync_lock(&production_sync);
	tsi_production_stop(&production_p);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 0);
	tsi_production_commit(&production_p, 0, 1);
	assert_int_equal(production_head(), 1);
	production_end();
}

static void a_stream_that_failed_grants_nothing(void **state)
{
	uint64_t first;

	(void)state;
	production_begin();
	tsi_sync_lock(&production_sync);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_gate_fail(&production_gate, "no disk");
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 0);
	production_end();
}

/* The jump is carried out by who commits the last sample before it. */
static void the_last_commit_before_a_jump_carries_it_out(void **state)
{
	struct tsi_joined j;
	uint64_t first;

	(void)state;
	production_begin();
	tsi_sync_lock(&production_sync);
	j = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, 2, &first), 2);
	tsi_sync_lock(&production_sync);
	tsi_membership_leave(&membership_m, j.id);
	j = membership_join(TSOCK_JOIN_EPOCH, 2 * N);
	assert_true(tsi_membership_jumping(&membership_m));
	tsi_gate_changed(&production_gate);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 0);
	tsi_production_commit(&production_p, 1, 1);
	assert_int_equal(production_head(), 0);
	tsi_production_commit(&production_p, 0, 1);
	assert_int_equal(production_head(), j.start);
	assert_int_equal(j.start, 2 * N);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 1);
	assert_int_equal(first, 2 * N);
	production_end();
}

static void the_last_commit_ends_the_stream(void **state)
{
	uint64_t first;

	(void)state;
	production_begin();
	membership_m.c.end = N;
	tsi_sync_lock(&production_sync);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(tsi_production_claim(&production_p, N, &first), N);
	assert_int_equal(tsi_production_claim(&production_p, 1, &first), 0);
	tsi_production_commit(&production_p, 0, N - 1);
	assert_int_equal(atomic_load(&production_base.ring.shared->state),
			 TSI_RING_OPEN);
	tsi_production_commit(&production_p, N - 1, 1);
	assert_int_equal(production_head(), N);
	assert_int_equal(atomic_load(&production_base.ring.shared->state),
			 TSI_RING_ENDED);
	production_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_publishes_looks_for_more_at_the_end),
		cmocka_unit_test(the_lock_waits_for_who_publishes),
		cmocka_unit_test(
			what_is_committed_meanwhile_is_published_at_the_end),
		cmocka_unit_test(a_slot_is_not_done_in_the_next_round),
		cmocka_unit_test(a_commit_without_a_claim_moves_nothing),
		cmocka_unit_test(a_server_that_stops_grants_nothing),
		cmocka_unit_test(a_stream_that_failed_grants_nothing),
		cmocka_unit_test(the_last_commit_before_a_jump_carries_it_out),
		cmocka_unit_test(the_last_commit_ends_the_stream),
	};

	return cmocka_run_group_tests_name("production", tests, NULL, NULL);
}
