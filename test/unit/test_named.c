/* SPDX-License-Identifier: MIT */
/*
 * test_named.c - a consumer that waits for long says for whom, in its log and
 * to who asks.
 */
#include "test/lib/inproc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64
#define PATIENCE "150" /* milliseconds */

/* Another consumer, or a producer, in a process of its own. */
struct other {
	pid_t pid;
	int go;   /* closed: it may begin */
	int done; /* a byte: it has come so far */
};

static char line[1024]; /* the last warning */
static _Atomic unsigned nlines;

static void note_line(void *arg, int level, const char *text)
{
	(void)arg;
	if (level != TSOCK_LOG_WARN ||
	    !strstr(text, "this consumer has waited"))
		return;
	snprintf(line, sizeof(line), "%s", text);
	nlines++;
}

static void reach(int done)
{
	if (write(done, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Takes a batch, and keeps it. */
static void hold(int done)
{
	tsock *t = inproc_join(BATCH, 0);
	tsock_batch *b;

	if (tsock_begin(t) || tsock_next(t, 20000, &b))
		_exit(1);
	reach(done);
}

static void serve(int done)
{
	struct inproc st;

	inproc_serve_n(&st, 1000);
	reach(done);
}

/* Forked before this process has a thread; it waits. */
static struct other begin_other(void (*what)(int done))
{
	int go[2], done[2];
	struct other o;
	char c;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(done), 0);
	o.pid = fork();
	assert_true(o.pid >= 0);
	if (!o.pid) {
		close(go[1]);
		close(done[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) != 0)
			_exit(1);
		what(done[1]);
	}
	close(go[0]);
	close(done[1]);
	o.go = go[1];
	o.done = done[0];
	return o;
}

static void await_other(const struct other *o)
{
	char c;

	close(o->go);
	assert_int_equal(read(o->done, &c, 1), 1);
	close(o->done);
}

static void end_other(const struct other *o)
{
	kill(o->pid, SIGKILL);
	assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
}

/* Take all that there is, and wait in calls of so long until a warning. */
static void take_until_warned(tsock *t, int timeout_ms)
{
	unsigned before = nlines;
	tsock_batch *b;
	int err;

	while (nlines == before) {
		err = tsock_next(t, timeout_ms, &b);
		if (!err)
			tsock_batch_release(b);
		else
			assert_int_equal(err, TSOCK_EAGAIN);
	}
}

/* Once this returns, none of its threads runs. */
static void stop_other(const struct other *o)
{
	int status;

	kill(o->pid, SIGSTOP);
	assert_int_equal(waitpid(o->pid, &status, WUNTRACED), o->pid);
	assert_true(WIFSTOPPED(status));
}

/* All that the ring has: less than an epoch. */
static void take_until_it_waits(tsock *t)
{
	tsock_batch *b;
	int err;

	while (!(err = tsock_next(t, 20, &b)))
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_EAGAIN);
}

/* In a stream that goes on when the other consumer gives its batch back. */
static void who_holds_it_up_is_named(uint32_t flags, int timeout_ms)
{
	struct other holder = begin_other(hold);
	char want[128], text[TSOCK_WAITS_FOR];
	struct tsock_stats st = { .size = sizeof(st) };
	struct inproc served;
	tsock_batch *b;
	tsock *t;

	inproc_serve_n(&served, 1000);
	await_other(&holder);
	t = inproc_join(BATCH, flags);
	assert_int_equal(tsock_begin(t), 0);
	take_until_warned(t, timeout_ms);
	assert_ptr_equal(strstr(line, "'unit': this consumer has waited "),
			 line);
	snprintf(want, sizeof(want),
		 " s for process %d (test_named), which holds 1 batch (64 "
		 "samples) and has given none back for ",
		 (int)holder.pid);
	assert_non_null(strstr(line, want));
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_non_null(strstr(line, strtok(text, ",")));
	assert_int_equal(tsock_query("unit", 5000, &st), 0);
	assert_int_equal(st.nwaits, 1);
	assert_int_equal(st.wait[0].pid, getpid());
	assert_int_equal(st.wait[0].for_pid, holder.pid);
	assert_int_equal(st.wait[0].kind, TSOCK_FOR_READER);
	end_other(&holder);
	b = inproc_next(t);
	tsock_batch_release(b);
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(tsock_query("unit", 5000, &st), 0);
	assert_int_equal(st.nwaits, 0);
	tsock_close(t);
	inproc_stop(&served);
}

static void in_one_long_call(void **state)
{
	(void)state;
	who_holds_it_up_is_named(0, 1000);
}

static void in_many_short_ones(void **state)
{
	(void)state;
	who_holds_it_up_is_named(0, 3);
}

static void in_calls_that_do_not_wait(void **state)
{
	(void)state;
	who_holds_it_up_is_named(0, 0);
}

static void in_one_that_spins(void **state)
{
	(void)state;
	who_holds_it_up_is_named(TSOCK_SPIN, 1000);
}

static void
a_producer_that_makes_nothing_is_named_with_what_it_does(void **state)
{
	char text[TSOCK_WAITS_FOR];
	struct inproc served;
	tsock *t;

	(void)state;
	inproc_serve_n(&served, 1000);
	atomic_store(&served.upto, 0);
	tsock_serve_doing(served.s, "reading a slow disk");
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	take_until_warned(t, 1000);
	assert_non_null(strstr(line, " s for its producer (process "));
	assert_non_null(
		strstr(line, ", which has been reading a slow disk for "));
	tsock_serve_doing(served.s, NULL);
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_non_null(strstr(text, ", which is making samples: "));
	tsock_close(t);
	atomic_store(&served.upto, UINT64_MAX);
	inproc_stop(&served);
}

static void a_producer_that_does_not_answer_is_named(void **state)
{
	struct other producer = begin_other(serve);
	char text[TSOCK_WAITS_FOR];
	unsigned tries = 0;
	int err = 0;
	tsock *t;

	(void)state;
	await_other(&producer);
	t = inproc_join(BATCH, 0);
	/* The producer is stopped before the join, and once more after it. */
	stop_other(&producer);
	for (nlines = 0; !nlines; err = tsock_begin_timed(t, 100))
		assert_int_equal(err == TSOCK_EAGAIN || !err, 1);
	assert_non_null(strstr(line, ", which doesn't answer: is it stopped?"));
	kill(producer.pid, SIGCONT);
	while (err == TSOCK_EAGAIN)
		err = tsock_begin_timed(t, 20000);
	assert_int_equal(err, 0);
	stop_other(&producer);
	take_until_it_waits(t);
	/* Answers to what was asked before it stopped may still come. */
	do
		assert_int_equal(tsock_waits_for(t, 100, text, sizeof(text)),
				 0);
	while (!strstr(text, ", which doesn't answer: is it stopped?") &&
	       tries++ < 50);
	assert_in_range(tries, 0, 50);
	/* LEAVE is answered by nobody, so this takes its second. */
	tsock_close(t);
	end_other(&producer);
}

static void a_producer_that_does_not_greet_is_named(void **state)
{
	struct other producer = begin_other(serve);
	struct tsock_opts o = TSOCK_OPTS_INIT;
	char want[128];
	tsock *t;

	(void)state;
	await_other(&producer);
	stop_other(&producer);
	o.batch_size = BATCH;
	o.timeout_ms = 4000;
	line[0] = '\0';
	assert_int_equal(tsock_open("unit", &o, &t), TSOCK_ENOPROD);
	snprintf(want, sizeof(want),
		 " s for its producer (process %d), which doesn't answer: is "
		 "it stopped?",
		 (int)producer.pid);
	assert_ptr_equal(strstr(line, "'unit': this consumer has waited "),
			 line);
	assert_non_null(strstr(line, want));
	end_other(&producer);
}

static void a_warning_comes_again_after_six_times_as_long(void **state)
{
	struct timespec from, to;
	struct inproc served;
	tsock *t;

	(void)state;
	inproc_serve_n(&served, 1000);
	atomic_store(&served.upto, 0);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	take_until_warned(t, 1000);
	clock_gettime(CLOCK_MONOTONIC, &from);
	take_until_warned(t, 1000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true((to.tv_sec - from.tv_sec) * 1000 +
			    (to.tv_nsec - from.tv_nsec) / 1000000 >
		    5 * atoi(PATIENCE));
	tsock_close(t);
	atomic_store(&served.upto, UINT64_MAX);
	inproc_stop(&served);
}

static void *release(void *b)
{
	tsock_batch_release(b);
	return NULL;
}

/* Another thread gives the first one back, and may have the second one. */
static void hand_over(tsock_batch *b)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, release, b), 0);
	pthread_join(thread, NULL);
}

static void assert_told(tsock *t, const char *want)
{
	char text[TSOCK_WAITS_FOR], *at = strstr(line, want);

	assert_ptr_equal(strstr(line, "'unit': this consumer has waited "),
			 line);
	assert_non_null(at);
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_string_equal(text, at);
}

static void what_its_own_threads_hold_is_named(int timeout_ms)
{
	struct inproc served;
	tsock_batch *b[16];
	unsigned n = 0, before;
	char text[TSOCK_WAITS_FOR];
	tsock *t;
	int err;

	inproc_serve_n(&served, 1000);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	hand_over(inproc_next(t));
	while (n < 16 && (err = tsock_next(t, 200, &b[n])) != TSOCK_EAGAIN) {
		assert_int_equal(err, 0);
		n++;
	}
	assert_int_equal(n, 4);
	for (before = nlines; nlines == before;)
		assert_int_equal(tsock_next(t, timeout_ms, &b[n]),
				 TSOCK_EAGAIN);
	assert_told(t, "other threads of its process, which hold 4 batches: "
		       "release them, or open with TSOCK_WRITABLE, by which "
		       "batches may be kept");
	hand_over(b[0]);
	b[0] = inproc_next(t);
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	while (n)
		tsock_batch_release(b[--n]);
	tsock_close(t);
	inproc_stop(&served);
}

static void own_threads_are_named_in_one_long_call(void **state)
{
	(void)state;
	what_its_own_threads_hold_is_named(1000);
}

static void own_threads_are_named_in_calls_that_do_not_wait(void **state)
{
	(void)state;
	what_its_own_threads_hold_is_named(0);
}

static void batches_of_an_epoch_that_was_left_are_named(int timeout_ms)
{
	char text[TSOCK_WAITS_FOR];
	struct inproc served;
	tsock_batch *b;
	tsock *t;

	inproc_serve_n(&served, 1000);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	hand_over(inproc_next(t));
	b = inproc_next(t);
	tsock_leave(t);
	assert_int_equal(tsock_begin(t), 0);
	take_until_warned(t, timeout_ms);
	assert_told(t, "other threads of its process, which hold 1 batch of an "
		       "epoch that was left: release them, or open with "
		       "TSOCK_WRITABLE");
	hand_over(b);
	tsock_batch_release(inproc_next(t));
	assert_int_equal(tsock_waits_for(t, 5000, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	tsock_close(t);
	inproc_stop(&served);
}

static void an_epoch_that_was_left_is_named_in_one_long_call(void **state)
{
	(void)state;
	batches_of_an_epoch_that_was_left_are_named(1000);
}

static void an_epoch_that_was_left_is_named_in_short_calls(void **state)
{
	(void)state;
	batches_of_an_epoch_that_was_left_are_named(3);
}

static int begin(void **state)
{
	(void)state;
	setenv("TSOCK_PATIENCE_MS", PATIENCE, 1);
	inproc_open_folder();
	tsock_set_logger(note_line, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	tsock_set_logger(NULL, NULL);
	inproc_close_folder();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_one_long_call),
		cmocka_unit_test(in_many_short_ones),
		cmocka_unit_test(in_calls_that_do_not_wait),
		cmocka_unit_test(in_one_that_spins),
		cmocka_unit_test(
			a_producer_that_makes_nothing_is_named_with_what_it_does),
		cmocka_unit_test(a_producer_that_does_not_answer_is_named),
		cmocka_unit_test(a_producer_that_does_not_greet_is_named),
		cmocka_unit_test(a_warning_comes_again_after_six_times_as_long),
		cmocka_unit_test(own_threads_are_named_in_one_long_call),
		cmocka_unit_test(
			own_threads_are_named_in_calls_that_do_not_wait),
		cmocka_unit_test(
			an_epoch_that_was_left_is_named_in_one_long_call),
		cmocka_unit_test(
			an_epoch_that_was_left_is_named_in_short_calls),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
