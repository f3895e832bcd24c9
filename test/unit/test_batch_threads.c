/* SPDX-License-Identifier: MIT */
/*
 * test_batch_threads.c - batches that several threads give back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/reader.h"
#include "test/lib/reader_fixture.h"

#define THREADS 3
#define ROUNDS 500

/* One mailbox per thread, so that releases overtake each other. */
struct courier {
	pthread_t thread;
	_Atomic(struct tsock_batch *) box[4];
	_Atomic bool stop;
	unsigned seed;
};

static void *release_some(void *arg)
{
	struct courier *c = arg;
	bool stop;

	do {
		stop = atomic_load(&c->stop);
		for (unsigned i = 0; i < 4; i++) {
			unsigned k = (unsigned)rand_r(&c->seed) % 4;
			struct tsock_batch *b =
				atomic_exchange(&c->box[stop ? i : k], NULL);

			const struct tsock_batch *in =
				b ? tsi_batch_of(b, "b") : NULL;

			/* The lowest live batch is at or above the tail. */
			if (in && tsi_reader_tail(in->reader) > in->first &&
			    atomic_load(&((struct tsock_batch *)(uintptr_t)in)
						 ->state) == TSI_BATCH_HELD)
				abort();
			tsock_batch_release(b);
		}
	} while (!stop);
	return NULL;
}

static void post(struct courier *c, struct tsock_batch *b)
{
	for (unsigned i = 0;; i = (i + 1) % 4) {
		struct tsock_batch *empty = NULL;

		if (atomic_compare_exchange_weak(&c->box[i], &empty, b))
			return;
	}
}

static void race(enum tsi_mapping_mode mode)
{
	struct courier c[THREADS];
	uint64_t last = 0;
	struct fixture g;

	fixture_make(&g, fixture_big, mode);
	memset(c, 0, sizeof(c));
	for (unsigned i = 0; i < THREADS; i++) {
		c[i].seed = i + 1;
		assert_int_equal(
			pthread_create(&c[i].thread, NULL, release_some, &c[i]),
			0);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tsock_batch *b;
		int err;

		/* Read-only: until somebody gives one back. */
		do
			err = tsi_reader_make_room(g.r, BATCH);
		while (err == TSOCK_EHELD);
		assert_int_equal(err, 0);
		/* As the producer does: room is there, or is being made. */
		while (g.head + BATCH > fixture_tail(&g) + CAPACITY)
			sched_yield();
		b = fixture_take(&g, BATCH);
		assert_true(fixture_tail(&g) >= last);
		last = fixture_tail(&g);
		assert_true(fixture_good(&g, b));
		if (mode == TSI_MAP_PRIVATE && i % 8 == 0)
			memset(tsock_batch_data_mut(b, 0), 1,
			       BATCH * fixture_big[0]);
		post(&c[i % THREADS], b);
		if (i % 64 == 0 && mode == TSI_MAP_PRIVATE)
			assert_int_equal(tsi_reader_make_all_private(g.r), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		atomic_store(&c[i].stop, true);
		pthread_join(c[i].thread, NULL);
	}
	assert_int_equal(fixture_tail(&g), g.head);
	assert_int_equal(tsi_reader_held(g.r), 0);
	fixture_close(&g);
}

static void any_thread_may_give_back(void **state)
{
	(void)state;
	race(TSI_MAP_SHARED);
}

static void while_others_are_made_private(void **state)
{
	(void)state;
	race(TSI_MAP_PRIVATE);
}

struct doubled {
	pthread_t thread;
	_Atomic(struct tsock_batch *) *b;
	_Atomic unsigned *round;
};

static void *release_each(void *arg)
{
	struct doubled *d = arg;

	for (unsigned i = 1; i <= ROUNDS; i++) {
		while (atomic_load(d->round) < i)
			sched_yield();
		tsock_batch_release(atomic_load(d->b));
	}
	return NULL;
}

/* All of them release every batch; each is given back once. */
static void of_several_releases_one_counts(void **state)
{
	_Atomic(struct tsock_batch *) now = NULL;
	struct doubled d[THREADS];
	_Atomic unsigned round = 0;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	for (unsigned i = 0; i < THREADS; i++) {
		d[i].b = &now;
		d[i].round = &round;
		assert_int_equal(
			pthread_create(&d[i].thread, NULL, release_each, &d[i]),
			0);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		atomic_store(&now, fixture_take(&g, 8));
		atomic_fetch_add(&round, 1);
		while (fixture_tail(&g) < g.head)
			sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(d[i].thread, NULL);
	assert_int_equal(atomic_load(&g.r->refs), 1);
	fixture_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_thread_may_give_back),
		cmocka_unit_test(while_others_are_made_private),
		cmocka_unit_test(of_several_releases_one_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
