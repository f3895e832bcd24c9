/* SPDX-License-Identifier: MIT */
/*
 * test_call_timeouts.c - a consumer's calls wait no longer than they are told,
 * whatever they wait for, and what they began goes on in the next call.
 *
 * This program's poll(), zmq_poll(), connect() and accept4() stand in front of
 * the real ones and look at what they are called with.
 */
#include "test/lib/inproc.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"

#define MS 20

static __thread bool watched; /* is this thread inside a call? */
static __thread int waits, longest_ms;
static __thread unsigned connects;
static _Atomic bool shut; /* nobody is accepted */

static void note(long timeout_ms)
{
	if (!watched)
		return;
	waits++;
	/* Minus one is for ever. */
	if (timeout_ms < 0)
		longest_ms = INT32_MAX;
	else if (timeout_ms > longest_ms)
		longest_ms = (int)timeout_ms;
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	note(timeout_ms);
	return ppoll(fds, n, timeout_ms < 0 ? NULL : &t, NULL);
}

int zmq_poll(zmq_pollitem_t *items, int n, long timeout_ms)
{
	int (*real)(zmq_pollitem_t *, int, long);

	*(void **)&real = dlsym(RTLD_NEXT, "zmq_poll");
	note(timeout_ms);
	return real(items, n, timeout_ms);
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	connects += watched;
	return (int)syscall(SYS_connect, fd, address, len);
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	if (!atomic_load(&shut))
		return (int)syscall(SYS_accept4, fd, address, len, flags);
	errno = EAGAIN;
	return -1;
}

static void watch(void)
{
	watched = true;
	waits = longest_ms = 0;
}

/* The call has waited, and no longer than that. */
static void waited_at_most(int ms)
{
	watched = false;
	assert_in_range(waits, 1, INT32_MAX);
	assert_in_range(longest_ms, 0, ms);
}

static tsock *open_leaving(void)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = 20;
	o.between = TSOCK_BETWEEN_LEAVE;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	return t;
}

static void joining_ends_in_time(void **state)
{
	struct inproc st;
	int err;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 40);
	t = open_leaving();
	do {
		watch();
		err = tsock_begin_timed(t, MS);
		waited_at_most(MS);
	} while (err == TSOCK_EAGAIN);
	assert_int_equal(err, 0);
	tsock_close(t);
	inproc_stop(&st);
}

static void a_connection_that_is_not_answered_goes_on(void **state)
{
	int err = TSOCK_EAGAIN, calls = 0;
	int64_t begun = tsi_now_ms();
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 40);
	t = open_leaving();
	atomic_store(&shut, true);
	connects = 0;
	while (err == TSOCK_EAGAIN) {
		watch();
		err = tsock_begin_timed(t, 0);
		watched = false;
		if (connects && ++calls == 10)
			atomic_store(&shut, false);
	}
	assert_int_equal(err, 0);
	assert_in_range(calls, 10, INT32_MAX);
	/* A connection is given up after a second. */
	assert_in_range(connects, 1, 1 + (tsi_now_ms() - begun) / 900);
	tsock_close(t);
	assert_int_equal(inproc_consumers(&st), 0);
	inproc_stop(&st);
}

static void leaving_at_an_epochs_end_ends_in_time(void **state)
{
	static const int ms[] = { MS, 0 };
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 40);
	t = open_leaving();
	for (unsigned i = 0; i < 2; i++) {
		tsock_batch *b;

		assert_int_equal(tsock_begin(t), 0);
		tsock_batch_release(inproc_next(t));
		tsock_batch_release(inproc_next(t));
		watch();
		assert_int_equal(tsock_next(t, ms[i], &b), TSOCK_EEPOCH);
		watched = false;
		assert_in_range(longest_ms, 0, ms[i]);
		assert_true(waits || !ms[i]);
		/* What was not confirmed can still be waited for. */
		tsock_leave(t);
		assert_int_equal(inproc_consumers(&st), 0);
	}
	tsock_close(t);
	inproc_stop(&st);
}

static void leaving_an_epoch_for_another_ends_in_time(void **state)
{
	struct inproc st;
	int err;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 40);
	t = open_leaving();
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	do {
		watch();
		err = tsock_begin_timed(t, MS);
		waited_at_most(MS);
	} while (err == TSOCK_EAGAIN);
	assert_int_equal(err, 0);
	watch();
	tsock_leave_timed(t, MS);
	waited_at_most(MS);
	tsock_close(t);
	inproc_stop(&st);
}

static void what_a_closed_handle_said_last_arrives(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 40);
	for (unsigned i = 0; i < 20; i++) {
		t = open_leaving();
		assert_int_equal(tsock_begin(t), 0);
		tsock_batch_release(inproc_next(t));
		tsock_batch_release(inproc_next(t));
		assert_int_equal(tsock_next(t, 0, &b), TSOCK_EEPOCH);
		tsock_close(t);
	}
	while (inproc_consumers(&st))
		tsi_pause_until(INT64_MAX, 1);
	inproc_stop(&st);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(joining_ends_in_time),
		cmocka_unit_test(a_connection_that_is_not_answered_goes_on),
		cmocka_unit_test(leaving_at_an_epochs_end_ends_in_time),
		cmocka_unit_test(leaving_an_epoch_for_another_ends_in_time),
		cmocka_unit_test(what_a_closed_handle_said_last_arrives),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
