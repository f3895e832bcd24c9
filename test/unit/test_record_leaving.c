/* SPDX-License-Identifier: MIT */
/*
 * test_record_leaving.c - who reads a stream, in the file that a producer's
 * death leaves behind: readers that leave, with a producer and without, and
 * readers that return.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/inproc.h"
#include "wire/record_file.h"

#define LOOKS 40000 /* a thousandth of a second each */

/* A stream whose readers are recorded. */
static struct tsock_serve_opts recorded_opts(uint64_t n)
{
	struct tsock_serve_opts o = inproc_opts(n);

	o.resumable = 1;
	o.identity = "made=up";
	return o;
}

static const char *record_path(void)
{
	static char path[TSI_RECORD_PATH];

	snprintf(path, sizeof(path), "%s/unit.readers", getenv("TSOCK_DIR"));
	return path;
}

/* How many rows a record's file has; readers write none of that. */
static unsigned rows_in_file(void)
{
	static struct tsi_record_row row[TSI_RECORD_ROWS];
	unsigned n = 0;
	int fd = open(record_path(), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, row, sizeof(row), 64), sizeof(row));
	close(fd);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++)
		n += row[i].used;
	return n;
}

/* The next producer would wait for a reader that left. */
static void who_leaves_is_not_in_the_record_any_more(void **state)
{
	struct tsock_serve_opts o = recorded_opts(200);
	struct inproc st;
	unsigned looks = 0;
	tsock *t;

	(void)state;
	inproc_serve(&st, &o);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_true(rows_in_file() > 0);
	tsock_leave(t);
	/* What has changed is written by the server's thread. */
	while (rows_in_file() > 0) {
		assert_true(looks++ < LOOKS);
		usleep(1000);
	}
	tsock_close(t);
	inproc_stop(&st);
}

/* How a producer ends that another one follows: its readers stay recorded. */
static void end_with_readers(tsock_server *s, unsigned n)
{
	tsock_serve_close(s);
	assert_int_equal(rows_in_file(), n);
}

/* They live, and so nobody could tell by their process that they don't come. */
static void who_leaves_without_a_producer_is_not_waited_for(void **state)
{
	struct tsock_serve_opts o = recorded_opts(200);
	tsock *before, *after, *stays;
	tsock_server *s;

	(void)state;
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	before = inproc_join(8, 0);
	after = inproc_join(8, 0);
	stays = inproc_join(8, 0);
	assert_int_equal(tsock_begin(before), 0);
	assert_int_equal(tsock_begin(after), 0);
	assert_int_equal(tsock_begin(stays), 0);
	end_with_readers(s, 3);
	tsock_close(before);
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	/* The next producer has read the file, and asks it no more. */
	assert_int_equal(rows_in_file(), 2);
	tsock_close(after);
	assert_int_equal(rows_in_file(), 1);
	/* The record is that of a producer that follows, too. */
	end_with_readers(s, 1);
	tsock_leave(stays);
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	assert_int_equal(rows_in_file(), 0);
	tsock_close(stays);
	tsock_serve_close(s);
}

/* As a producer leaves the only row that dies between its reply to a reader
 * that returns and the next write. */
static void note_no_return(void)
{
	struct tsi_record_row row;
	int fd = open(record_path(), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &row, sizeof(row), 64), sizeof(row));
	assert_int_equal(row.used, 1);
	memset(row.reader.was, 'w', sizeof(row.reader.was));
	assert_int_equal(pwrite(fd, &row, sizeof(row), 64), sizeof(row));
	close(fd);
}

static void who_returned_and_leaves_is_not_waited_for(void **state)
{
	struct tsock_serve_opts o = recorded_opts(200);
	tsock_server *s;
	tsock *t;

	(void)state;
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	end_with_readers(s, 1);
	note_no_return();
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	assert_int_equal(rows_in_file(), 1);
	tsock_close(t);
	assert_int_equal(rows_in_file(), 0);
	tsock_serve_close(s);
}

/* Its batches hold its claim, and nobody is to wait for it to return. */
static void who_leaves_with_batches_in_hand_is_not_waited_for(void **state)
{
	struct tsock_serve_opts o = recorded_opts(200);
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	inproc_serve(&st, &o);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	tsock_close(t);
	assert_int_equal(inproc_consumers(&st), 1);
	inproc_stop(&st);
	assert_int_equal(rows_in_file(), 1);
	inproc_serve(&st, &o);
	assert_int_equal(rows_in_file(), 0);
	assert_true(inproc_good(b, 200));
	tsock_batch_release(b);
	inproc_stop(&st);
}

/* Its batches are in nobody's way, and it returns, when it gives them back and
 * when it doesn't. */
static void who_gives_batches_of_the_dead_one_back_is_waited_for(void **state)
{
	struct tsock_serve_opts o = recorded_opts(2000);
	tsock_batch *held, *b;
	struct inproc st;
	tsock *t;
	int err;

	(void)state;
	inproc_serve(&st, &o);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	held = inproc_next(t);
	inproc_stop(&st);
	while (!(err = tsock_next(t, 0, &b)))
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_EAGAIN);
	tsock_batch_release(held);
	inproc_serve(&st, &o);
	assert_int_equal(rows_in_file(), 1);
	tsock_close(t);
	inproc_stop(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_leaves_is_not_in_the_record_any_more),
		cmocka_unit_test(
			who_leaves_without_a_producer_is_not_waited_for),
		cmocka_unit_test(who_returned_and_leaves_is_not_waited_for),
		cmocka_unit_test(
			who_leaves_with_batches_in_hand_is_not_waited_for),
		cmocka_unit_test(
			who_gives_batches_of_the_dead_one_back_is_waited_for),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests_name("record, leaving", tests, NULL,
					     NULL);
	inproc_close_folder();
	return failed;
}
