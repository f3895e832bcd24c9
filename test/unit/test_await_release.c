/* SPDX-License-Identifier: MIT */
/*
 * test_await_release.c - a reader of read-only memory whose batches are held:
 * by other threads, which is waited for, or by itself, which is an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "consumer/consumer.h"
#include "test/lib/served.h"

#define N 1000
#define RING 128 /* window 64: 64 samples may be held */
#define BATCH 16
#define HELD 4
#define PATIENCE_MS 60000

struct hands {
	tsock_batch *b[HELD];
	unsigned n;
	tsock *t;
};

static void pause_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* As many as may be held. */
static void hoard(struct hands *h)
{
	while (h->n < HELD) {
		assert_int_equal(tsock_next(h->t, PATIENCE_MS, &h->b[h->n]), 0);
		h->n++;
	}
}

static void *give_all_back(void *arg)
{
	struct hands *h = arg;

	/* The taker is to be asleep; if it isn't, nothing is lost. */
	while (!atomic_load(&h->t->reader->tail.awaited))
		pause_ms(1);
	pause_ms(20);
	while (h->n)
		tsock_batch_release(h->b[--h->n]);
	return NULL;
}

static void batches_in_other_threads_are_waited_for(void **state)
{
	struct hands h = { .n = 0 };
	pthread_t thread;
	struct served v;
	tsock_batch *b;

	(void)state;
	served_start(&v, "room", N, RING, 32);
	h.t = served_begin(&v, BATCH, 0, 0);
	for (unsigned round = 0; round < 10; round++) {
		hoard(&h);
		assert_int_equal(
			pthread_create(&thread, NULL, give_all_back, &h), 0);
		assert_int_equal(tsock_next(h.t, -1, &b), 0);
		pthread_join(thread, NULL);
		assert_true(served_good(b));
		tsock_batch_release(b);
	}
	/* A reader with other threads that give back is never told that it
	 * holds all. */
	hoard(&h);
	assert_int_equal(tsock_next(h.t, 0, &b), TSOCK_EAGAIN);
	assert_int_equal(tsock_next(h.t, 150, &b), TSOCK_EAGAIN);
	while (h.n)
		tsock_batch_release(h.b[--h.n]);
	tsock_close(h.t);
	served_stop(&v);
}

static void one_thread_that_holds_all_is_told_so(void **state)
{
	struct hands h = { .n = 0 };
	struct served v;
	tsock_batch *b;

	(void)state;
	served_start(&v, "room", N, RING, 32);
	h.t = served_begin(&v, BATCH, 0, 0);
	hoard(&h);
	assert_int_equal(tsock_next(h.t, 0, &b), TSOCK_EHELD);
	assert_int_equal(tsock_next(h.t, 150, &b), TSOCK_EHELD);
	assert_non_null(strstr(tsock_errmsg(), "4 batches are still held"));
	/* Not for ever, even if it would wait so long. */
	assert_int_equal(tsock_next(h.t, -1, &b), TSOCK_EHELD);
	while (h.n)
		tsock_batch_release(h.b[--h.n]);
	assert_int_equal(tsock_next(h.t, -1, &b), 0);
	tsock_batch_release(b);
	tsock_close(h.t);
	served_stop(&v);
}

/* Nobody writes there any more. */
static void held_batches_are_in_nobodys_way_without_a_producer(void **state)
{
	tsock_batch *more[HELD], *b;
	struct hands h = { .n = 0 };
	struct served v;

	(void)state;
	served_start(&v, "room", N, RING, 32);
	h.t = served_begin(&v, BATCH, 0, 0);
	hoard(&h);
	while (tsi_claim_head(tsi_reader_claim(h.t->reader)) < RING)
		pause_ms(1);
	assert_int_equal(tsock_next(h.t, 0, &b), TSOCK_EHELD);
	served_stop(&v);
	for (unsigned i = 0; i < HELD; i++) {
		assert_int_equal(tsock_next(h.t, 0, &more[i]), 0);
		assert_int_equal(tsock_batch_seq(more[i]), (HELD + i) * BATCH);
	}
	assert_int_equal(tsock_next(h.t, -1, &b), TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "has shut down"));
	for (unsigned i = 0; i < HELD; i++) {
		assert_true(served_good(h.b[i]) && served_good(more[i]));
		tsock_batch_release(h.b[i]);
		tsock_batch_release(more[i]);
	}
	tsock_close(h.t);
}

static void the_next_producer_is_gone_on_with_whatever_is_held(void **state)
{
	tsock_batch *more[HELD + 1];
	struct hands h = { .n = 0 };
	struct served v;

	(void)state;
	served_start_as(&v, "room", N, RING, 32, "made=up");
	h.t = served_begin(&v, BATCH, 0, 0);
	hoard(&h);
	while (tsi_claim_head(tsi_reader_claim(h.t->reader)) < RING)
		pause_ms(1);
	served_stop(&v);
	served_start_as(&v, "room", N, RING, 32, "made=up");
	for (unsigned i = 0; i <= HELD; i++) {
		assert_int_equal(tsock_next(h.t, PATIENCE_MS, &more[i]), 0);
		assert_int_equal(tsock_batch_seq(more[i]), (HELD + i) * BATCH);
		assert_true(served_good(more[i]));
	}
	for (unsigned i = 0; i <= HELD; i++)
		tsock_batch_release(more[i]);
	while (h.n) {
		assert_true(served_good(h.b[--h.n]));
		tsock_batch_release(h.b[h.n]);
	}
	tsock_close(h.t);
	served_stop(&v);
}

/* The handle is used again, and that ring is nobody's. */
static void batches_of_a_claim_that_was_left_stop_no_next_producer(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct hands h = { .n = 0 };
	struct served v;
	tsock_batch *b;

	(void)state;
	served_start_as(&v, "room", N, RING, 32, "made=up");
	o.batch_size = BATCH;
	o.between = TSOCK_BETWEEN_LEAVE;
	assert_int_equal(tsock_open(v.name, &o, &h.t), 0);
	assert_int_equal(tsock_begin(h.t), 0);
	hoard(&h);
	tsock_leave(h.t);
	/* As long as there is a producer, it waits for these. */
	assert_int_equal(tsock_begin(h.t), 0);
	assert_int_equal(tsock_next(h.t, PATIENCE_MS, &b), TSOCK_EHELD);
	tsock_leave(h.t);
	served_stop(&v);
	served_start_as(&v, "room", N, RING, 32, "made=up");
	assert_int_equal(tsock_begin(h.t), 0);
	for (unsigned i = 0; i < 2 * RING / BATCH; i++) {
		assert_int_equal(tsock_next(h.t, PATIENCE_MS, &b), 0);
		assert_true(served_good(b));
		tsock_batch_release(b);
	}
	while (h.n) {
		assert_true(served_good(h.b[--h.n]));
		tsock_batch_release(h.b[h.n]);
	}
	tsock_close(h.t);
	served_stop(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_in_other_threads_are_waited_for),
		cmocka_unit_test(one_thread_that_holds_all_is_told_so),
		cmocka_unit_test(
			held_batches_are_in_nobodys_way_without_a_producer),
		cmocka_unit_test(
			the_next_producer_is_gone_on_with_whatever_is_held),
		cmocka_unit_test(
			batches_of_a_claim_that_was_left_stop_no_next_producer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
