/* SPDX-License-Identifier: MIT */
/*
 * test_siblings.c - two readers of one stream in one thread that wait for each
 * other are told so, and nobody else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>

#include "consumer/consumer.h"
#include "test/lib/served.h"

#define N 20000
#define RING 128
#define MAX_BATCH 32
#define PATIENCE_MS 60000

/* Read a and b in turn until one can't go on; its code. */
static int zip(tsock *a, tsock *b)
{
	tsock_batch *x, *y;
	int err;

	for (;;) {
		err = tsock_next(a, PATIENCE_MS, &x);
		if (err)
			return err;
		err = tsock_next(b, PATIENCE_MS, &y);
		tsock_batch_release(x);
		if (err)
			return err;
		tsock_batch_release(y);
	}
}

static void says_both(const struct served *v)
{
	const char *text = tsock_errmsg();

	assert_non_null(strstr(text, v->name));
	assert_non_null(strstr(text, "batch size 16, at sample"));
	assert_non_null(strstr(text, "batch size 4"));
	assert_non_null(strstr(text, "this thread"));
}

static void *read_an_epoch(void *arg)
{
	const struct served *v = arg;
	tsock *t = served_begin(v, 25, 0, 0);
	uint64_t done = 0;
	tsock_batch *b;
	int err;

	while (!(err = tsock_next(t, PATIENCE_MS, &b))) {
		if (!served_good(b))
			abort();
		done += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH || done != v->n)
		fprintf(stderr, "read %llu: %s\n", (unsigned long long)done,
			tsock_errmsg());
	tsock_close(t);
	return (void *)(uintptr_t)(err == TSOCK_EEPOCH && done == v->n);
}

static void expect_deadlock(uint32_t dtype_a, uint32_t dtype_b, uint32_t flags)
{
	struct served v;
	pthread_t other;
	void *whole;
	tsock *a, *b;

	served_start(&v, "zip", N, RING, MAX_BATCH);
	a = served_begin(&v, 16, dtype_a, flags);
	b = served_begin(&v, 4, dtype_b, flags);
	assert_int_equal(pthread_create(&other, NULL, read_an_epoch, &v), 0);
	assert_int_equal(zip(a, b), TSOCK_EHELD);
	says_both(&v);
	/* Both still work: the one that is behind can go on. */
	for (unsigned i = 0; i < 4; i++) {
		tsock_batch *x;

		assert_int_equal(tsock_next(b, PATIENCE_MS, &x), 0);
		tsock_batch_release(x);
	}
	tsock_close(a);
	tsock_close(b);
	/* Nobody else is held up for longer than that. */
	pthread_join(other, &whole);
	assert_non_null(whole);
	served_stop(&v);
}

static void two_in_one_thread_are_told_that_they_block_each_other(void **state)
{
	(void)state;
	expect_deadlock(0, 0, 0);
	expect_deadlock(0, 0, TSOCK_WRITABLE);
	expect_deadlock(0, 0, TSOCK_SPIN);
}

static void through_views_too(void **state)
{
	(void)state;
	expect_deadlock(TSOCK_F32, TSOCK_F32, TSOCK_WRITABLE);
	expect_deadlock(0, TSOCK_F32, TSOCK_WRITABLE);
	expect_deadlock(TSOCK_F32, 0, TSOCK_WRITABLE);
	expect_deadlock(TSOCK_F32, TSOCK_F16, TSOCK_WRITABLE);
}

static void a_loop_inside_the_first_batch_of_another(void **state)
{
	tsock_batch *x, *y;
	struct served v;
	tsock *a, *b;
	int err;

	(void)state;
	served_start(&v, "nested", N, RING, MAX_BATCH);
	b = served_begin(&v, 4, 0, TSOCK_WRITABLE);
	a = served_begin(&v, 16, 0, TSOCK_WRITABLE);
	assert_int_equal(tsock_next(b, PATIENCE_MS, &y), 0);
	while (!(err = tsock_next(a, -1, &x)))
		tsock_batch_release(x);
	assert_int_equal(err, TSOCK_EHELD);
	says_both(&v);
	tsock_batch_release(y);
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
}

static void in_step(tsock *a, tsock *b, uint64_t upto)
{
	tsock_batch *x;

	for (uint64_t at = 0; at < upto; at += 10) {
		assert_int_equal(tsock_next(a, PATIENCE_MS, &x), 0);
		tsock_batch_release(x);
		assert_int_equal(tsock_next(b, PATIENCE_MS, &x), 0);
		tsock_batch_release(x);
	}
}

/* Its next start is kept, which is nearer than its view's ring is long. */
static void a_view_s_reader_shortly_before_an_epoch_s_end(void **state)
{
	struct served v;
	tsock_batch *x;
	tsock *a, *b;
	int err;

	(void)state;
	served_start(&v, "end", 1000, RING, MAX_BATCH);
	b = served_begin(&v, 10, TSOCK_F32, TSOCK_WRITABLE);
	a = served_begin(&v, 10, 0, TSOCK_WRITABLE);
	in_step(a, b, 990);
	do {
		while (!(err = tsock_next(a, PATIENCE_MS, &x)))
			tsock_batch_release(x);
		if (err == TSOCK_EEPOCH)
			assert_int_equal(tsock_begin(a), 0);
	} while (err == TSOCK_EEPOCH);
	assert_int_equal(err, TSOCK_EHELD);
	assert_true(tsi_reader_pos(a->reader) < 1000 + 2 * RING);
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
}

/* A thread that comes back to the other reader in time waits for nobody. */
static void in_turn_with_timeouts_is_fine(void **state)
{
	uint64_t got[2] = { 0, 0 };
	struct served v;
	tsock_batch *x;
	tsock *t[2];

	(void)state;
	served_start(&v, "turns", 1000, RING, MAX_BATCH);
	t[0] = served_begin(&v, 16, 0, TSOCK_WRITABLE);
	t[1] = served_begin(&v, 4, TSOCK_F32, TSOCK_WRITABLE);
	while (got[0] < v.n || got[1] < v.n) {
		for (unsigned i = 0; i < 2; i++) {
			int err = tsock_next(t[i], got[i] % 3 ? 0 : 5, &x);

			if (!err) {
				got[i] += tsock_batch_count(x);
				tsock_batch_release(x);
			} else if (err != TSOCK_EEPOCH) {
				assert_int_equal(err, TSOCK_EAGAIN);
			}
		}
	}
	tsock_close(t[0]);
	tsock_close(t[1]);
	served_stop(&v);
}

/* ---- several threads ---- */

static _Atomic unsigned said;
static char line_said[512];

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_WARN && strstr(line, "another thread")) {
		snprintf(line_said, sizeof(line_said), "%s", line);
		atomic_fetch_add(&said, 1);
	}
}

static void *begin_elsewhere(void *arg)
{
	return served_begin(arg, 4, 0, 0);
}

static void another_threads_reader_is_waited_for_and_named_once(void **state)
{
	uint64_t need;
	struct served v;
	pthread_t thread;
	tsock_batch *x;
	tsock *a;
	void *b;

	(void)state;
	served_start(&v, "threads", N, RING, MAX_BATCH);
	assert_int_equal(pthread_create(&thread, NULL, begin_elsewhere, &v), 0);
	pthread_join(thread, &b);
	a = served_begin(&v, 16, 0, 0);
	while (tsi_reader_pos(a->reader) < RING) {
		assert_int_equal(tsock_next(a, PATIENCE_MS, &x), 0);
		tsock_batch_release(x);
	}
	assert_int_equal(tsock_next(a, 500, &x), TSOCK_EAGAIN);
	need = tsi_reader_pos(a->reader) + 16;
	/* As time goes by. */
	a->sibling.stuck.on = NULL;
	assert_int_equal(tsi_siblings_check(&a->sibling, need, 1000), 0);
	assert_int_equal(tsi_siblings_check(&a->sibling, need, 10999), 0);
	assert_int_equal(said, 0);
	for (int64_t now = 11000; now < 60000; now += 1000)
		assert_int_equal(tsi_siblings_check(&a->sibling, need, now), 0);
	while (!said)
		sched_yield();
	assert_non_null(strstr(line_said, "batch size 16, at sample 128"));
	assert_non_null(strstr(line_said, "batch size 4, at sample 0"));
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
	assert_int_equal(said, 1);
}

/* What others hold comes back without this thread. */
static void batches_in_other_hands_are_no_deadlock(void **state)
{
	struct served v;
	tsock_batch *x, *y;
	tsock *a, *b;
	int err;

	(void)state;
	served_start(&v, "hands", N, RING, MAX_BATCH);
	a = served_begin(&v, 16, 0, 0);
	b = served_begin(&v, 16, 0, 0);
	/* b's first batch is held, and b ahead of it by one. */
	assert_int_equal(tsock_next(b, PATIENCE_MS, &y), 0);
	while (!(err = tsock_next(a, PATIENCE_MS, &x)))
		tsock_batch_release(x);
	assert_int_equal(err, TSOCK_EHELD);
	/* Once another thread has given one back, it may do so again. */
	atomic_store(&b->reader->released_elsewhere, true);
	for (unsigned i = 0; i < 3; i++) {
		tsock_batch *z;

		assert_int_equal(tsock_next(b, PATIENCE_MS, &z), 0);
		tsock_batch_release(z);
	}
	assert_int_equal(tsock_next(a, 500, &x), TSOCK_EAGAIN);
	tsock_batch_release(y);
	assert_int_equal(tsock_next(a, PATIENCE_MS, &x), 0);
	tsock_batch_release(x);
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
}

/* ---- a producer that is started again ---- */

#define FURTHER 200 /* more than a ring beyond the start */

static void resume_further_on(const struct served *v, tsock **a, uint32_t dtype)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;

	o.batch_size = 16;
	o.dtype = dtype;
	assert_int_equal(tsock_open(v->name, &o, a), 0);
	assert_int_equal(tsock_resume(*a, 0, FURTHER, PATIENCE_MS), 0);
}

/* The next producer keeps what b needs until b, at sample 0, has returned. */
static void expect_return_awaited(tsock *b, uint32_t dtype)
{
	struct served v;
	tsock_batch *x;
	tsock *a;

	served_start_as(&v, "again", N, RING, MAX_BATCH, "kind=test\n");
	resume_further_on(&v, &a, dtype);
	assert_int_equal(tsock_next(a, PATIENCE_MS, &x), TSOCK_EHELD);
	says_both(&v);
	assert_non_null(strstr(tsock_errmsg(), "which is at sample 0;"));
	/* Both still work, and nothing is lost. */
	for (uint64_t at = 0; at < FURTHER; at += 4) {
		assert_int_equal(tsock_next(b, PATIENCE_MS, &x), 0);
		assert_int_equal(tsock_batch_seq(x), at);
		assert_true(served_good(x));
		tsock_batch_release(x);
	}
	assert_int_equal(tsock_next(a, PATIENCE_MS, &x), 0);
	assert_int_equal(tsock_batch_seq(x), FURTHER);
	tsock_batch_release(x);
	assert_true(tsi_claim_held(&a->reader->claim) == TSI_NEVER);
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
}

static void one_that_has_not_noticed_the_restart_is_named(void **state)
{
	struct served v;
	tsock *b;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		served_open_as(&v, "again", N, RING, MAX_BATCH, "kind=test\n");
		b = served_begin(&v, 4, 0, 0);
		tsock_serve_close(v.s);
		expect_return_awaited(b, i ? TSOCK_F32 : 0);
	}
}

static void one_that_found_no_producer_is_named(void **state)
{
	struct served v;
	tsock_batch *x;
	tsock *b;

	(void)state;
	served_open_as(&v, "again", N, RING, MAX_BATCH, "kind=test\n");
	b = served_begin(&v, 4, 0, 0);
	tsock_serve_close(v.s);
	assert_int_equal(tsock_next(b, 0, &x), TSOCK_EAGAIN);
	assert_int_equal(tsock_next(b, 0, &x), TSOCK_EAGAIN);
	expect_return_awaited(b, 0);
}

/* The other thread returns without this one. */
static void one_that_another_thread_reads_is_waited_for(void **state)
{
	struct served v;
	pthread_t thread;
	tsock_batch *x;
	tsock *a;
	void *b;

	(void)state;
	served_open_as(&v, "again", N, RING, MAX_BATCH, "kind=test\n");
	assert_int_equal(pthread_create(&thread, NULL, begin_elsewhere, &v), 0);
	pthread_join(thread, &b);
	tsock_serve_close(v.s);
	served_start_as(&v, "again", N, RING, MAX_BATCH, "kind=test\n");
	resume_further_on(&v, &a, 0);
	assert_int_equal(tsock_next(a, 500, &x), TSOCK_EAGAIN);
	assert_int_equal(tsock_next(b, PATIENCE_MS, &x), 0);
	assert_int_equal(tsock_batch_seq(x), 0);
	tsock_batch_release(x);
	tsock_close(a);
	tsock_close(b);
	served_stop(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			two_in_one_thread_are_told_that_they_block_each_other),
		cmocka_unit_test(through_views_too),
		cmocka_unit_test(a_loop_inside_the_first_batch_of_another),
		cmocka_unit_test(a_view_s_reader_shortly_before_an_epoch_s_end),
		cmocka_unit_test(in_turn_with_timeouts_is_fine),
		cmocka_unit_test(
			another_threads_reader_is_waited_for_and_named_once),
		cmocka_unit_test(batches_in_other_hands_are_no_deadlock),
		cmocka_unit_test(one_that_has_not_noticed_the_restart_is_named),
		cmocka_unit_test(one_that_found_no_producer_is_named),
		cmocka_unit_test(one_that_another_thread_reads_is_waited_for),
	};

	tsock_set_logger(log_line, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
