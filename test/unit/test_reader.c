/* SPDX-License-Identifier: MIT */
/*
 * test_reader.c - one suite over both backends of the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static void check(const struct tsi_read *r, size_t len, unsigned seed)
{
	assert_int_equal(r->err, 0);
	assert_int_equal(r->len, len);
	assert_non_null(r->data);
	for (size_t i = 0; i < len; i++) {
		uint8_t want = (uint8_t)(i * 2654435761u >> 13 ^ seed);

		if (r->data[i] != want)
			fail_msg("byte %zu of %zu", i, len);
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

static int submit(struct tsi_file_reader *r, const char *path, uint64_t hint,
		  uint64_t tag)
{
	struct tsi_read_request q = {
		.dirfd = dirfd_, .path = path, .size_hint = hint, .tag = tag
	};

	return tsi_file_reader_submit(r, &q);
}

/* Read one file; returns its err. */
static int read_one(struct tsi_file_reader *r, const char *path, uint64_t hint,
		    struct tsi_read *out)
{
	struct tsi_read none;

	assert_int_equal(submit(r, path, hint, 7), 0);
	assert_int_equal(tsi_file_reader_next(r, true, out), 0);
	assert_int_equal(tsi_file_reader_next(r, true, &none), TSOCK_EAGAIN);
	assert_int_equal(out->tag, 7);
	return out->err;
}

static void expect_err(struct tsi_file_reader *r, const char *path, int err)
{
	struct tsi_read out;

	assert_int_equal(read_one(r, path, 100, &out), err);
	tsi_file_reader_recycle(r, &out);
}

static void reads_files_of_every_size(void **state)
{
	static const size_t size[] = {
		0,     1,     4095,   4096,    65535,
		65536, 65537, 100000, 1 << 20, TSI_READER_AHEAD
	};
	struct tsi_file_reader *r = make(DEPTH);
	struct tsi_read out;

	(void)state;
	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		put("file", size[i], i);
		/* Right, unknown, too small and too large hints. */
		for (unsigned h = 0; h < 4; h++) {
			uint64_t hint[] = { size[i], 0, size[i] / 2,
					    size[i] * 2 };

			assert_int_equal(read_one(r, "file", hint[h], &out), 0);
			check(&out, size[i], i);
			tsi_file_reader_recycle(r, &out);
		}
	}
	tsi_file_reader_destroy(r);
}

static void survives_a_wild_hint(void **state)
{
	struct tsi_file_reader *r = make(1);
	struct tsi_read out;

	(void)state;
	put("file", 5000, 1);
	assert_int_equal(read_one(r, "file", UINT64_MAX, &out), 0);
	check(&out, 5000, 1);
	tsi_file_reader_recycle(r, &out);
	tsi_file_reader_destroy(r);
}

/* They call themselves regular, and some of them never end or block. */
static void a_file_that_the_kernel_makes_up_is_not_read(void **state)
{
	struct tsi_file_reader *r = make(1);
	struct tsi_read out;

	(void)state;
	if (access("/proc/self/maps", R_OK))
		skip();
	expect_err(r, "/proc/self/maps", TSI_READER_MADE_UP);
	assert_int_equal(symlinkat("/proc/self/maps", dirfd_, "link"), 0);
	expect_err(r, "link", TSI_READER_MADE_UP);
	if (!access("/proc/kmsg", R_OK))
		expect_err(r, "/proc/kmsg", TSI_READER_MADE_UP);
	if (!access("/sys/kernel/uevent_seqnum", R_OK))
		expect_err(r, "/sys/kernel/uevent_seqnum", TSI_READER_MADE_UP);
	assert_non_null(strstr(tsi_file_reader_strerror(TSI_READER_MADE_UP),
			       "made up by the kernel"));
	/* In turn with others, on the same slot. */
	put("file", 5000, 1);
	assert_int_equal(read_one(r, "file", 5000, &out), 0);
	check(&out, 5000, 1);
	tsi_file_reader_recycle(r, &out);
	expect_err(r, "link", TSI_READER_MADE_UP);
	tsi_file_reader_destroy(r);
}

static void takes_finished_reads_by_lowest_tag(void **state)
{
	struct tsi_file_reader *r = make(DEPTH);
	struct tsi_read out;
	char name[DEPTH][16];
	int before = open_fds();

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++) {
		snprintf(name[i], sizeof(name[i]), "f%u", i);
		put(name[i], 1000 * i, i);
	}
	for (unsigned round = 0; round < 20; round++) {
		uint64_t seen = 0;

		for (unsigned i = 0; i < DEPTH; i++) {
			unsigned k = (i * 5 + round) % DEPTH;

			assert_int_equal(submit(r, name[k], 1000, k), 0);
		}
		for (unsigned i = 0; i < DEPTH; i++) {
			assert_int_equal(tsi_file_reader_next(r, true, &out),
					 0);
			check(&out, 1000 * out.tag, (unsigned)out.tag);
			assert_false(seen >> out.tag & 1);
			seen |= UINT64_C(1) << out.tag;
			tsi_file_reader_recycle(r, &out);
		}
		assert_int_equal(seen, (1u << DEPTH) - 1);
	}
	assert_int_equal(tsi_file_reader_next(r, true, &out), TSOCK_EAGAIN);
	assert_int_equal(tsi_file_reader_next(r, false, &out), TSOCK_EAGAIN);
	tsi_file_reader_destroy(r);
	assert_true(open_fds() <= before);
}

static void taken_bytes_stay_until_recycled(void **state)
{
	struct tsi_file_reader *r = make(2);
	struct tsi_read first;
	struct tsi_read out;

	(void)state;
	put("a", 70000, 1);
	put("b", 90000, 2);
	assert_int_equal(read_one(r, "a", 70000, &first), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(read_one(r, "b", 0, &out), 0);
		check(&out, 90000, 2);
		tsi_file_reader_recycle(r, &out);
		check(&first, 70000, 1);
	}
	tsi_file_reader_recycle(r, &first);
	tsi_file_reader_destroy(r);
}

static void refuses_more_than_its_depth(void **state)
{
	struct tsi_file_reader *r = make(3);
	struct tsi_read out;

	(void)state;
	put("a", 10, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(submit(r, "a", 10, i), 0);
	assert_int_equal(submit(r, "a", 10, 3), TSOCK_EAGAIN);
	assert_int_equal(tsi_file_reader_next(r, true, &out), 0);
	/* Taken, not recycled: its memory is still lent. */
	assert_int_equal(submit(r, "a", 10, 3), TSOCK_EAGAIN);
	tsi_file_reader_recycle(r, &out);
	assert_int_equal(submit(r, "a", 10, 3), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(tsi_file_reader_next(r, true, &out), 0);
	assert_int_equal(tsi_file_reader_next(r, true, &out), TSOCK_EAGAIN);
	tsi_file_reader_destroy(r);
}

static void names_what_is_no_file(void **state)
{
	struct tsi_file_reader *r = make(2);
	struct tsi_read out;

	(void)state;
	assert_int_equal(mkdirat(dirfd_, "folder", 0700), 0);
	assert_int_equal(mkfifoat(dirfd_, "fifo", 0600), 0);
	assert_int_equal(symlinkat("loop", dirfd_, "loop"), 0);
	expect_err(r, "missing", ENOENT);
	expect_err(r, "folder", EISDIR);
	expect_err(r, "fifo", TSI_READER_ODD);
	expect_err(r, "/dev/zero", TSI_READER_ODD);
	expect_err(r, "loop", ELOOP);
	expect_err(r, "missing/x", ENOENT);
	if (geteuid() != 0) {
		put("secret", 1, 1);
		assert_int_equal(fchmodat(dirfd_, "secret", 0, 0), 0);
		expect_err(r, "secret", EACCES);
	}
	put("a", 10, 1);
	assert_int_equal(read_one(r, "a", 10, &out), 0);
	check(&out, 10, 1);
	tsi_file_reader_destroy(r);
}

static void a_large_file_is_left_to_a_caller_that_has_the_memory(void **state)
{
	struct tsi_file_reader *r = make(2);
	size_t size = TSI_READER_AHEAD + 1, len = 0;
	struct tsi_read_request q = { .dirfd = dirfd_, .path = "large" };
	struct tsi_read out = { 0 };
	uint8_t *data = NULL;

	(void)state;
	put("large", size, 7);
	assert_int_equal(read_one(r, "large", 100, &out), TSI_READ_LARGE);
	assert_int_equal(out.size, size);
	assert_int_equal(out.len, 0);
	tsi_file_reader_recycle(r, &out);
	assert_int_equal(tsi_file_read(&q, size - 1, &data, &len), EFBIG);
	assert_int_equal(tsi_file_read(&q, size, &data, &len), 0);
	out.err = 0;
	out.data = data;
	out.len = len;
	check(&out, size, 7);
	free(data);
	q.path = "missing";
	assert_int_equal(tsi_file_read(&q, 9, &data, &len), ENOENT);
	q.path = ".";
	assert_int_equal(tsi_file_read(&q, 9, &data, &len), EISDIR);
	unlinkat(dirfd_, "large", 0);
	tsi_file_reader_destroy(r);
}

static void refuses_a_huge_file(void **state)
{
	struct tsi_file_reader *r = make(1);
	int fd = openat(dirfd_, "huge", O_CREAT | O_WRONLY, 0600);

	(void)state;
	if (ftruncate(fd, (off_t)TSI_READER_MAX + 1)) {
		close(fd);
		tsi_file_reader_destroy(r);
		skip();
	}
	close(fd);
	expect_err(r, "huge", EFBIG);
	unlinkat(dirfd_, "huge", 0);
	tsi_file_reader_destroy(r);
}

static void a_file_that_changes_size_gives_some_prefix(void **state)
{
	struct tsi_file_reader *r = make(4);
	int pipefd[2];
	pid_t pid;
	char done;

	(void)state;
	put("changing", 300000, 1);
	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	if (pid == 0) {
		int fd = openat(dirfd_, "changing", O_WRONLY);
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
		tsi_file_reader_recycle(r, &out);
	}
	close(pipefd[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tsi_file_reader_destroy(r);
}

static void too_few_descriptors_is_an_error_that_passes(void **state)
{
	struct tsi_file_reader *r = make(2);
	struct rlimit old;
	struct rlimit low;
	struct tsi_read out;

	(void)state;
	put("a", 10, 1);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &low);
	assert_int_equal(read_one(r, "a", 10, &out), EMFILE);
	tsi_file_reader_recycle(r, &out);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(read_one(r, "a", 10, &out), 0);
	check(&out, 10, 1);
	tsi_file_reader_destroy(r);
}

static void may_be_destroyed_with_reads_in_flight(void **state)
{
	int before = open_fds();

	(void)state;
	put("large", 5000000, 1);
	for (int round = 0; round < 30; round++) {
		struct tsi_file_reader *r = make(DEPTH);
		struct tsi_read out;

		for (unsigned i = 0; i < DEPTH; i++)
			assert_int_equal(submit(r, "large", 5000000, i), 0);
		for (int i = 0; i < round % 4; i++)
			(void)tsi_file_reader_next(r, i == 3, &out);
		tsi_file_reader_destroy(r);
	}
	assert_int_equal(open_fds(), before);
}

static void refuses_a_silly_depth(void **state)
{
	struct tsi_file_reader *r;

	(void)state;
	assert_int_equal(tsi_file_reader_create(kind_, 0, &r), TSOCK_EARG);
	assert_int_equal(
		tsi_file_reader_create(kind_, TSI_READER_MAX_DEPTH + 1, &r),
		TSOCK_EARG);
	r = make(TSI_READER_MAX_DEPTH);
	tsi_file_reader_destroy(r);
	tsi_file_reader_destroy(NULL);
}

static void forbid(long nr, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(77);
}

/* In a child where a system call is forbidden; returns its exit status. */
static int without(long nr, int err)
{
	int status;
	pid_t pid;

	put("a", 10000, 5);
	pid = fork();
	if (pid == 0) {
		struct tsi_file_reader *r;
		struct tsi_read out;
		bool ok;

		forbid(nr, err);
		if (!tsi_file_reader_create(TSI_READER_URING, 2, &r))
			_exit(1);
		if (tsi_file_reader_create(TSI_READER_AUTO, 2, &r))
			_exit(2);
		if (strcmp(tsi_file_reader_name(r), "pread") ||
		    !tsi_file_reader_why(r))
			_exit(3);
		if (submit(r, "a", 0, 1) || tsi_file_reader_next(r, true, &out))
			_exit(4);
		ok = out.err == 0 && out.len == 10000;
		tsi_file_reader_destroy(r);
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

		if (rc == 77)
			skip();
		assert_int_equal(rc, 0);
	}
}

static int scratch(void **state)
{
	static char path[64];
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.40s/tsock-reader-XXXXXX",
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
	cmocka_unit_test(refuses_a_silly_depth),
};

static const struct CMUnitTest fallback[] = {
	cmocka_unit_test(falls_back_where_io_uring_is_forbidden),
};

int main(void)
{
	int failed = 0;

	kind_ = TSI_READER_PREAD;
	failed += cmocka_run_group_tests_name("pread", suite, scratch, clean);
	kind_ = TSI_READER_URING;
	failed +=
		cmocka_run_group_tests_name("io_uring", suite, scratch, clean);
	kind_ = TSI_READER_AUTO;
	failed += cmocka_run_group_tests_name("fallback", fallback, scratch,
					      clean);
	return failed != 0;
}
