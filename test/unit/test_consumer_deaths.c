/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_deaths.c - a consumer forks, and its producer dies, stops or is
 * another one.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "consumer/request.h"
#include "test/lib/inproc.h"

#define LONG_MS 60000 /* no test waits for so long */

static void a_forked_child_is_told_and_harms_nobody(void **state)
{
	struct inproc st;
	tsock_batch *b, *none;
	struct tsock_info info = { .size = sizeof(info) };
	int status;
	pid_t pid;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 500);
	t = inproc_join(32, TSOCK_WRITABLE);
	assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int bad = !inproc_good(b, 500);

		bad |= (tsock_next(t, 0, &none) != TSOCK_EFORK) << 1;
		bad |= (tsock_begin(t) != TSOCK_EFORK) << 2;
		bad |= (tsock_get_info(t, &info) != TSOCK_EFORK) << 3;
		tsock_batch_release(b);
		tsock_leave(t);
		tsock_close(t);
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(inproc_good(b, 500));
	tsock_batch_release(b);
	for (unsigned i = 0; i < 10; i++) {
		b = inproc_next(t);
		assert_true(inproc_good(b, 500));
		tsock_batch_release(b);
	}
	tsock_close(t);
	inproc_stop(&st);
}

/* This program, started again as a producer. */
static void serve_as_told(const char *upto, const char *ready)
{
	struct tsock_serve_opts o = inproc_opts(500);
	struct inproc st;

	/* Also where a test fails before it ends this process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(&st, 0, sizeof(st));
	st.n = 500;
	atomic_store(&st.upto, strtoull(upto, NULL, 10));
	if (tsock_serve_open("unit", &o, &st.s) ||
	    write((int)strtol(ready, NULL, 10), "r", 1) != 1)
		_exit(1);
	inproc_work(&st);
	_exit(0);
}

/*
 * A producer in a process of its own, up when this returns.  A forked child that
 * starts threads would be at the mercy of what ThreadSanitizer remembers of its
 * parent's, so the child is a program anew.
 */
static pid_t start_producer(uint64_t upto)
{
	char text[32], fd[16], byte;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)upto);
	snprintf(fd, sizeof(fd), "%d", ready[1]);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		execl("/proc/self/exe", "producer", text, fd, (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void kill_it(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void a_dead_producer_is_noticed_within_a_second(void **state)
{
	tsock_batch *held, *b;
	int64_t begin;
	pid_t pid;
	tsock *t;
	int err;

	(void)state;
	for (uint32_t flags = 0; flags <= TSOCK_SPIN; flags += TSOCK_SPIN) {
		pid = start_producer(120);
		t = inproc_join(32, flags);
		assert_int_equal(tsock_begin(t), 0);
		held = inproc_next(t);
		kill_it(pid);
		begin = tsi_now_ms();
		/* What was published before is still good. */
		while (!(err = tsock_next(t, -1, &b))) {
			assert_true(inproc_good(b, 500));
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_ELOST);
		assert_true(tsi_now_ms() - begin < LONG_MS);
		assert_non_null(strstr(tsock_errmsg(), "unit"));
		assert_non_null(strstr(tsock_errmsg(), "died"));
		assert_true(inproc_good(held, 500));
		assert_int_equal(tsock_next(t, 0, &b), TSOCK_ELOST);
		assert_int_equal(tsock_begin(t), TSOCK_ELOST);
		assert_true(tsi_now_ms() - begin < 2 * LONG_MS);
		tsock_batch_release(held);
		tsock_close(t);
	}
}

/* Asked for by short slices, as Python does. */
static int begin_by_slices(tsock *t)
{
	int err;

	do
		err = tsock_begin_timed(t, 20);
	while (err == TSOCK_EAGAIN);
	return err;
}

static void another_producer_is_not_the_same_stream(void **state)
{
	struct tsock_stats s = { .size = sizeof(s) };
	tsock_batch *b;
	pid_t pid;
	tsock *t;

	(void)state;
	/* In an epoch, and after one, whose end is no place of the other. */
	for (unsigned epochs = 0; epochs < 3; epochs++) {
		pid = start_producer(UINT64_MAX);
		t = inproc_join(32, 0);
		for (unsigned e = 0; e < epochs; e++) {
			assert_int_equal(begin_by_slices(t), 0);
			while (!tsock_next(t, 20000, &b))
				tsock_batch_release(b);
		}
		if (!epochs) {
			assert_int_equal(begin_by_slices(t), 0);
			tsock_batch_release(inproc_next(t));
		}
		tsock_leave(t);
		kill_it(pid);
		pid = start_producer(UINT64_MAX);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(begin_by_slices(t), TSOCK_ELOST);
			assert_non_null(strstr(tsock_errmsg(), "restarted"));
			assert_non_null(strstr(tsock_errmsg(), "open another"));
		}
		/* The consumer never joined. */
		assert_int_equal(tsock_query("unit", 20000, &s), 0);
		assert_int_equal(s.head, 0);
		tsock_close(t);
		t = inproc_join(32, 0);
		assert_int_equal(tsock_begin(t), 0);
		b = inproc_next(t);
		assert_int_equal(tsock_batch_seq(b), 0);
		tsock_batch_release(b);
		tsock_close(t);
		kill_it(pid);
	}
}

static void a_stopped_producer_is_not_dead(void **state)
{
	tsock_batch *b;
	pid_t pid;
	tsock *t;
	int err;

	(void)state;
	pid = start_producer(UINT64_MAX);
	t = inproc_join(100, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	while (!(err = tsock_next(t, 400, &b)))
		tsock_batch_release(b);
	/* All that was there, perhaps to the epoch's end. */
	assert_true(err == TSOCK_EAGAIN || err == TSOCK_EEPOCH);
	assert_int_equal(kill(pid, SIGCONT), 0);
	if (err == TSOCK_EEPOCH)
		assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	assert_true(inproc_good(b, 500));
	tsock_batch_release(b);
	tsock_close(t);
	kill_it(pid);
}

/* Stopped when this returns. */
static void stop_it(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

static void a_stopped_producer_is_left_as_soon_as_was_asked(void **state)
{
	struct tsock_stats s = { .size = sizeof(s) };
	int64_t least = LONG_MS;
	pid_t pid;
	tsock *t;

	(void)state;
	pid = start_producer(UINT64_MAX);
	t = inproc_join(32, 0);
	assert_int_equal(tsock_leave_timed(t, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		int64_t begin;

		assert_int_equal(tsock_begin(t), 0);
		tsock_batch_release(inproc_next(t));
		stop_it(pid);
		begin = tsi_now_ms();
		assert_int_equal(tsock_leave_timed(t, 0), TSOCK_EAGAIN);
		assert_int_equal(tsock_leave_timed(t, 1), TSOCK_EAGAIN);
		if (tsi_now_ms() - begin < least)
			least = tsi_now_ms() - begin;
		assert_int_equal(kill(pid, SIGCONT), 0);
		assert_int_equal(tsock_leave_timed(t, -1), 0);
		assert_int_equal(tsock_leave_timed(t, 0), 0);
		assert_int_equal(tsock_query("unit", 20000, &s), 0);
		assert_int_equal(s.nrows, 0);
	}
	assert_in_range(least, 0, TSI_LEAVE_MS - 1);
	tsock_close(t);
	kill_it(pid);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forked_child_is_told_and_harms_nobody),
		cmocka_unit_test(a_dead_producer_is_noticed_within_a_second),
		cmocka_unit_test(another_producer_is_not_the_same_stream),
		cmocka_unit_test(a_stopped_producer_is_not_dead),
		cmocka_unit_test(
			a_stopped_producer_is_left_as_soon_as_was_asked),
	};

	int failed;

	if (argc == 3)
		serve_as_told(argv[1], argv[2]);
	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
