/* SPDX-License-Identifier: MIT */
/*
 * test_leaving.c - who leaves a producer that stands still is no reader of it
 * when it goes on, whatever becomes of messages.
 */
#include "test/lib/reader.h"

static struct source src = { .name = "leaving",
			     .n = 2000,
			     .ring = 256,
			     .max_batch = 16,
			     .payload = 400 };

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

static tsock *begin(tsock_batch **b)
{
	struct reader r = { .src = &src, .batch = 16 };
	tsock *t = reader_connect(&r);

	assert_int_equal(tsock_begin_timed(t, 60000), 0);
	assert_int_equal(tsock_next(t, 60000, b), 0);
	return t;
}

static void a_handle_that_is_closed_leaves(void **state)
{
	pid_t producer = stream_start_producer(&src);
	tsock_batch *b;
	tsock *t = begin(&b);

	(void)state;
	tsock_batch_release(b);
	stop(producer);
	tsock_close(t);
	kill(producer, SIGCONT);
	stream_wait_readers(src.name, 0);
	proc_kill_and_reap(producer);
}

static void a_batch_that_outlives_its_handle_leaves_at_its_end(void **state)
{
	pid_t producer = stream_start_producer(&src);
	tsock_batch *b;
	tsock *t = begin(&b);

	(void)state;
	tsock_close(t);
	stream_wait_readers(src.name, 1);
	stop(producer);
	tsock_batch_release(b);
	kill(producer, SIGCONT);
	stream_wait_readers(src.name, 0);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_handle_that_is_closed_leaves,
					  proc_end_children),
		cmocka_unit_test_teardown(
			a_batch_that_outlives_its_handle_leaves_at_its_end,
			proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("leaving", tests, NULL, NULL);
}
