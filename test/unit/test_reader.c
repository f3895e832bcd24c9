/* SPDX-License-Identifier: MIT */
/*
 * test_reader.c - one suite over both backends of the reader.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/lib/file_reader.h"
#include "test/lib/seccomp.h"

#define DEPTH 8

static int submit(struct tsi_io_reader *r, const char *path, uint64_t hint,
		  uint64_t tag)
{
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = path,
				      .size_hint = hint,
				      .tag = tag };

	return tsi_io_reader_submit(r, &q);
}

/* Read one file; returns its err. */
static int read_one(struct tsi_io_reader *r, const char *path, uint64_t hint,
		    struct tsi_read *out)
{
	struct tsi_read none;

	assert_int_equal(submit(r, path, hint, 7), 0);
	assert_int_equal(tsi_io_reader_next(r, true, out), 0);
	assert_int_equal(tsi_io_reader_next(r, true, &none), TSOCK_EAGAIN);
	assert_int_equal(out->tag, 7);
	return out->err;
}

static void expect_err(struct tsi_io_reader *r, const char *path, int err)
{
	struct tsi_read out;

	assert_int_equal(read_one(r, path, 100, &out), err);
	tsi_io_reader_recycle(r, &out);
}

static void reads_files_of_every_size(void **state)
{
	static const size_t size[] = {
		0,     1,     4095,   4096,    65535,
		65536, 65537, 100000, 1 << 20, TSI_READER_AHEAD
	};
	struct tsi_io_reader *r = files_reader(DEPTH);
	struct tsi_read out;

	(void)state;
	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		files_put("file", size[i], i);
		/* Right, unknown, too small and too large hints. */
		for (unsigned h = 0; h < 4; h++) {
			uint64_t hint[] = { size[i], 0, size[i] / 2,
					    size[i] * 2 };

			assert_int_equal(read_one(r, "file", hint[h], &out), 0);
			files_check(&out, 0, size[i], i);
			tsi_io_reader_recycle(r, &out);
		}
	}
	tsi_io_reader_destroy(r);
}

static void survives_a_wild_hint(void **state)
{
	struct tsi_io_reader *r = files_reader(1);
	struct tsi_read out;

	(void)state;
	files_put("file", 5000, 1);
	assert_int_equal(read_one(r, "file", UINT64_MAX, &out), 0);
	files_check(&out, 0, 5000, 1);
	tsi_io_reader_recycle(r, &out);
	tsi_io_reader_destroy(r);
}

/* They call themselves regular, and some of them never end or block. */
static void a_file_that_the_kernel_makes_up_is_not_read(void **state)
{
	struct tsi_io_reader *r = files_reader(1);
	struct tsi_read out;

	(void)state;
	if (access("/proc/self/maps", R_OK))
		skip();
	expect_err(r, "/proc/self/maps", TSI_READER_MADE_UP);
	assert_int_equal(symlinkat("/proc/self/maps", files_dirfd, "link"), 0);
	expect_err(r, "link", TSI_READER_MADE_UP);
	if (!access("/proc/kmsg", R_OK))
		expect_err(r, "/proc/kmsg", TSI_READER_MADE_UP);
	if (!access("/sys/kernel/uevent_seqnum", R_OK))
		expect_err(r, "/sys/kernel/uevent_seqnum", TSI_READER_MADE_UP);
	assert_non_null(strstr(tsi_io_reader_strerror(TSI_READER_MADE_UP),
			       "made up by the kernel"));
	/* In turn with others, on the same slot. */
	files_put("file", 5000, 1);
	assert_int_equal(read_one(r, "file", 5000, &out), 0);
	files_check(&out, 0, 5000, 1);
	tsi_io_reader_recycle(r, &out);
	expect_err(r, "link", TSI_READER_MADE_UP);
	tsi_io_reader_destroy(r);
}

static void takes_finished_reads_by_lowest_tag(void **state)
{
	struct tsi_io_reader *r = files_reader(DEPTH);
	struct tsi_read out;
	char name[DEPTH][16];
	int before = files_open_fds();

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++) {
		snprintf(name[i], sizeof(name[i]), "f%u", i);
		files_put(name[i], 1000 * i, i);
	}
	for (unsigned round = 0; round < 20; round++) {
		uint64_t seen = 0;

		for (unsigned i = 0; i < DEPTH; i++) {
			unsigned k = (i * 5 + round) % DEPTH;

			assert_int_equal(submit(r, name[k], 1000, k), 0);
		}
		for (unsigned i = 0; i < DEPTH; i++) {
			assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
			files_check(&out, 0, 1000 * out.tag, (unsigned)out.tag);
			assert_false(seen >> out.tag & 1);
			seen |= UINT64_C(1) << out.tag;
			tsi_io_reader_recycle(r, &out);
		}
		assert_int_equal(seen, (1u << DEPTH) - 1);
	}
	assert_int_equal(tsi_io_reader_next(r, true, &out), TSOCK_EAGAIN);
	assert_int_equal(tsi_io_reader_next(r, false, &out), TSOCK_EAGAIN);
	tsi_io_reader_destroy(r);
	assert_true(files_open_fds() <= before);
}

static void taken_bytes_stay_until_recycled(void **state)
{
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read first;
	struct tsi_read out;

	(void)state;
	files_put("a", 70000, 1);
	files_put("b", 90000, 2);
	assert_int_equal(read_one(r, "a", 70000, &first), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(read_one(r, "b", 0, &out), 0);
		files_check(&out, 0, 90000, 2);
		tsi_io_reader_recycle(r, &out);
		files_check(&first, 0, 70000, 1);
	}
	tsi_io_reader_recycle(r, &first);
	tsi_io_reader_destroy(r);
}

static void refuses_more_than_its_depth(void **state)
{
	struct tsi_io_reader *r = files_reader(3);
	struct tsi_read out;

	(void)state;
	files_put("a", 10, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(submit(r, "a", 10, i), 0);
	assert_int_equal(submit(r, "a", 10, 3), TSOCK_EAGAIN);
	assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
	/* Taken, not recycled: its memory is still lent. */
	assert_int_equal(submit(r, "a", 10, 3), TSOCK_EAGAIN);
	tsi_io_reader_recycle(r, &out);
	assert_int_equal(submit(r, "a", 10, 3), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
	assert_int_equal(tsi_io_reader_next(r, true, &out), TSOCK_EAGAIN);
	tsi_io_reader_destroy(r);
}

static void names_what_is_no_file(void **state)
{
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read out;

	(void)state;
	assert_int_equal(mkdirat(files_dirfd, "folder", 0700), 0);
	assert_int_equal(mkfifoat(files_dirfd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("loop", files_dirfd, "loop"), 0);
	expect_err(r, "missing", ENOENT);
	expect_err(r, "folder", EISDIR);
	expect_err(r, "fifo", TSI_READER_ODD);
	expect_err(r, "/dev/zero", TSI_READER_ODD);
	expect_err(r, "loop", ELOOP);
	expect_err(r, "missing/x", ENOENT);
	if (geteuid() != 0) {
		files_put("secret", 1, 1);
		assert_int_equal(fchmodat(files_dirfd, "secret", 0, 0), 0);
		expect_err(r, "secret", EACCES);
	}
	files_put("a", 10, 1);
	assert_int_equal(read_one(r, "a", 10, &out), 0);
	files_check(&out, 0, 10, 1);
	tsi_io_reader_destroy(r);
}

static void a_large_file_is_left_to_a_caller_that_has_the_memory(void **state)
{
	struct tsi_io_reader *r = files_reader(2);
	size_t size = TSI_READER_AHEAD + 1, len = 0;
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .path = "large",
				      .direct = files_direct };
	struct tsi_read out = { 0 };
	uint8_t *data = NULL;

	(void)state;
	files_put("large", size, 7);
	assert_int_equal(read_one(r, "large", 100, &out), TSI_READ_LARGE);
	assert_int_equal(out.size, size);
	assert_int_equal(out.len, 0);
	tsi_io_reader_recycle(r, &out);
	assert_int_equal(tsi_io_read(&q, size - 1, &data, &len), EFBIG);
	assert_int_equal(tsi_io_read(&q, size, &data, &len), 0);
	out.err = 0;
	out.data = data;
	out.len = len;
	files_check(&out, 0, size, 7);
	free(data);
	q.path = "missing";
	assert_int_equal(tsi_io_read(&q, 9, &data, &len), ENOENT);
	q.path = ".";
	assert_int_equal(tsi_io_read(&q, 9, &data, &len), EISDIR);
	unlinkat(files_dirfd, "large", 0);
	tsi_io_reader_destroy(r);
}

static void refuses_a_huge_file(void **state)
{
	struct tsi_io_reader *r = files_reader(1);
	int fd = openat(files_dirfd, "huge", O_CREAT | O_WRONLY, 0600);

	(void)state;
	if (ftruncate(fd, (off_t)TSI_READER_MAX + 1)) {
		close(fd);
		tsi_io_reader_destroy(r);
		skip();
	}
	close(fd);
	expect_err(r, "huge", EFBIG);
	unlinkat(files_dirfd, "huge", 0);
	tsi_io_reader_destroy(r);
}

static void a_file_that_changes_size_gives_some_prefix(void **state)
{
	struct tsi_io_reader *r = files_reader(4);
	int pipefd[2];
	pid_t pid;
	char done;

	(void)state;
	files_put("changing", 300000, 1);
	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	if (pid == 0) {
		int fd = openat(files_dirfd, "changing", O_WRONLY);
		char more[4096];

		memset(more, 'x', sizeof(more));
		for (int i = 0; i < 3000; i++) {
			if (ftruncate(fd, i % 2 ? 300000 : 50000))
				_exit(1);
			if (pwrite(fd, more, sizeof(more), 300000) < 0)
				_exit(1);
		}
		_exit(0);
	}
	close(pipefd[1]);
	/* Reads until the writer's end of the pipe closes. */
	fcntl(pipefd[0], F_SETFL, O_NONBLOCK);
	while (read(pipefd[0], &done, 1) < 0) {
		struct tsi_read out;

		assert_int_equal(read_one(r, "changing", 300000, &out), 0);
		assert_true(out.len >= 50000 && out.len <= 304096);
		tsi_io_reader_recycle(r, &out);
	}
	close(pipefd[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tsi_io_reader_destroy(r);
}

static void too_few_descriptors_is_an_error_that_passes(void **state)
{
	struct tsi_io_reader *r = files_reader(2);
	struct rlimit old;
	struct rlimit low;
	struct tsi_read out;

	(void)state;
	files_put("a", 10, 1);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &low);
	assert_int_equal(read_one(r, "a", 10, &out), EMFILE);
	tsi_io_reader_recycle(r, &out);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(read_one(r, "a", 10, &out), 0);
	files_check(&out, 0, 10, 1);
	tsi_io_reader_destroy(r);
}

static void may_be_destroyed_with_reads_in_flight(void **state)
{
	int before = files_open_fds();

	(void)state;
	files_put("large", 5000000, 1);
	for (int round = 0; round < 30; round++) {
		struct tsi_io_reader *r = files_reader(DEPTH);
		struct tsi_read out;

		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(submit(r, "large", 5000000, i), 0);
		for (int i = 0; i < round % 4; i++)
			(void)tsi_io_reader_next(r, i == 3, &out);
		tsi_io_reader_destroy(r);
	}
	assert_int_equal(files_open_fds(), before);
}

/* Bytes from..to-1 of a file are on disk alone, if its file system lets go. */
static void drop(const char *path, off_t from, off_t to)
{
	int fd = openat(files_dirfd, path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fsync(fd), 0);
	posix_fadvise(fd, from, to - from, POSIX_FADV_DONTNEED);
	close(fd);
}

static void a_file_that_is_partly_in_the_cache_is_read_whole(void **state)
{
	static const size_t len = 1 << 20, page = 1 << 16;
	struct tsi_io_reader *r = files_reader(DEPTH);
	struct tsi_read out;

	(void)state;
	files_put("partly", len, 3);
	for (size_t from = 0; from < len; from += 5 * page) {
		drop("partly", (off_t)from, (off_t)(from + 3 * page));
		assert_int_equal(read_one(r, "partly", len, &out), 0);
		files_check(&out, 0, len, 3);
		tsi_io_reader_recycle(r, &out);
	}
	tsi_io_reader_destroy(r);
}

/* Their files may be open, and what is to be read of them on disk alone. */
static void may_be_destroyed_before_files_were_read(void **state)
{
	int before = files_open_fds();

	(void)state;
	files_put("cold", 1 << 20, 1);
	for (int round = 0; round < 10; round++) {
		struct tsi_io_reader *r = files_reader(4 * DEPTH);

		drop("cold", 0, 1 << 20);
		for (unsigned i = 0; i < 4 * DEPTH; i++)
			assert_int_equal(submit(r, "cold", 1 << 20, i), 0);
		tsi_io_reader_destroy(r);
	}
	assert_int_equal(files_open_fds(), before);
}

static void refuses_a_silly_depth(void **state)
{
	struct tsi_io_reader *r;

	(void)state;
	assert_int_equal(tsi_io_reader_create(files_kind, 0, &r), TSOCK_EARG);
	assert_int_equal(
		tsi_io_reader_create(files_kind, TSI_READER_MAX_DEPTH + 1, &r),
		TSOCK_EARG);
	r = files_reader(TSI_READER_MAX_DEPTH);
	tsi_io_reader_destroy(r);
	tsi_io_reader_destroy(NULL);
}

/* In a child where a system call is forbidden; returns its exit status. */
static int without(long nr, int err)
{
	int status;
	pid_t pid;

	files_put("a", 10000, 5);
	pid = fork();
	if (pid == 0) {
		struct tsi_io_reader *r;
		struct tsi_read out;
		bool ok;

		if (!seccomp_forbid(nr, err))
			_exit(77);
		if (!tsi_io_reader_create(TSI_READER_URING, 2, &r))
			_exit(1);
		if (tsi_io_reader_create(TSI_READER_AUTO, 2, &r))
			_exit(2);
		if (strcmp(tsi_io_reader_name(r), "pread") ||
		    !tsi_io_reader_why(r))
			_exit(3);
		if (submit(r, "a", 0, 1) || tsi_io_reader_next(r, true, &out))
			_exit(4);
		ok = out.err == 0 && out.len == 10000;
		tsi_io_reader_destroy(r);
		_exit(ok ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void falls_back_where_io_uring_is_forbidden(void **state)
{
	static const struct {
		long nr;
		int err;
	} call[] = {
		{ SYS_io_uring_setup, EPERM },
		{ SYS_io_uring_setup, ENOSYS },
		{ SYS_io_uring_setup, ENOMEM },
		{ SYS_io_uring_register, EPERM },
		{ SYS_io_uring_enter, EPERM },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		int rc = without(call[i].nr, call[i].err);

		if (rc == 77) {
			print_message("system calls can't be filtered here\n");
			skip();
		}
		assert_int_equal(rc, 0);
	}
}

static const struct CMUnitTest suite[] = {
	cmocka_unit_test(reads_files_of_every_size),
	cmocka_unit_test(survives_a_wild_hint),
	cmocka_unit_test(a_file_that_the_kernel_makes_up_is_not_read),
	cmocka_unit_test(takes_finished_reads_by_lowest_tag),
	cmocka_unit_test(taken_bytes_stay_until_recycled),
	cmocka_unit_test(refuses_more_than_its_depth),
	cmocka_unit_test(names_what_is_no_file),
	cmocka_unit_test(a_large_file_is_left_to_a_caller_that_has_the_memory),
	cmocka_unit_test(refuses_a_huge_file),
	cmocka_unit_test(a_file_that_changes_size_gives_some_prefix),
	cmocka_unit_test(too_few_descriptors_is_an_error_that_passes),
	cmocka_unit_test(may_be_destroyed_with_reads_in_flight),
	cmocka_unit_test(a_file_that_is_partly_in_the_cache_is_read_whole),
	cmocka_unit_test(may_be_destroyed_before_files_were_read),
	cmocka_unit_test(refuses_a_silly_depth),
};

static const struct CMUnitTest fallback[] = {
	cmocka_unit_test(falls_back_where_io_uring_is_forbidden),
};

int main(void)
{
	int failed = 0;

	files_run_all(failed, suite);
	files_kind = TSI_READER_AUTO;
	failed += files_run("fallback", fallback);
	/* From here on the kernel doesn't tell what is in the page cache. */
	files_kind = TSI_READER_PREAD;
	if (seccomp_forbid(SYS_preadv2, EOPNOTSUPP))
		failed += files_run("pread, by threads", suite);
	if (seccomp_forbid(SYS_openat2, ENOSYS))
		failed += files_run("pread, opened by threads", suite);
	return failed != 0;
}
