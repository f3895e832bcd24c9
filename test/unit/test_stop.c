/* SPDX-License-Identifier: MIT */
/*
 * test_stop.c - a stream is ended for good: those that read it then get nothing
 * more, whoever comes later finds a new one.
 */
#include "test/lib/inproc.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/socket.h"
#include "wire/stop_file.h"

#define BATCH 20

static int end_of_epoch(tsock *t)
{
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, 20000, &b)) == 0)
		tsock_batch_release(b);
	return err;
}

/* What was made before is read first. */
static void read_to_the_end(tsock *t)
{
	int err;

	while ((err = end_of_epoch(t)) == TSOCK_EEPOCH)
		if ((err = tsock_begin_timed(t, 20000)) != 0)
			break;
	assert_int_equal(err, TSOCK_EENDED);
}

static void was_stopped_by_this_process(void)
{
	char want[64];

	snprintf(want, sizeof(want),
		 "the stream 'unit' was stopped by process %d (test_stop) at 2",
		 (int)getpid());
	assert_ptr_equal(strstr(tsock_errmsg(), want), tsock_errmsg());
}

static void serve_resumable(struct inproc *st)
{
	struct tsock_serve_opts o = inproc_opts(100);

	o.identity = "the same";
	o.resumable = 1;
	inproc_serve(st, &o);
}

static void who_reads_is_named_before_anything_ends(void **state)
{
	int64_t since = tsi_now_ns();
	struct inproc st;
	tsock *t, *idle;
	char want[64];

	(void)state;
	serve_resumable(&st);
	idle = inproc_join(BATCH, 0);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_stop("unit", 0, 5000), TSOCK_EREFUSED);
	snprintf(want, sizeof(want),
		 "1 process reads the stream: %d (test_stop)", (int)getpid());
	assert_string_equal(tsock_errmsg(), want);
	assert_int_equal(tsock_stopped("unit", since), 0);
	assert_int_equal(tsock_serve_stopped(st.s), 0);
	tsock_batch_release(inproc_next(t));
	/* A loader that only is connected is no reader. */
	tsock_leave(t);
	assert_int_equal(tsock_stop("unit", 0, 5000), 0);
	assert_int_equal(tsock_serve_stopped(st.s), 1);
	assert_int_equal(tsock_serve_drained(st.s), 1);
	inproc_stop(&st);
	assert_int_equal(tsock_begin_timed(idle, 5000), TSOCK_EENDED);
	was_stopped_by_this_process();
	tsock_close(idle);
	tsock_close(t);
}

static void readers_get_the_end_and_wait_for_no_producer(void **state)
{
	struct inproc st, next;
	int64_t since = tsi_now_ns();
	tsock *t, *late;

	(void)state;
	serve_resumable(&st);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	assert_int_equal(tsock_stop("unit", 1, 5000), 0);
	read_to_the_end(t);
	was_stopped_by_this_process();
	inproc_stop(&st);
	assert_int_equal(tsock_stopped("unit", since), TSOCK_EENDED);
	was_stopped_by_this_process();
	assert_int_equal(tsock_begin_timed(t, 5000), TSOCK_EENDED);
	/* Not even for one that somebody starts. */
	serve_resumable(&next);
	assert_int_equal(tsock_begin_timed(t, 5000), TSOCK_EENDED);
	was_stopped_by_this_process();
	/* A reader that comes after that reads it. */
	late = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(late), 0);
	assert_int_equal(end_of_epoch(late), TSOCK_EEPOCH);
	tsock_close(late);
	tsock_close(t);
	inproc_stop(&next);
}

/* The producer before was killed. */
static void who_waits_for_the_next_producer_waits_no_longer(void **state)
{
	int ready[2];
	tsock_batch *b;
	pid_t pid;
	tsock *t;
	char c;
	int err;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct inproc st;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_resumable(&st);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* What was made is read first. */
	do {
		err = tsock_next(t, 200, &b);
		if (!err)
			tsock_batch_release(b);
		else if (err == TSOCK_EEPOCH)
			err = tsock_begin_timed(t, 200);
	} while (!err);
	assert_int_equal(err, TSOCK_EAGAIN);
	assert_int_equal(tsock_stop("unit", 0, 5000), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(),
			       "1 process waits for the next producer of the "
			       "stream: "));
	assert_int_equal(tsock_stop("unit", 1, 5000), 0);
	assert_int_equal(tsock_next(t, 5000, &b), TSOCK_EENDED);
	was_stopped_by_this_process();
	tsock_close(t);
	close(ready[0]);
	close(ready[1]);
}

static void what_is_not_there_is_not_stopped(void **state)
{
	(void)state;
	assert_int_equal(tsock_stop("nobody", 0, 1000), TSOCK_ENOPROD);
	assert_non_null(
		strstr(tsock_errmsg(), "serves a stream called nobody"));
	assert_int_equal(tsock_stopped("nobody", 0), 0);
}

/* A producer that does what it is asked to do, and ends before it answers. */
static void *stop_and_end(void *listener)
{
	struct tsi_address a;

	struct pollfd asked = { .fd = *(int *)listener, .events = POLLIN };

	while (poll(&asked, 1, -1) < 1)
		;
	if (!tsi_address_choose("curt", &a))
		tsi_stop_file_write(&a, "process 1");
	close(asked.fd);
	return NULL;
}

static void
an_answer_that_is_lost_as_the_producer_ends_isnt_missed(void **state)
{
	struct tsi_address a;
	pthread_t thread;
	char path[256];
	int listener;

	(void)state;
	assert_int_equal(tsi_address_choose("curt", &a), 0);
	listener = tsi_socket_listen(tsi_address_fdpass(&a), SOCK_SEQPACKET, 8);
	assert_true(listener >= 0);
	assert_int_equal(pthread_create(&thread, NULL, stop_and_end, &listener),
			 0);
	assert_int_equal(tsock_stop("curt", 0, 5000), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(tsock_stop("curt", 0, 5000), TSOCK_ENOPROD);
	snprintf(path, sizeof(path), "%s/curt.stopped", tsi_address_folder(&a));
	unlink(path);
	unlink(tsi_address_fdpass(&a));
}

static void the_file_of_another_boot_says_nothing(void **state)
{
	struct tsi_address a;
	char who[TSI_STOP_WHO], path[256];
	int64_t since = tsi_now_ns();
	FILE *f;

	(void)state;
	assert_int_equal(tsi_address_choose("boot", &a), 0);
	assert_int_equal(tsi_stop_file_write(&a, "me\nand\x1byou"), 0);
	assert_true(tsi_stop_file_since(&a, since, who));
	assert_string_equal(who, "me\\nand\\x1byou");
	assert_false(tsi_stop_file_since(&a, tsi_now_ns(), who));
	snprintf(path, sizeof(path), "%s/boot.stopped", tsi_address_folder(&a));
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "another %lld me\n", (long long)tsi_now_ns());
	fclose(f);
	assert_false(tsi_stop_file_since(&a, since, who));
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "nonsense\n");
	fclose(f);
	assert_false(tsi_stop_file_since(&a, since, who));
	unlink(path);
}

static int begin(void **state)
{
	(void)state;
	inproc_open_folder();
	return 0;
}

static int end(void **state)
{
	struct tsi_address a;
	char path[256];

	(void)state;
	if (!tsi_address_choose("unit", &a)) {
		snprintf(path, sizeof(path), "%s/unit.stopped",
			 tsi_address_folder(&a));
		unlink(path);
	}
	inproc_close_folder();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_waits_for_the_next_producer_waits_no_longer),
		cmocka_unit_test(who_reads_is_named_before_anything_ends),
		cmocka_unit_test(readers_get_the_end_and_wait_for_no_producer),
		cmocka_unit_test(what_is_not_there_is_not_stopped),
		cmocka_unit_test(
			an_answer_that_is_lost_as_the_producer_ends_isnt_missed),
		cmocka_unit_test(the_file_of_another_boot_says_nothing),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
