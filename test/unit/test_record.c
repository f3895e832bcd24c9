/* SPDX-License-Identifier: MIT */
/*
 * test_record.c - who reads a stream, in the file that a producer's death
 * leaves behind.
 */
#include "serve/record.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "serve/conn.h"
#include "serve/readers_record.h"
#include "test/lib/inproc.h"
#include "wire/record_file.h"

/* ---- a file system that is slow ---- */

#define PATIENCE_S 40

static _Atomic int slow; /* the next write waits until it may go on */
static sem_t entered, may_go;
static _Atomic int waited_in_vain;

static bool wait_for(sem_t *s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	while (sem_timedwait(s, &until))
		if (errno != EINTR)
			return false;
	return true;
}

/* In place of libc's. */
ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	if (atomic_exchange(&slow, 0)) {
		sem_post(&entered);
		if (!wait_for(&may_go))
			atomic_store(&waited_in_vain, 1);
	}
	return syscall(SYS_pwrite64, fd, from, len, at);
}

/* ---- the file ---- */

static char folder[] = "/tmp/tsock-record-XXXXXX";
static struct tsi_record r;

static struct tsi_reader_row row_of(uint8_t name, uint64_t mark)
{
	struct tsi_reader_row row = { .pid = name, .born = 7, .mark = mark };

	memset(row.nonce, name, sizeof(row.nonce));
	return row;
}

static unsigned recorded(uint64_t stream, uint64_t *marks)
{
	struct tsi_reader_row row;
	unsigned n = 0;

	tsi_record_init(&r);
	tsi_record_open(&r, folder, "s", stream, 1);
	*marks = 0;
	for (unsigned i = 0; tsi_record_next(&r, &i, &row); i++, n++)
		*marks += row.mark;
	return n;
}

/* As a death leaves it, when what had changed was written. */
static void die(void)
{
	if (tsi_record_collect(&r))
		tsi_record_write(&r);
	assert_false(tsi_record_collect(&r));
	close(r.fd);
}

static void what_a_producer_recorded_outlives_it(void **state)
{
	struct tsi_reader_row a = row_of(1, 100), b = row_of(2, 20);
	uint64_t marks;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &a);
	tsi_record_put(&r, &b);
	tsi_record_mark(&r, b.nonce, 30, false);
	die();
	assert_int_equal(recorded(5, &marks), 2);
	assert_int_equal(marks, 130);
	tsi_record_drop(&r, a.nonce);
	die();
	assert_int_equal(recorded(5, &marks), 1);
	assert_int_equal(marks, 30);
	/* With readers an end in good order is like a death. */
	tsi_record_mark(&r, b.nonce, 31, false);
	tsi_record_close(&r, true);
	assert_int_equal(recorded(5, &marks), 1);
	assert_int_equal(marks, 31);
	die();
	/* Nothing is known of another stream. */
	assert_int_equal(recorded(6, &marks), 0);
	tsi_record_close(&r, true);
	assert_int_equal(access(r.path, F_OK), -1);
}

/* Readers that came or went since would be missed or waited for. */
static void what_cannot_be_kept_up_to_date_does_not_stay(void **state)
{
	struct rlimit limit, none = { 0, 0 };
	struct tsi_reader_row a = row_of(1, 100);
	uint64_t marks;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &a);
	die();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(recorded(5, &marks), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	tsi_record_close(&r, true);
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_close(&r, false);
}

static struct tsi_conn conn_to(pid_t pid)
{
	struct tsi_conn c;

	tsi_conn_init(&c);
	c.pid = c.sure_pid = (uint32_t)pid;
	c.pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
	memset(c.nonce, (int)(pid & 127) | 1, sizeof(c.nonce));
	return c;
}

/* The next producer would wait for it until the time of grace is over. */
static void who_died_while_it_joined_is_not_recorded(void **state)
{
	static const struct tsi_msg_join join;
	static struct tsi_readers readers;
	struct tsi_conn dead, alive = conn_to(getpid());
	struct tsi_reader_row row;
	siginfo_t info;
	pid_t pid = fork();
	unsigned i = 0;

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	dead = conn_to(pid);
	if (dead.pidfd < 0) {
		waitpid(pid, NULL, 0);
		skip();
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	tsi_record_init(&readers.record);
	tsi_record_open(&readers.record, folder, "s", 5, 1);
	tsi_readers_record(&readers, &join, &dead, 100, false);
	assert_false(tsi_record_next(&readers.record, &i, &row));
	tsi_readers_record(&readers, &join, &alive, 100, false);
	i = 0;
	assert_true(tsi_record_next(&readers.record, &i, &row));
	assert_int_equal(row.pid, getpid());
	tsi_record_close(&readers.record, false);
	close(dead.pidfd);
	close(alive.pidfd);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_file_that_makes_no_sense_is_as_good_as_none(void **state)
{
	struct tsi_reader_row a = row_of(1, 100);
	uint64_t marks;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &a);
	die();
	assert_int_equal(truncate(r.path, 200), 0);
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &a);
	/* The record was removed: all of it is written again. */
	assert_int_equal(unlink(r.path), 0);
	tsi_record_again(&r, folder, "s");
	die();
	assert_int_equal(recorded(5, &marks), 1);
	tsi_record_close(&r, false);
	assert_int_equal(access(r.path, F_OK), -1);
	/* Where there can't be a file, the stream does without. */
	assert_int_equal(mkdir(r.path, 0700), 0);
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &a);
	tsi_record_close(&r, true);
	assert_int_equal(rmdir(r.path), 0);
}

/* Readers that join when it is full aren't waited for. */
static void it_has_one_size_however_many_read(void **state)
{
	struct stat st;
	uint64_t marks;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	for (unsigned i = 1; i <= 2 * TSI_RECORD_ROWS; i++) {
		struct tsi_reader_row row = row_of(1, 1);

		memcpy(row.nonce, &i, sizeof(i));
		tsi_record_put(&r, &row);
	}
	die();
	assert_int_equal(stat(r.path, &st), 0);
	assert_int_equal(st.st_size, 64 + TSI_RECORD_ROWS * 64);
	assert_int_equal(recorded(5, &marks), TSI_RECORD_ROWS);
	tsi_record_close(&r, false);
}

static struct tsi_address address_of_record(void)
{
	struct tsi_address a;
	char name[sizeof(folder) + 2];

	snprintf(name, sizeof(name), "%s/s", folder);
	assert_int_equal(tsi_address_choose(name, &a), 0);
	return a;
}

/* The claim that it knows, and those that were asked for by that one. */
static void who_takes_itself_off_takes_nobody_else(void **state)
{
	struct tsi_reader_row own = row_of(1, 10), untold = row_of(2, 20),
			      other = row_of(3, 30);
	struct tsi_address a = address_of_record();
	uint64_t marks;

	(void)state;
	assert_false(tsi_record_file_leave(&a, own.nonce));
	assert_int_equal(recorded(5, &marks), 0);
	memset(untold.was, 1, sizeof(untold.was));
	tsi_record_put(&r, &own);
	tsi_record_put(&r, &untold);
	tsi_record_put(&r, &other);
	die();
	assert_true(tsi_record_file_leave(&a, own.nonce));
	assert_int_equal(recorded(5, &marks), 1);
	assert_int_equal(marks, 30);
	die();
	assert_false(tsi_record_file_leave(&a, own.nonce));
	assert_int_equal(recorded(5, &marks), 1);
	tsi_record_close(&r, false);
}

/* As it returned with the claim of before, so it leaves with that. */
static void who_takes_itself_off_takes_the_claim_of_before_with_it(void **state)
{
	struct tsi_reader_row before = row_of(1, 10), untold = row_of(2, 20),
			      own = row_of(3, 30), other = row_of(4, 40);
	struct tsi_address a = address_of_record();
	uint64_t marks;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	memset(untold.was, 1, sizeof(untold.was));
	memset(own.was, 1, sizeof(own.was));
	tsi_record_put(&r, &before);
	tsi_record_put(&r, &untold);
	tsi_record_put(&r, &own);
	tsi_record_put(&r, &other);
	die();
	assert_true(tsi_record_file_leave(&a, own.nonce));
	assert_int_equal(recorded(5, &marks), 1);
	assert_int_equal(marks, 40);
	tsi_record_close(&r, false);
}

/* The word is the reader's: its producer doesn't write over it. */
static void who_has_left_stays_off_as_its_producer_goes_on(void **state)
{
	struct tsi_reader_row left = row_of(1, 10), stays = row_of(2, 20),
			      next = row_of(3, 30);
	struct tsi_address a = address_of_record();
	uint64_t marks;
	int fd;

	(void)state;
	assert_int_equal(recorded(5, &marks), 0);
	tsi_record_put(&r, &left);
	tsi_record_put(&r, &stays);
	assert_true(tsi_record_collect(&r));
	tsi_record_write(&r);
	assert_true(tsi_record_file_leave(&a, left.nonce));
	/* Its batches come back one by one. */
	tsi_record_mark(&r, left.nonce, 15, false);
	tsi_record_mark(&r, stays.nonce, 25, false);
	die();
	assert_int_equal(recorded(5, &marks), 1);
	assert_int_equal(marks, 25);
	/* Nor is it the word of one that has the row after it, however late. */
	tsi_record_put(&r, &left);
	tsi_record_drop(&r, stays.nonce);
	tsi_record_put(&r, &next);
	assert_int_equal(memcmp(r.row[1].reader.nonce, next.nonce, TSI_NONCE),
			 0);
	die();
	fd = open(r.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, stays.nonce, sizeof(uint32_t),
				sizeof(struct tsi_record_head) +
					sizeof(struct tsi_record_row) +
					offsetof(struct tsi_record_row, left)),
			 sizeof(uint32_t));
	close(fd);
	assert_int_equal(recorded(5, &marks), 2);
	assert_int_equal(marks, 10 + 30);
	tsi_record_close(&r, false);
}

/* ---- a server that keeps one ---- */

/* A reader has its claim when the record has the reader, and not before. */
static void a_slow_record_holds_up_no_worker(void **state)
{
	struct tsock_serve_opts o = inproc_opts(200);
	struct tsock_opts as = TSOCK_OPTS_INIT;
	tsock_server *s;
	uint64_t first;
	tsock *t;

	(void)state;
	o.resumable = 1;
	o.identity = "made=up";
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	as.batch_size = 8;
	assert_int_equal(tsock_open("unit", &as, &t), 0);
	sem_init(&entered, 0, 0);
	sem_init(&may_go, 0, 0);
	atomic_store(&slow, 1);
	while (sem_trywait(&entered))
		assert_int_equal(tsock_begin_timed(t, 20), TSOCK_EAGAIN);
	/* By now the reply would be there. */
	assert_int_equal(tsock_begin_timed(t, 200), TSOCK_EAGAIN);
	assert_int_equal(tsock_serve_claim(s, 1, 0, &first), 1);
	tsock_serve_commit(s, first, 1);
	sem_post(&may_go);
	assert_int_equal(tsock_begin(t), 0);
	assert_false(atomic_load(&waited_in_vain));
	tsock_close(t);
	tsock_serve_close(s);
	sem_destroy(&entered);
	sem_destroy(&may_go);
}

/* Somebody removed the lock's file; it is made again, with a pid in it. */
static void sockets_that_are_slowly_made_again_hold_up_no_worker(void **state)
{
	struct tsock_serve_opts o = inproc_opts(200);
	char path[TSI_RECORD_PATH];
	tsock_server *s;
	uint64_t first;
	tsock *t;

	(void)state;
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	sem_init(&entered, 0, 0);
	sem_init(&may_go, 0, 0);
	atomic_store(&slow, 1);
	snprintf(path, sizeof(path), "%s/unit.lock", getenv("TSOCK_DIR"));
	assert_int_equal(unlink(path), 0);
	assert_true(wait_for(&entered));
	assert_int_equal(tsock_serve_claim(s, 8, 0, &first), 8);
	tsock_serve_commit(s, first, 8);
	tsock_batch_release(inproc_next(t));
	sem_post(&may_go);
	tsock_close(t);
	tsock_serve_close(s);
	assert_false(atomic_load(&waited_in_vain));
	sem_destroy(&entered);
	sem_destroy(&may_go);
}

/* As if a bit of the file were wrong: no stream comes to such a sample. */
static void a_mark_that_cannot_be_takes_the_stream_nowhere(void **state)
{
	static const uint64_t marks[] = { UINT64_MAX, UINT64_C(1) << 63, 401 };
	struct tsock_serve_opts o = inproc_opts(200);
	uint64_t n = tsi_hash("made=up", 7, o.epoch_len);

	(void)state;
	o.resumable = 1;
	o.identity = "made=up";
	o.epochs = 2;
	for (unsigned i = 0; i < 3; i++) {
		struct tsi_reader_row row = row_of(1, marks[i]);
		struct inproc st;
		tsock *t;

		row.pid = 0;
		tsi_record_init(&r);
		tsi_record_open(&r, getenv("TSOCK_DIR"), "unit", n, 1);
		tsi_record_put(&r, &row);
		die();
		inproc_serve(&st, &o);
		t = inproc_join(8, 0);
		assert_int_equal(tsock_begin_timed(t, PATIENCE_S * 1000), 0);
		assert_int_equal(tsock_epoch(t), 0);
		tsock_batch_release(inproc_next(t));
		tsock_close(t);
		inproc_stop(&st);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_producer_recorded_outlives_it),
		cmocka_unit_test(what_cannot_be_kept_up_to_date_does_not_stay),
		cmocka_unit_test(who_died_while_it_joined_is_not_recorded),
		cmocka_unit_test(a_file_that_makes_no_sense_is_as_good_as_none),
		cmocka_unit_test(it_has_one_size_however_many_read),
		cmocka_unit_test(a_slow_record_holds_up_no_worker),
		cmocka_unit_test(
			sockets_that_are_slowly_made_again_hold_up_no_worker),
		cmocka_unit_test(who_takes_itself_off_takes_nobody_else),
		cmocka_unit_test(
			who_takes_itself_off_takes_the_claim_of_before_with_it),
		cmocka_unit_test(
			who_has_left_stays_off_as_its_producer_goes_on),
		cmocka_unit_test(
			a_mark_that_cannot_be_takes_the_stream_nowhere),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	inproc_open_folder();
	failed = cmocka_run_group_tests_name("record", tests, NULL, NULL);
	inproc_close_folder();
	rmdir(folder);
	return failed;
}
