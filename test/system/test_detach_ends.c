/* SPDX-License-Identifier: MIT */
/*
 * test_detach_ends.c - TSOCK_SLOW_DETACH: a producer that dies, or whose stream
 * ends, while one of its readers is detached.
 */
#include "test/lib/detached_reader.h"
#include "test/lib/next_producer.h"

static void who_is_detached_goes_on_with_the_next_producer(void **state)
{
	struct source src = detached_source("restart");
	struct reader r = { .src = &src, .batch = 16 };
	struct reader me = { .src = &src, .batch = 16 };
	struct trail w = { 0 };
	struct next_producer next;
	pid_t producer, pid;
	tsock *t;

	(void)state;
	src.identity = "source=detached";
	next = next_producer_prepare(src);
	producer = stream_start_producer(&src);
	pid = detached_start_stopping(&r, 1, true);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	detached_read_ahead(t, &me, &w, 64 * 6);
	assert_int_equal(stream_stats("restart").detached, 1);
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&next);
	/* The detached reader isn't waited for, which would take 60 s. */
	assert_true(detached_read_ahead(t, &me, &w, 64 * 3) < 30);
	assert_int_equal(w.missed, 0);
	kill(pid, SIGCONT);
	detached_read_until_ended(t, &me, &w, pid);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static pid_t start_outlived(const struct reader *r)
{
	pid_t pid = proc_spawn();
	struct trail w = { 0 };
	tsock_batch *b;
	tsock *t;

	if (pid)
		return detached_await_stop(pid);
	t = reader_connect(r);
	need(tsock_begin(t) == 0);
	b = detached_trail_take(r, t, &w);
	raise(SIGSTOP);
	reader_check_batch(r, b, 0);
	tsock_batch_release(b);
	need(tsock_next(t, -1, &b) == TSOCK_EENDED);
	need(tsock_missed(t) == r->src->n - r->batch);
	need(tsock_begin(t) == TSOCK_EENDED);
	tsock_close(t);
	_exit(0);
}

/* The stream has ended, though another producer could continue it. */
static void a_stream_that_ended_without_a_reader_has_ended(void **state)
{
	struct source src = detached_source("over");
	struct reader r = { .src = &src, .batch = 16 };
	struct trail w = { 0 };
	pid_t producer, pid;
	tsock *t;

	(void)state;
	src.epochs = 1;
	src.identity = "source=over";
	producer = stream_start_producer(&src);
	pid = start_outlived(&r);
	t = reader_connect(&r);
	need(tsock_begin(t) == 0);
	detached_read_ahead(t, &r, &w, src.n);
	tsock_close(t);
	assert_int_equal(proc_ended(producer), 0);
	kill(pid, SIGCONT);
	assert_int_equal(proc_ended(pid), 0);
}

#define TEST(f) cmocka_unit_test_teardown(f, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_is_detached_goes_on_with_the_next_producer),
		TEST(a_stream_that_ended_without_a_reader_has_ended),
	};

	proc_own_folder();
	tsock_set_logger(proc_log_line, NULL);
	return cmocka_run_group_tests_name("detach, ends", tests, NULL, NULL);
}
