/* SPDX-License-Identifier: MIT */
/*
 * test_production_threads.c - claims and commits of several threads while others
 * take the lock: no sample is claimed twice or beyond the limit, and none that
 * is written stays unpublished.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "test/lib/production_fixture.h"
#include "test/lib/sanitized.h"

#define WORKERS 4
#define ROUNDS (SANITIZED ? 40 : 400)
#define SAMPLES (SANITIZED ? 40000 : 400000)

static _Atomic uint64_t slot[C];
static _Atomic uint64_t claims, commits;
static _Atomic bool over;

/* Nobody has claimed anything yet. */
static struct tsi_joined begin_reading(void)
{
	struct tsi_joined j;

	atomic_store(&claims, 0);
	atomic_store(&commits, 0);
	atomic_store(&over, false);
	production_begin();
	tsi_sync_lock(&production_sync);
	j = membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
	assert_int_equal(j.start, 0);
	return j;
}

/* As tsock_serve_claim(): 0 is for those that have to wait. */
static unsigned claim(unsigned want, uint64_t *first)
{
	unsigned n = tsi_production_claim(&production_p, want, first);

	if (n)
		return n;
	tsi_sync_lock(&production_sync);
	n = tsi_membership_claim(&membership_m, 0, want, first);
	tsi_sync_unlock(&production_sync);
	return n;
}

static void write_samples(uint64_t first, unsigned n)
{
	for (uint64_t q = first; q < first + n; q++)
		atomic_store_explicit(&slot[q % C], q, memory_order_relaxed);
	tsi_production_commit(&production_p, first, n);
	atomic_fetch_add(&commits, n);
}

/* ---- all that is written is published ---- */

/* Until the ring is full. */
static void *fill_ring(void *arg)
{
	unsigned want = 1;
	uint64_t first;
	unsigned n;

	(void)arg;
	while ((n = claim(want, &first))) {
		write_samples(first, n);
		want = want % 3 + 1;
	}
	return NULL;
}

static void *wait_for_all(void *arg)
{
	(void)arg;
	tsi_sync_lock(&production_sync);
	while (tsi_membership_head(&membership_m, 0) < C)
		tsi_sync_wait_head(&production_sync, 0, INT64_MAX);
	tsi_sync_unlock(&production_sync);
	return NULL;
}

static void *take_the_lock(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		tsi_sync_lock(&production_sync);
		tsi_sync_unlock(&production_sync);
		sched_yield();
	}
	return NULL;
}

static void fill_one_ring(bool membership_stage, bool locks)
{
	pthread_t worker[WORKERS], other[2];

	begin_reading();
	if (membership_stage)
		pthread_create(&other[0], NULL, wait_for_all, NULL);
	if (locks)
		pthread_create(&other[1], NULL, take_the_lock, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, fill_ring, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	/* Nobody takes the lock any more, unless it is that thread. */
	assert_int_equal(atomic_load(&commits), C);
	if (!locks)
		assert_int_equal(production_head(), C);
	atomic_store(&over, true);
	if (locks)
		pthread_join(other[1], NULL);
	assert_int_equal(production_head(), C);
	/* The thread wakes without another publication. */
	if (membership_stage)
		pthread_join(other[0], NULL);
	assert_int_equal(production_p.produced, C);
	production_end();
}

static void all_that_is_written_is_published(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++)
		fill_one_ring(i & 1, i & 2);
}

/* ---- readers that move, leave and come ---- */

static void *work(void *arg)
{
	uint64_t first;

	(void)arg;
	while (!atomic_load(&over)) {
		unsigned n = claim(1 + rand() % 3, &first);

		if (!n) {
			sched_yield();
			continue;
		}
		atomic_fetch_add(&claims, n);
		write_samples(first, n);
	}
	return NULL;
}

/* With the lock: all samples of a reader are there; its tail moves. */
static void read_samples(unsigned id, uint64_t *tail)
{
	uint64_t to = production_head();

	for (uint64_t q = *tail; q < to; q++)
		assert_int_equal(atomic_load_explicit(&slot[q % C],
						      memory_order_relaxed),
				 q);
	if (to > *tail)
		*tail += 1 + (uint64_t)rand() % (to - *tail);
	assert_int_equal(tsi_membership_tail(&membership_m, id, *tail, 0), 0);
}

/* Nothing is claimed, or published, while the lock is held. */
static void check_still(void)
{
	uint64_t claimed = tsi_membership_claimed(&membership_m, 0),
		 h = production_head();
	uint64_t first;

	assert_int_equal(h, tsi_membership_head(&membership_m, 0));
	assert_true(claimed <= tsi_membership_limit(&membership_m, 0));
	sched_yield();
	assert_int_equal(tsi_grant_take(&production_p.grant, 1, &first), 0);
	assert_int_equal(tsi_grant_claimed(&production_p.grant), claimed);
	assert_int_equal(production_head(), h);
}

/* The only reader leaves, and one comes that takes the stream elsewhere. */
static void change_readers(struct tsi_joined *j, uint64_t *tail)
{
	struct tsi_join rules = { .join = TSOCK_JOIN_EPOCH };

	tsi_membership_leave(&membership_m, j->id);
	tsi_gate_changed(&production_gate);
	if (rand() % 2)
		rules.after = tsi_membership_claimed(&membership_m, 0) + 1;
	assert_int_equal(tsi_membership_join(&membership_m, &rules, 0, j), 0);
	tsi_gate_changed(&production_gate);
	*tail = j->start;
}

static void readers_may_come_and_go_meanwhile(void **state)
{
	pthread_t worker[WORKERS];
	struct tsi_joined j;
	uint64_t tail;

	(void)state;
	j = begin_reading();
	tail = j.start;
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, NULL);
	while (atomic_load(&claims) < SAMPLES) {
		tsi_sync_lock(&production_sync);
		read_samples(j.id, &tail);
		check_still();
		if (rand() % 8 == 0)
			change_readers(&j, &tail);
		tsi_gate_changed(&production_gate);
		tsi_sync_unlock(&production_sync);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	assert_int_equal(atomic_load(&claims), atomic_load(&commits));
	tsi_sync_lock(&production_sync);
	assert_int_equal(tsi_membership_head(&membership_m, 0),
			 tsi_membership_claimed(&membership_m, 0));
	assert_int_equal(production_p.produced, atomic_load(&commits));
	tsi_sync_unlock(&production_sync);
	production_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_written_is_published),
		cmocka_unit_test(readers_may_come_and_go_meanwhile),
	};

	return cmocka_run_group_tests_name("production_threads", tests, NULL,
					   NULL);
}
