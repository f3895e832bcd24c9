/* SPDX-License-Identifier: MIT */
/*
 * test_file.c - reads and writes go on until all bytes are through.
 *
 * The four calls below take the place of libc's: each may be interrupted, move
 * fewer bytes than it was asked for, move none, or fail.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE (-2)

/* What becomes of a call. */
static struct {
	unsigned interrupted; /* so many calls, and then every second one */
	size_t most;          /* bytes of a call; 0: as many as are asked for */
	unsigned fails_after; /* calls that moved bytes; 0: none fails */
	int error;            /* by which it fails; NONE: it moves no byte */
	unsigned calls, moved;
} plan;

static bool refused(size_t *len, ssize_t *out)
{
	plan.calls++;
	*out = -1;
	if (plan.calls <= plan.interrupted ||
	    (plan.interrupted && plan.calls % 2)) {
		errno = EINTR;
		return true;
	}
	if (plan.fails_after && plan.moved == plan.fails_after) {
		errno = plan.error;
		*out = plan.error == NONE ? 0 : -1;
		return true;
	}
	plan.moved++;
	if (plan.most && *len > plan.most)
		*len = plan.most;
	return false;
}

ssize_t read(int fd, void *to, size_t len)
{
	ssize_t n;

	return refused(&len, &n) ? n : syscall(SYS_read, fd, to, len);
}

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	ssize_t n;

	return refused(&len, &n) ? n : syscall(SYS_pread64, fd, to, len, at);
}

ssize_t write(int fd, const void *from, size_t len)
{
	ssize_t n;

	/* The test's own report. */
	if (fd < 3)
		return syscall(SYS_write, fd, from, len);
	return refused(&len, &n) ? n : syscall(SYS_write, fd, from, len);
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	ssize_t n;

	return refused(&len, &n) ? n : syscall(SYS_pwrite64, fd, from, len, at);
}

/* An open file that has no name. */
static int file_of(const char *text)
{
	char path[] = "/tmp/tsock-fully-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	memset(&plan, 0, sizeof(plan));
	assert_true(tsi_file_write(fd, text, strlen(text)));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	memset(&plan, 0, sizeof(plan));
	return fd;
}

static void interrupted_and_short_calls_move_all_bytes(void **state)
{
	int fd = file_of("");
	char got[16] = "";

	(void)state;
	plan.interrupted = 3;
	plan.most = 2;
	assert_true(tsi_file_write(fd, "abcdefg", 7));
	assert_int_equal(plan.moved, 4);
	assert_true(plan.calls > plan.moved);
	assert_true(tsi_file_pwrite(fd, "CDEFG", 5, 2));
	assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
	assert_int_equal(tsi_file_read(fd, got, 6), 6);
	assert_string_equal(got, "bCDEFG");
	memset(got, 0, sizeof(got));
	assert_int_equal(tsi_file_pread(fd, got, 5, 2), 5);
	assert_string_equal(got, "CDEFG");
	close(fd);
}

static void at_the_files_end_there_are_fewer(void **state)
{
	int fd = file_of("abcde");
	char got[16] = "";

	(void)state;
	plan.most = 2;
	assert_int_equal(tsi_file_pread(fd, got, sizeof(got), 1), 4);
	assert_string_equal(got, "bcde");
	assert_int_equal(tsi_file_pread(fd, got, sizeof(got), 5), 0);
	assert_int_equal(tsi_file_read(fd, got, 3), 3);
	assert_false(tsi_file_read_all(fd, got, 3));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(tsi_file_read_all(fd, got, 5));
	assert_int_equal(tsi_file_read(fd, got, 0), 0);
	close(fd);
}

/* Not the bytes that came before it: nobody would know that one failed. */
static void a_call_that_fails_is_the_result(void **state)
{
	int fd = file_of("abcdef");
	char got[16];

	(void)state;
	plan.most = 2;
	plan.fails_after = 2;
	plan.error = EIO;
	assert_int_equal(tsi_file_read(fd, got, 6), -1);
	assert_int_equal(errno, EIO);
	plan.moved = 0;
	assert_int_equal(tsi_file_pread(fd, got, 6, 0), -1);
	plan.moved = 0;
	plan.error = ENOSPC;
	assert_false(tsi_file_write(fd, "abcdef", 6));
	assert_int_equal(errno, ENOSPC);
	plan.moved = 0;
	assert_false(tsi_file_pwrite(fd, "abcdef", 6, 0));
	close(fd);
}

/* Else it would be made again for ever. */
static void a_write_that_takes_nothing_fails(void **state)
{
	int fd = file_of("");

	(void)state;
	plan.most = 2;
	plan.fails_after = 2;
	plan.error = NONE;
	assert_false(tsi_file_write(fd, "abcdef", 6));
	assert_int_equal(errno, ENOSPC);
	plan.moved = 0;
	assert_false(tsi_file_pwrite(fd, "abcdef", 6, 0));
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupted_and_short_calls_move_all_bytes),
		cmocka_unit_test(at_the_files_end_there_are_fewer),
		cmocka_unit_test(a_call_that_fails_is_the_result),
		cmocka_unit_test(a_write_that_takes_nothing_fails),
	};

	return cmocka_run_group_tests_name("fully", tests, NULL, NULL);
}
