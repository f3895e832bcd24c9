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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "io/reader.h"

#define DEPTH 8

static int dirfd_;
static enum tsi_file_reader_kind kind_;

static void put(const char *name, size_t len, unsigned seed)
{
	int fd = openat(dirfd_, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	uint8_t *buf = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 2654435761u >> 13 ^ seed);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf, len), len);
	close(fd);
	free(buf);
}

/* The bytes of a range of the file that put() made. */
static void check(const struct tsi_read *r, uint64_t offset, uint64_t length,
		  unsigned seed)
{
	assert_int_equal(r->err, 0);
	assert_int_equal(r->len, length);
	assert_non_null(r->data);
	for (uint64_t i = 0; i < length; i++) {
		uint8_t want =
			(uint8_t)((offset + i) * 2654435761u >> 13 ^ seed);

		if (r->data[i] != want)
			fail_msg("byte %zu of %zu at %zu", (size_t)i,
				 (size_t)length, (size_t)offset);
	}
}

static struct tsi_file_reader *make(unsigned depth)
{
	struct tsi_file_reader *r = NULL;

	if (tsi_file_reader_create(kind_, depth, &r)) {
		if (kind_ != TSI_READER_URING)
			fail_msg("%s", tsock_errmsg());
		print_message("[  SKIP  ] %s\n", tsock_errmsg());
		skip();
	}
	return r;
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Read a range of the file that put() made with the seed; returns its err. */
static int read_range(struct tsi_file_reader *r, const char *path,
		      uint64_t offset, uint64_t length, struct tsi_read *out)
{
	struct tsi_read_request q = { .dirfd = dirfd_,
				      .path = path,
				      .offset = offset,
				      .length = length,
				      .tag = 3 };

	assert_int_equal(tsi_file_reader_submit(r, &q), 0);
	assert_int_equal(tsi_file_reader_next(r, true, out), 0);
	assert_int_equal(out->tag, 3);
	return out->err;
}

/* The bytes of put()'s file from offset on, and the same by one call. */
static void check_range(struct tsi_file_reader *r, uint64_t offset,
			uint64_t length, unsigned seed)
{
	struct tsi_read_request q = { .dirfd = dirfd_,
				      .path = "ranges",
				      .offset = offset,
				      .length = length };
	struct tsi_read out;
	uint8_t *data;
	size_t len;

	assert_int_equal(read_range(r, "ranges", offset, length, &out), 0);
	assert_int_equal(out.len, length);
	for (uint64_t i = 0; i < length; i++) {
		uint8_t want =
			(uint8_t)((offset + i) * 2654435761u >> 13 ^ seed);

		if (out.data[i] != want)
			fail_msg("byte %zu of %zu at %zu", (size_t)i,
				 (size_t)length, (size_t)offset);
	}
	assert_int_equal(tsi_file_read(&q, length, &data, &len), 0);
	assert_int_equal(len, length);
	assert_memory_equal(data, out.data, length);
	free(data);
	tsi_file_reader_recycle(r, &out);
	if (length > 1)
		assert_int_equal(tsi_file_read(&q, length - 1, &data, &len),
				 EFBIG);
}

static void reads_ranges_of_a_file(void **state)
{
	static const uint64_t length[] = { 1, 511, 4096, 65536, 65537, 200000 };
	const uint64_t size = 300000;
	struct tsi_file_reader *r = make(DEPTH);
	struct tsi_read out;

	(void)state;
	put("ranges", size, 9);
	for (unsigned i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		check_range(r, 0, length[i], 9);
		check_range(r, 1, length[i], 9);
		check_range(r, 77777, length[i], 9);
		check_range(r, size - length[i], length[i], 9);
	}
	check_range(r, 0, size, 9);
	/* A slot that has read a range reads a whole file next. */
	assert_int_equal(read_range(r, "ranges", 0, 0, &out), 0);
	check(&out, 0, size, 9);
	tsi_file_reader_recycle(r, &out);
	tsi_file_reader_destroy(r);
}

static void many_ranges_of_one_file_come_at_once(void **state)
{
	struct tsi_file_reader *r = make(DEPTH);
	struct tsi_read out;

	(void)state;
	put("ranges", DEPTH * 5000, 4);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct tsi_read_request q = { .dirfd = dirfd_,
					      .path = "ranges",
					      .offset = i * 5000u,
					      .length = 5000,
					      .tag = i };

		assert_int_equal(tsi_file_reader_submit(r, &q), 0);
	}
	for (unsigned n = 0; n < DEPTH; n++) {
		assert_int_equal(tsi_file_reader_next(r, true, &out), 0);
		check(&out, out.tag * 5000, 5000, 4);
		tsi_file_reader_recycle(r, &out);
	}
	tsi_file_reader_destroy(r);
}

static void expect_range_err(struct tsi_file_reader *r, const char *path,
			     uint64_t offset, uint64_t length, int err)
{
	struct tsi_read_request q = { .dirfd = dirfd_,
				      .path = path,
				      .offset = offset,
				      .length = length };
	struct tsi_read out;
	uint8_t *data = NULL;
	size_t len;

	assert_int_equal(read_range(r, path, offset, length, &out), err);
	assert_null(out.data);
	tsi_file_reader_recycle(r, &out);
	assert_int_equal(tsi_file_read(&q, TSI_READER_MAX, &data, &len), err);
	assert_null(data);
}

static void a_file_shorter_than_its_range_is_truncated(void **state)
{
	struct tsi_file_reader *r = make(2);
	struct tsi_read_request q = { .dirfd = dirfd_,
				      .path = "a",
				      .offset = 1 };
	struct tsi_read none;
	int before = open_fds();

	(void)state;
	put("a", 1000, 1);
	put("empty", 0, 1);
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
	assert_string_equal(tsi_file_reader_strerror(TSI_READER_TRUNCATED),
			    "ends before the sample does");
	assert_int_equal(tsi_file_reader_submit(r, &q), TSOCK_EARG);
	assert_int_equal(tsi_file_reader_next(r, true, &none), TSOCK_EAGAIN);
	/* And the reader goes on. */
	put("ranges", 1000, 2);
	check_range(r, 999, 1, 2);
	tsi_file_reader_destroy(r);
	assert_true(open_fds() <= before);
}

static void a_large_range_is_left_to_the_caller_too(void **state)
{
	const uint64_t size = TSI_READER_AHEAD + 10;
	struct tsi_file_reader *r = make(1);
	struct tsi_read out;

	(void)state;
	put("ranges", size, 5);
	/* The range decides, not the file. */
	check_range(r, 7, 100, 5);
	check_range(r, 9, TSI_READER_AHEAD, 5);
	assert_int_equal(read_range(r, "ranges", 9, TSI_READER_AHEAD + 1, &out),
			 TSI_READ_LARGE);
	assert_int_equal(out.size, TSI_READER_AHEAD + 1);
	tsi_file_reader_recycle(r, &out);
	unlinkat(dirfd_, "ranges", 0);
	tsi_file_reader_destroy(r);
}

static void a_range_of_a_huge_file_is_read(void **state)
{
	const uint64_t at = (uint64_t)5 << 30;
	struct tsi_file_reader *r = make(1);
	int fd = openat(dirfd_, "huge", O_CREAT | O_WRONLY, 0600);
	struct tsi_read out;

	(void)state;
	if (pwrite(fd, "far away", 8, (off_t)at) != 8) {
		close(fd);
		tsi_file_reader_destroy(r);
		skip();
	}
	close(fd);
	assert_int_equal(read_range(r, "huge", at, 8, &out), 0);
	assert_memory_equal(out.data, "far away", 8);
	tsi_file_reader_recycle(r, &out);
	expect_range_err(r, "huge", at, 9, TSI_READER_TRUNCATED);
	expect_range_err(r, "huge", 0, TSI_READER_MAX + 1, EFBIG);
	unlinkat(dirfd_, "huge", 0);
	tsi_file_reader_destroy(r);
}

/* A file that is cut off and grows again while ranges of it are read. */
static void a_range_is_read_whole_or_not_at_all(void **state)
{
	struct tsi_file_reader *r = make(4);
	int status = 0;
	pid_t pid;

	(void)state;
	put("changing", 300000, 1);
	pid = fork();
	if (pid == 0) {
		int fd = openat(dirfd_, "changing", O_WRONLY);

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
		tsi_file_reader_recycle(r, &out);
		assert_int_equal(read_range(r, "changing", 49999, 1, &out), 0);
		tsi_file_reader_recycle(r, &out);
	}
	assert_int_equal(status, 0);
	tsi_file_reader_destroy(r);
}

static int scratch(void **state)
{
	static char path[64];
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.40s/tsock-ranges-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(path))
		return -1;
	dirfd_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = path;
	return dirfd_ < 0 ? -1 : 0;
}

static int clean(void **state)
{
	char command[128];

	close(dirfd_);
	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	return system(command);
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

	kind_ = TSI_READER_PREAD;
	failed += cmocka_run_group_tests_name("pread", suite, scratch, clean);
	kind_ = TSI_READER_URING;
	failed +=
		cmocka_run_group_tests_name("io_uring", suite, scratch, clean);
	return failed != 0;
}
