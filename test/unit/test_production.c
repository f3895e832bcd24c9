/* SPDX-License-Identifier: MIT */
/*
 * test_production.c - claims and commits of several threads while others take
 * the lock: no sample is claimed twice or beyond the limit, and none that is
 * written stays unpublished.
 */
#include "serve/production.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/futex.h"
#include "ring/tail_page.h"
#include "test/lib/membership_fixture.h"
#include "test/lib/ring_fixture.h"
#include "test/lib/sanitized.h"

#define N 40
#define C 256
#define WORKERS 4
#define ROUNDS (SANITIZED ? 40 : 400)
#define SAMPLES (SANITIZED ? 40000 : 400000)

static struct tsi_sync sync_;
static struct tsi_gate gate;
static struct tsi_production p;
static struct fixture_ring base;
static _Atomic uint64_t slot[C];
static _Atomic uint64_t claims, commits;
static _Atomic bool over;

/* ---- futexes: what happens while a worker wakes a reader, with its turn ---- */

static _Atomic(void (*)(void)) while_it_wakes;
static _Atomic unsigned waits; /* for a turn */

void tsi_futex_wake(const _Atomic uint32_t *word)
{
	void (*fn)(void) = atomic_exchange(&while_it_wakes, NULL);

	(void)word;
	if (fn)
		fn();
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

static void begin(void)
{
	static const uint64_t bytes[] = { 64 };

	memset(&p, 0, sizeof(p));
	memset(&gate, 0, sizeof(gate));
	tsi_sync_init(&sync_);
	make(N, 16, C, TSI_NEVER);
	tsi_gate_init(&gate, &sync_, &m);
	fixture_ring_make(&base, bytes, 1, C, 4);
	tsi_gate_add_ring(&gate, 0, &base.ring);
	assert_int_equal(tsi_production_init(&p, C, &sync_, &m, &gate), 0);
	atomic_store(&claims, 0);
	atomic_store(&commits, 0);
	atomic_store(&over, false);
}

static void begin_with_reader(void)
{
	begin();
	tsi_sync_lock(&sync_);
	join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
}

static void end(void)
{
	tsi_production_fini(&p);
	fixture_ring_free(&base);
	tsi_sync_fini(&sync_);
}

static uint64_t head(void)
{
	return atomic_load(&base.ring.shared->head);
}

/* As tsock_serve_claim(): 0 is for those that have to wait. */
static unsigned claim(unsigned want, uint64_t *first)
{
	unsigned n = tsi_production_claim(&p, want, first);

	if (n)
		return n;
	tsi_sync_lock(&sync_);
	n = tsi_membership_claim(&m, 0, want, first);
	tsi_sync_unlock(&sync_);
	return n;
}

static void write_samples(uint64_t first, unsigned n)
{
	for (uint64_t q = first; q < first + n; q++)
		atomic_store_explicit(&slot[q % C], q, memory_order_relaxed);
	tsi_production_commit(&p, first, n);
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
	tsi_sync_lock(&sync_);
	while (tsi_membership_head(&m, 0) < C)
		tsi_sync_wait_staged(&sync_, INT64_MAX);
	tsi_sync_unlock(&sync_);
	return NULL;
}

static void *take_the_lock(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		tsi_sync_lock(&sync_);
		tsi_sync_unlock(&sync_);
		sched_yield();
	}
	return NULL;
}

static void fill_one_ring(bool stage, bool locks)
{
	pthread_t worker[WORKERS], other[2];
	struct tsi_joined j;

	begin();
	tsi_sync_lock(&sync_);
	j = join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(j.start, 0);
	tsi_sync_unlock(&sync_);
	if (stage)
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
		assert_int_equal(head(), C);
	atomic_store(&over, true);
	if (locks)
		pthread_join(other[1], NULL);
	assert_int_equal(head(), C);
	/* It wakes without another publication. */
	if (stage)
		pthread_join(other[0], NULL);
	assert_int_equal(p.produced, C);
	end();
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
	uint64_t to = head();

	for (uint64_t q = *tail; q < to; q++)
		assert_int_equal(atomic_load_explicit(&slot[q % C],
						      memory_order_relaxed),
				 q);
	if (to > *tail)
		*tail += 1 + (uint64_t)rand() % (to - *tail);
	assert_int_equal(tsi_membership_tail(&m, id, *tail, 0), 0);
}

/* Nothing is claimed, or published, while the lock is held. */
static void check_still(void)
{
	uint64_t claimed = tsi_membership_claimed(&m, 0), h = head();
	uint64_t first;

	assert_int_equal(h, tsi_membership_head(&m, 0));
	assert_true(claimed <= tsi_membership_limit(&m, 0));
	sched_yield();
	assert_int_equal(tsi_grant_take(&p.grant, 1, &first), 0);
	assert_int_equal(tsi_grant_claimed(&p.grant), claimed);
	assert_int_equal(head(), h);
}

/* The only reader leaves, and one comes that takes the stream elsewhere. */
static void change_readers(struct tsi_joined *j, uint64_t *tail)
{
	struct tsi_join rules = { .join = TSOCK_JOIN_EPOCH };

	tsi_membership_leave(&m, j->id);
	tsi_gate_changed(&gate);
	if (rand() % 2)
		rules.after = tsi_membership_claimed(&m, 0) + 1;
	assert_int_equal(tsi_membership_join(&m, &rules, 0, j), 0);
	tsi_gate_changed(&gate);
	*tail = j->start;
}

static void readers_may_come_and_go_meanwhile(void **state)
{
	pthread_t worker[WORKERS];
	struct tsi_joined j;
	uint64_t tail;

	(void)state;
	begin();
	tsi_sync_lock(&sync_);
	j = join(TSOCK_JOIN_EPOCH, 0);
	tail = j.start;
	tsi_sync_unlock(&sync_);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, NULL);
	while (atomic_load(&claims) < SAMPLES) {
		tsi_sync_lock(&sync_);
		read_samples(j.id, &tail);
		check_still();
		if (rand() % 8 == 0)
			change_readers(&j, &tail);
		tsi_gate_changed(&gate);
		tsi_sync_unlock(&sync_);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	assert_int_equal(atomic_load(&claims), atomic_load(&commits));
	tsi_sync_lock(&sync_);
	assert_int_equal(tsi_membership_head(&m, 0),
			 tsi_membership_claimed(&m, 0));
	assert_int_equal(p.produced, atomic_load(&commits));
	tsi_sync_unlock(&sync_);
	end();
}

/* ---- what comes while a worker publishes ---- */

/* A reader that sleeps for every sample. */
static struct tsi_tail_page sleeper;

static void attach_sleeper(uint64_t want)
{
	memset(&sleeper, 0, sizeof(sleeper));
	tsi_tail_page_sleep(&sleeper, want);
	tsi_sync_lock(&sync_);
	tsi_ring_attach(&base.ring, 0, &sleeper);
	join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
}

static void commit_another(void)
{
	tsi_production_commit(&p, 1, 1);
	/* It is not its turn. */
	assert_int_equal(head(), 1);
}

static void who_publishes_looks_for_more_at_the_end(void **state)
{
	uint64_t first;

	(void)state;
	begin();
	attach_sleeper(1);
	assert_int_equal(tsi_production_claim(&p, 2, &first), 2);
	atomic_store(&while_it_wakes, commit_another);
	tsi_production_commit(&p, 0, 1);
	assert_null(atomic_load(&while_it_wakes));
	assert_int_equal(head(), 2);
	end();
}

static _Atomic bool has_lock;
static pthread_t locker;

static void *lock_once(void *arg)
{
	(void)arg;
	tsi_sync_lock(&sync_);
	atomic_store(&has_lock, true);
	assert_int_equal(tsi_membership_head(&m, 0), 1);
	tsi_sync_unlock(&sync_);
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
	begin();
	attach_sleeper(1);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 1);
	atomic_store(&has_lock, false);
	atomic_store(&while_it_wakes, try_to_lock);
	tsi_production_commit(&p, 0, 1);
	pthread_join(locker, NULL);
	assert_true(atomic_load(&has_lock));
	end();
}

/* ---- what comes while the lock is held ---- */

static void what_is_committed_meanwhile_is_published_at_the_end(void **state)
{
	uint64_t first;

	(void)state;
	begin_with_reader();
	assert_int_equal(tsi_production_claim(&p, 2, &first), 2);
	tsi_sync_lock(&sync_);
	tsi_production_commit(&p, 0, 1);
	assert_int_equal(head(), 0);
	tsi_sync_unlock(&sync_);
	assert_int_equal(head(), 1);
	/* Who wants to wait may wait for that. */
	tsi_sync_lock(&sync_);
	tsi_production_commit(&p, 1, 1);
	tsi_sync_wait_staged(&sync_, INT64_MAX);
	assert_int_equal(tsi_membership_head(&m, 0), 2);
	tsi_sync_unlock(&sync_);
	end();
}

/* ---- one thread ---- */

static void a_slot_is_not_done_in_the_next_round(void **state)
{
	struct tsi_joined j;
	uint64_t first;

	(void)state;
	begin();
	tsi_sync_lock(&sync_);
	j = join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, C, &first), C);
	tsi_production_commit(&p, 0, C);
	assert_int_equal(head(), C);
	tsi_sync_lock(&sync_);
	assert_int_equal(tsi_membership_tail(&m, j.id, C, 0), 0);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, 2, &first), 2);
	tsi_production_commit(&p, C + 1, 1);
	assert_int_equal(head(), C);
	tsi_production_commit(&p, C, 1);
	assert_int_equal(head(), C + 2);
	end();
}

/* Samples that nobody has claimed are not published. */
static void a_commit_without_a_claim_moves_nothing(void **state)
{
	uint64_t first;

	(void)state;
	begin_with_reader();
	tsi_production_commit(&p, 0, 2);
	assert_int_equal(head(), 0);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 1);
	tsi_production_commit(&p, 5, 1);
	assert_int_equal(head(), 1);
	end();
}

static void a_server_that_stops_grants_nothing(void **state)
{
	uint64_t first;

	(void)state;
	begin_with_reader();
	assert_int_equal(tsi_production_claim(&p, 1, &first), 1);
	tsi_sync_lock(&sync_);
	tsi_production_stop(&p);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 0);
	tsi_production_commit(&p, 0, 1);
	assert_int_equal(head(), 1);
	end();
}

static void a_stream_that_failed_grants_nothing(void **state)
{
	uint64_t first;

	(void)state;
	begin();
	tsi_sync_lock(&sync_);
	join(TSOCK_JOIN_EPOCH, 0);
	tsi_gate_fail(&gate, "no disk");
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 0);
	end();
}

/* The jump is carried out by who commits the last sample before it. */
static void the_last_commit_before_a_jump_carries_it_out(void **state)
{
	struct tsi_joined j;
	uint64_t first;

	(void)state;
	begin();
	tsi_sync_lock(&sync_);
	j = join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, 2, &first), 2);
	tsi_sync_lock(&sync_);
	tsi_membership_leave(&m, j.id);
	j = join(TSOCK_JOIN_EPOCH, 2 * N);
	assert_true(tsi_membership_jumping(&m));
	tsi_gate_changed(&gate);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 0);
	tsi_production_commit(&p, 1, 1);
	assert_int_equal(head(), 0);
	tsi_production_commit(&p, 0, 1);
	assert_int_equal(head(), j.start);
	assert_int_equal(j.start, 2 * N);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 1);
	assert_int_equal(first, 2 * N);
	end();
}

static void the_last_commit_ends_the_stream(void **state)
{
	uint64_t first;

	(void)state;
	begin();
	m.c.end = N;
	tsi_sync_lock(&sync_);
	join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
	assert_int_equal(tsi_production_claim(&p, N, &first), N);
	assert_int_equal(tsi_production_claim(&p, 1, &first), 0);
	tsi_production_commit(&p, 0, N - 1);
	assert_int_equal(atomic_load(&base.ring.shared->state), TSI_RING_OPEN);
	tsi_production_commit(&p, N - 1, 1);
	assert_int_equal(head(), N);
	assert_int_equal(atomic_load(&base.ring.shared->state), TSI_RING_ENDED);
	end();
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
		cmocka_unit_test(all_that_is_written_is_published),
		cmocka_unit_test(readers_may_come_and_go_meanwhile),
	};

	return cmocka_run_group_tests_name("production", tests, NULL, NULL);
}
