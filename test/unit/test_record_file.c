/* SPDX-License-Identifier: MIT */
/*
 * test_record_file.c - files that are no record of a stream's readers, or are
 * one with rows that can't be, and file systems that fail.
 */
#include "serve/record.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define ROW(i, member) \
	((off_t)(sizeof(struct tsi_record_head) + \
		 (i) * sizeof(struct tsi_record_row) + \
		 offsetof(struct tsi_record_row, member)))

/* ---- in place of libc's ---- */

static unsigned fail_write; /* the write that fails, from now on; 0: none */
static bool fail_stat, fail_fstat;

ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	if (fail_write && !--fail_write) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, from, len, at);
}

int stat(const char *restrict path, struct stat *restrict out)
{
	return fail_stat ? -1 : fstatat(AT_FDCWD, path, out, 0);
}

int fstat(int fd, struct stat *out)
{
	return fail_fstat ? -1 : fstatat(fd, "", out, AT_EMPTY_PATH);
}

/* ---- a record of two ---- */

static char folder[] = "/tmp/tsock-record-XXXXXX";
static struct tsi_record r;
static struct tsi_reader_row row; /* that was looked at last */

static struct tsi_reader_row row_of(uint8_t name)
{
	struct tsi_reader_row a = { .pid = name, .born = 7, .mark = name };

	memset(a.nonce, name, sizeof(a.nonce));
	return a;
}

/* How many rows the next producer finds. */
static unsigned open_record(void)
{
	unsigned n = 0;

	tsi_record_init(&r);
	tsi_record_open(&r, folder, "s", 5, 1);
	for (unsigned i = 0; tsi_record_next(&r, &i, &row); i++)
		n++;
	return n;
}

static void put(uint8_t name)
{
	struct tsi_reader_row a = row_of(name);

	tsi_record_put(&r, &a);
}

static void write_changes(void)
{
	assert_true(tsi_record_collect(&r));
	tsi_record_write(&r);
}

static void read_file(off_t at, void *out, size_t len)
{
	assert_int_equal(pread(r.fd, out, len, at), len);
}

static void spoil(off_t at, const void *value, size_t len)
{
	assert_int_equal(pwrite(r.fd, value, len, at), len);
}

static bool is_there(void)
{
	return !access(r.path, F_OK);
}

static int begin(void **state)
{
	(void)state;
	assert_int_equal(open_record(), 0);
	put(1);
	put(2);
	write_changes();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fail_write = 0;
	fail_stat = fail_fstat = false;
	tsi_record_close(&r, false);
	rmdir(r.path);
	assert_false(is_there());
	return 0;
}

/* As a death leaves it. */
static unsigned open_again(void)
{
	close(r.fd);
	return open_record();
}

/* ---- the tests ---- */

static void a_head_of_another_kind_is_no_record(void **state)
{
	static const size_t at[] = { offsetof(struct tsi_record_head, magic),
				     offsetof(struct tsi_record_head, version),
				     offsetof(struct tsi_record_head, rows),
				     offsetof(struct tsi_record_head, stream) };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(open_again(), i ? 0 : 2);
		put(1);
		write_changes();
		spoil((off_t)at[i], "?", 1);
	}
	assert_int_equal(open_again(), 0);
}

static void rows_that_cannot_be_are_dropped_from_the_file(void **state)
{
	static const uint8_t nobody[TSI_NONCE];
	uint32_t used = 2;

	(void)state;
	put(3);
	write_changes();
	spoil(ROW(0, used), &used, sizeof(used));
	spoil(ROW(1, reader.nonce), nobody, sizeof(nobody));
	assert_int_equal(open_again(), 1);
	assert_int_equal(row.pid, 3);
	for (unsigned i = 0; i < 2; i++) {
		read_file(ROW(i, used), &used, sizeof(used));
		assert_int_equal(used, 0);
	}
}

/* The number is that of another process here, but the reader may return. */
static void pids_of_another_namespace_are_forgotten(void **state)
{
	uint32_t pid;

	(void)state;
	fail_stat = true;
	assert_int_equal(open_again(), 2);
	assert_int_equal(row.pid, 0);
	assert_int_equal(row.mark, 2);
	read_file(ROW(1, reader.pid), &pid, sizeof(pid));
	assert_int_equal(pid, 0);
}

static void what_is_no_file_makes_no_record(void **state)
{
	(void)state;
	tsi_record_close(&r, false);
	assert_int_equal(mkfifo(r.path, 0600), 0);
	assert_int_equal(open_record(), 0);
	assert_int_equal(r.fd, -1);
	assert_false(is_there());
	fail_fstat = true;
	assert_int_equal(open_record(), 0);
	assert_int_equal(r.fd, -1);
	assert_false(is_there());
	/* The stream is served without. */
	put(1);
	assert_false(tsi_record_collect(&r));
}

static void a_record_that_cannot_be_written_does_not_stay(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 2; n++) {
		tsi_record_close(&r, false);
		fail_write = n;
		assert_int_equal(open_record(), 0);
		assert_int_equal(fail_write, 0);
		assert_int_equal(r.fd, -1);
		assert_false(is_there());
	}
	/* Nor is what changes later kept. */
	put(1);
	write_changes();
	assert_false(is_there());
}

static void a_row_that_cannot_be_dropped_takes_the_file_with_it(void **state)
{
	uint32_t used = 2;

	(void)state;
	spoil(ROW(0, used), &used, sizeof(used));
	fail_write = 1;
	assert_int_equal(open_again(), 1);
	assert_int_equal(r.fd, -1);
	assert_false(is_there());
}

static void a_file_that_cannot_be_made_again_is_given_up(void **state)
{
	(void)state;
	assert_int_equal(unlink(r.path), 0);
	assert_int_equal(mkdir(r.path, 0700), 0);
	tsi_record_again(&r, folder, "s");
	write_changes();
	assert_int_equal(r.fd, -1);
	/* Without one there is nothing to make again. */
	assert_int_equal(rmdir(r.path), 0);
	tsi_record_again(&r, folder, "s");
	write_changes();
	assert_false(is_there());
}

/* What was collected and not yet written is not forgotten over it. */
static void a_mark_that_follows_a_row_is_written_with_it(void **state)
{
	struct tsi_reader_row a = row_of(3);

	(void)state;
	put(3);
	assert_true(tsi_record_collect(&r));
	tsi_record_mark(&r, a.nonce, 70, false);
	write_changes();
	assert_int_equal(open_again(), 3);
	assert_int_equal(row.pid, 3);
	assert_int_equal(row.mark, 70);
}

static void only_who_is_in_the_file_can_have_left(void **state)
{
	struct tsi_reader_row a = row_of(1), none = row_of(9);
	struct tsi_record without;

	(void)state;
	assert_false(tsi_record_has_left(&r, none.nonce));
	spoil(ROW(0, left), a.nonce, sizeof(uint32_t));
	assert_true(tsi_record_has_left(&r, a.nonce));
	/* The row is another one's by now. */
	spoil(ROW(0, reader.nonce), none.nonce, sizeof(none.nonce));
	assert_false(tsi_record_has_left(&r, a.nonce));
	assert_int_equal(truncate(r.path, 64), 0);
	assert_false(tsi_record_has_left(&r, a.nonce));
	tsi_record_init(&without);
	assert_false(tsi_record_has_left(&without, a.nonce));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_head_of_another_kind_is_no_record),
		TEST(rows_that_cannot_be_are_dropped_from_the_file),
		TEST(pids_of_another_namespace_are_forgotten),
		TEST(what_is_no_file_makes_no_record),
		TEST(a_record_that_cannot_be_written_does_not_stay),
		TEST(a_row_that_cannot_be_dropped_takes_the_file_with_it),
		TEST(a_file_that_cannot_be_made_again_is_given_up),
		TEST(a_mark_that_follows_a_row_is_written_with_it),
		TEST(only_who_is_in_the_file_can_have_left),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests_name("record_file", tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
