/* SPDX-License-Identifier: MIT */
/*
 * test_ranges.c - ranges of files, by both backends of the reader and by one
 * call.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/lib/file_reader.h"

#define DEPTH 8

/* Read a range of a file; returns its err. */
static int read_range(struct tsi_io_reader *r, const char *path,
		      uint64_t offset, uint64_t length, struct tsi_read *out)
{
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = path,
				      .offset = offset,
				      .length = length,
				      .tag = 3 };

	assert_int_equal(tsi_io_reader_submit(r, &q), 0);
	assert_int_equal(tsi_io_reader_next(r, true, out), 0);
	assert_int_equal(out->tag, 3);
	return out->err;
}

/* The bytes of files_put()'s file from offset on, and the same by one call. */
static void check_range(struct tsi_io_reader *r, uint64_t offset,
			uint64_t length, unsigned seed)
{
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = "ranges",
				      .offset = offset,
				      .length = length };
	struct tsi_read out;
	uint8_t *data;
	size_t len;

	assert_int_equal(read_range(r, "ranges", offset, length, &out), 0);
	files_check(&out, offset, length, seed);
	assert_int_equal(tsi_io_read(&q, length, &data, &len), 0);
	assert_int_equal(len, length);
	assert_memory_equal(data, out.data, length);
	free(data);
	tsi_io_reader_recycle(r, &out);
	if (length > 1)
		assert_int_equal(tsi_io_read(&q, length - 1, &data, &len),
				 EFBIG);
}

static void reads_ranges_of_a_file(void **state)
{
	static const uint64_t length[] = { 1, 511, 4096, 65536, 65537, 200000 };
	const uint64_t size = 300000;
	struct tsi_io_reader *r = files_reader(DEPTH);
	struct tsi_read out;

	(void)state;
	files_put("ranges", size, 9);
	for (unsigned i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		check_range(r, 0, length[i], 9);
		check_range(r, 1, length[i], 9);
		check_range(r, 77777, length[i], 9);
		check_range(r, size - length[i], length[i], 9);
	}
	check_range(r, 0, size, 9);
	/* A slot that has read a range reads a whole file next. */
	assert_int_equal(read_range(r, "ranges", 0, 0, &out), 0);
	files_check(&out, 0, size, 9);
	tsi_io_reader_recycle(r, &out);
	tsi_io_reader_destroy(r);
}

static void many_ranges_of_one_file_come_at_once(void **state)
{
	struct tsi_io_reader *r = files_reader(DEPTH);
	struct tsi_read out;

	(void)state;
	files_put("ranges", DEPTH * 5000, 4);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct tsi_read_request q = { .dirfd = files_dirfd,
					      .direct = files_direct,
					      .path = "ranges",
					      .offset = i * 5000u,
					      .length = 5000,
					      .tag = i };

		assert_int_equal(tsi_io_reader_submit(r, &q), 0);
	}
	for (unsigned n = 0; n < DEPTH; n++) {
		assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
		files_check(&out, out.tag * 5000, 5000, 4);
		tsi_io_reader_recycle(r, &out);
	}
	tsi_io_reader_destroy(r);
}

static void expect_range_err(struct tsi_io_reader *r, const char *path,
			     uint64_t offset, uint64_t length, int err)
{
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = path,
				      .offset = offset,
				      .length = length };
	struct tsi_read out;
	uint8_t *data = NULL;
	size_t len;

	assert_int_equal(read_range(r, path, offset, length, &out), err);
	assert_null(out.data);
	tsi_io_reader_recycle(r, &out);
	assert_int_equal(tsi_io_read(&q, TSI_READER_MAX, &data, &len), err);
	assert_null(data);
}

static void a_file_shorter_than_its_range_is_truncated(void **state)
{
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = "a",
				      .offset = 1 };
	struct tsi_read none;
	int before = files_open_fds();

	(void)state;
	files_put("a", 1000, 1);
	files_put("empty", 0, 1);
	expect_range_err(r, "a", 0, 1001, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", 1, 1000, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", 999, 2, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", 1000, 1, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", 5000, 10, TSI_READER_TRUNCATED);
	expect_range_err(r, "empty", 0, 1, TSI_READER_TRUNCATED);
	/* Sums that overflow are just as far beyond the end. */
	expect_range_err(r, "a", UINT64_MAX, 1, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", UINT64_MAX, UINT64_MAX, TSI_READER_TRUNCATED);
	expect_range_err(r, "a", 1, UINT64_MAX, TSI_READER_TRUNCATED);
	expect_range_err(r, "missing", 0, 1, ENOENT);
	expect_range_err(r, ".", 0, 1, EISDIR);
	assert_string_equal(tsi_io_reader_strerror(TSI_READER_TRUNCATED),
			    "ends before the sample does");
	assert_int_equal(tsi_io_reader_submit(r, &q), TSOCK_EARG);
	assert_int_equal(tsi_io_reader_next(r, true, &none), TSOCK_EAGAIN);
	/* And the reader goes on. */
	files_put("ranges", 1000, 2);
	check_range(r, 999, 1, 2);
	tsi_io_reader_destroy(r);
	assert_true(files_open_fds() <= before);
}

static void a_large_range_is_left_to_the_caller_too(void **state)
{
	const uint64_t size = TSI_READER_AHEAD + 10;
	struct tsi_io_reader *r = files_reader(1);
	struct tsi_read out;

	(void)state;
	files_put("ranges", size, 5);
	/* The range decides, not the file. */
	check_range(r, 7, 100, 5);
	check_range(r, 9, TSI_READER_AHEAD, 5);
	assert_int_equal(read_range(r, "ranges", 9, TSI_READER_AHEAD + 1, &out),
			 TSI_READ_LARGE);
	assert_int_equal(out.size, TSI_READER_AHEAD + 1);
	tsi_io_reader_recycle(r, &out);
	unlinkat(files_dirfd, "ranges", 0);
	tsi_io_reader_destroy(r);
}

static void a_range_of_a_huge_file_is_read(void **state)
{
	const uint64_t at = (uint64_t)5 << 30;
	struct tsi_io_reader *r = files_reader(1);
	int fd = openat(files_dirfd, "huge", O_CREAT | O_WRONLY, 0600);
	struct tsi_read out;

	(void)state;
	if (pwrite(fd, "far away", 8, (off_t)at) != 8) {
		close(fd);
		tsi_io_reader_destroy(r);
		skip();
	}
	close(fd);
	assert_int_equal(read_range(r, "huge", at, 8, &out), 0);
	assert_memory_equal(out.data, "far away", 8);
	tsi_io_reader_recycle(r, &out);
	expect_range_err(r, "huge", at, 9, TSI_READER_TRUNCATED);
	expect_range_err(r, "huge", 0, TSI_READER_MAX + 1, EFBIG);
	unlinkat(files_dirfd, "huge", 0);
	tsi_io_reader_destroy(r);
}

/* A file that is cut off and grows again while ranges of it are read. */
static void a_range_is_read_whole_or_not_at_all(void **state)
{
	struct tsi_io_reader *r = files_reader(4);
	int status = 0;
	pid_t pid;

	(void)state;
	files_put("changing", 300000, 1);
	pid = fork();
	if (pid == 0) {
		int fd = openat(files_dirfd, "changing", O_WRONLY);

		for (int i = 0; i < 3000; i++)
			if (ftruncate(fd, i % 2 ? 300000 : 50000))
				_exit(1);
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct tsi_read out;

		if (read_range(r, "changing", 40000, 200000, &out))
			assert_int_equal(out.err, TSI_READER_TRUNCATED);
		else
			assert_int_equal(out.len, 200000);
		tsi_io_reader_recycle(r, &out);
		assert_int_equal(read_range(r, "changing", 49999, 1, &out), 0);
		tsi_io_reader_recycle(r, &out);
	}
	assert_int_equal(status, 0);
	tsi_io_reader_destroy(r);
}

static const struct CMUnitTest suite[] = {
	cmocka_unit_test(reads_ranges_of_a_file),
	cmocka_unit_test(many_ranges_of_one_file_come_at_once),
	cmocka_unit_test(a_file_shorter_than_its_range_is_truncated),
	cmocka_unit_test(a_large_range_is_left_to_the_caller_too),
	cmocka_unit_test(a_range_of_a_huge_file_is_read),
	cmocka_unit_test(a_range_is_read_whole_or_not_at_all),
};

int main(void)
{
	int failed = 0;

	files_run_all(failed, suite);
	return failed != 0;
}
