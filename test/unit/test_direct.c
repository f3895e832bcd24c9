/* SPDX-License-Identifier: MIT */
/*
 * test_direct.c - files that are read past the page cache.
 *
 * test_reader.c, test_ranges.c and test_files.c have what such reads share with
 * others.  pread() below takes the place of libc's and sees whether reads are
 * aligned; it may also refuse them, as some file systems do.
 */
#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "io/slot.h"
#include "test/lib/file_reader.h"
#include "test/lib/seccomp.h"
#include "tsock/tsock.h"

#define NELEMS(a) (sizeof(a) / sizeof((a)[0]))
#define BLOCK TSI_DIRECT_ALIGN

/* Counted since the test's begin. */
static _Atomic unsigned direct_reads, cached_reads, odd_reads;
static _Atomic bool refuses; /* reads past the cache fail */

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	if (!(fcntl(fd, F_GETFL) & O_DIRECT)) {
		cached_reads++;
	} else if (refuses) {
		errno = EINVAL;
		return -1;
	} else {
		direct_reads++;
		odd_reads += ((uintptr_t)to | len | (uintptr_t)at) % BLOCK != 0;
	}
	return syscall(SYS_pread64, fd, to, len, at);
}

static int begin_test(void **state)
{
	(void)state;
	direct_reads = cached_reads = odd_reads = 0;
	refuses = false;
	return 0;
}

static struct tsi_read_request request(const char *path, uint64_t offset,
				       uint64_t length)
{
	return (struct tsi_read_request){ .dirfd = files_dirfd,
					  .path = path,
					  .offset = offset,
					  .length = length,
					  .direct = true };
}

/* Does the file system of the scratch folder take such reads? */
static bool has_direct(void)
{
	int fd;
	bool is;

	files_put("probe", 1, 1);
	fd = openat(files_dirfd, "probe", O_RDONLY | O_DIRECT);
	is = fd >= 0;
	if (is)
		close(fd);
	return is;
}

static void read_both_ways(struct tsi_io_reader *r, const char *path,
			   uint64_t offset, uint64_t length, size_t size)
{
	struct tsi_read_request q = request(path, offset, length);
	size_t len, want = length ? length : size;
	struct tsi_read out;
	uint8_t *data;

	assert_int_equal(tsi_io_reader_submit(r, &q), 0);
	assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
	files_check(&out, offset, want, 3);
	tsi_io_reader_recycle(r, &out);
	assert_int_equal(tsi_io_read(&q, want, &data, &len), 0);
	out = (struct tsi_read){ .data = data, .len = len };
	files_check(&out, offset, want, 3);
	free(data);
}

static void bytes_are_right_at_every_edge_of_a_block(void **state)
{
	static const size_t size[] = { 1,         511,
				       512,       513,
				       BLOCK - 1, BLOCK,
				       BLOCK + 1, 2 * BLOCK - 1,
				       2 * BLOCK, 2 * BLOCK + 1,
				       65535,     65536,
				       65537,     TSI_READER_AHEAD };
	static const int near[] = { -513, -512, -511, -1, 0, 1, 511, 512 };
	struct tsi_io_reader *r = files_reader(2);

	(void)state;
	for (unsigned i = 0; i < NELEMS(size); i++) {
		files_put("file", size[i], 3);
		read_both_ways(r, "file", 0, 0, size[i]);
	}
	files_put("file", 5 * BLOCK + 77, 3);
	for (unsigned i = 0; i < NELEMS(near); i++)
		for (unsigned j = 0; j < NELEMS(near); j++)
			for (unsigned k = 1; k < 4; k++) {
				uint64_t from = (uint64_t)(BLOCK + near[i]);
				uint64_t to =
					(uint64_t)((k + 1) * BLOCK + near[j]);

				if (to > from)
					read_both_ways(r, "file", from,
						       to - from, 0);
			}
	for (unsigned n = 1; n < 80; n++) {
		read_both_ways(r, "file", 5 * BLOCK + 77 - n, n, 0);
		read_both_ways(r, "file", 0, n, 0);
	}
	tsi_io_reader_destroy(r);
	assert_int_equal(odd_reads, 0);
	if (!has_direct())
		skip();
	assert_true(direct_reads > 0);
	assert_int_equal(cached_reads, 0);
}

/* Pages of this file that are in the cache. */
static unsigned cached_pages(const char *name, size_t size)
{
	unsigned char page[64] = { 0 };
	unsigned n = 0, pages = (unsigned)((size + BLOCK - 1) / BLOCK);
	int fd = openat(files_dirfd, name, O_RDONLY);
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	assert_true(at != MAP_FAILED && pages <= sizeof(page));
	assert_int_equal(mincore(at, size, page), 0);
	for (unsigned i = 0; i < pages; i++)
		n += page[i] & 1;
	munmap(at, size);
	close(fd);
	return n;
}

static void drop(const char *name)
{
	int fd = openat(files_dirfd, name, O_RDONLY);

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

static void the_page_cache_does_not_hold_the_file(void **state)
{
	const size_t size = 40 * BLOCK - 100;
	struct tsi_io_reader *r = files_reader(1);
	struct tsi_read_request q = request("file", 0, 0);
	struct tsi_read out;

	(void)state;
	files_put("file", size, 3);
	drop("file");
	if (cached_pages("file", size) || !has_direct()) {
		tsi_io_reader_destroy(r);
		print_message("[  SKIP  ] this file system is a cache\n");
		skip();
	}
	read_both_ways(r, "file", 0, 0, size);
	read_both_ways(r, "file", 5000, 50000, size);
	assert_int_equal(cached_pages("file", size), 0);
	q.direct = false;
	assert_int_equal(tsi_io_reader_submit(r, &q), 0);
	assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
	files_check(&out, 0, size, 3);
	tsi_io_reader_recycle(r, &out);
	assert_int_equal(cached_pages("file", size), 40);
	tsi_io_reader_destroy(r);
}

static void ranges_of_files_that_stay_open_are_direct_too(void **state)
{
	struct tsi_io_reader *r = files_reader(4);
	struct tsi_io_files *files;

	(void)state;
	files_put("file", 10 * BLOCK + 1, 3);
	assert_int_equal(tsi_io_files_create(5, 1000000, &files), 0);
	tsi_io_reader_use_files(r, files);
	for (unsigned i = 0; i < 100; i++)
		read_both_ways(r, "file", 311 * i, 1 + 97 * i, 0);
	tsi_io_reader_destroy(r);
	tsi_io_files_destroy(files);
	assert_int_equal(odd_reads, 0);
	if (has_direct())
		assert_int_equal(cached_reads, 0);
}

/* ------------------------------------------------------------------------
 * Steps that no kernel takes at will
 */

static uint64_t random_state;

static unsigned below(unsigned n)
{
	random_state =
		random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

/*
 * One read, of which the kernel gives a part at a time, any number of bytes,
 * and which it may refuse at some step.
 */
static int read_in_parts(struct tsi_io_slot *s,
			 const struct tsi_read_request *q, bool refuse)
{
	uint64_t end = 0; /* of what has come */
	int fd, err;

	tsi_io_slot_begin(s, q);
	assert_int_equal(tsi_io_slot_is_open(s), TSI_IO_CLOSED);
	fd = tsi_io_slot_open_file(q);
	assert_true(fd >= 0);
	err = tsi_io_slot_opened(s, fd);
	while (err == TSI_IO_MORE) {
		struct tsi_io_piece p = tsi_io_slot_piece(s);
		ssize_t n = pread(p.fd, p.to, p.len, (off_t)p.at);
		size_t least = p.at < end ? end - p.at + 1 : 1;

		assert_true(n >= 0);
		if (refuse && below(3) == 0 && fcntl(fd, F_GETFL) & O_DIRECT) {
			memset(p.to, 0xee, p.len);
			err = tsi_io_slot_failed(s, EINVAL);
			assert_int_equal(err, TSI_IO_MORE);
			assert_false(fcntl(fd, F_GETFL) & O_DIRECT);
			continue;
		}
		if ((size_t)n > least)
			n = (ssize_t)(least + below((unsigned)(n - least + 1)));
		/* What didn't come isn't there. */
		memset(p.to + n, 0xee, p.len - (size_t)n);
		if (n > 0 && p.at + (size_t)n > end)
			end = p.at + (size_t)n;
		err = tsi_io_slot_got(s, (size_t)n);
	}
	assert_int_equal(tsi_io_slot_ended(s, err), fd);
	close(fd);
	tsi_io_slot_hand_over(s);
	return err;
}

static void parts_and_refusals_give_the_same_bytes(void **state)
{
	const unsigned size = 9 * BLOCK + 500;
	struct tsi_io_slot *s = tsi_io_slots_create(1);
	struct tsi_read out;

	(void)state;
	files_put("file", size, 3);
	for (unsigned i = 0; i < 3000; i++) {
		unsigned from = below(size), len = 1 + below(size - from);
		struct tsi_read_request q = i % 5 ? request("file", from, len)
						  : request("file", 0, 0);

		assert_int_equal(read_in_parts(s, &q, i % 2), 0);
		tsi_io_slot_take(s, &out);
		files_check(&out, q.offset, q.length ? q.length : size, 3);
		tsi_io_slot_release(s);
		/* One byte beyond the end; the scan knew of a longer file. */
		q = request("file", size - 10, 10);
		assert_int_equal(read_in_parts(s, &q, i % 2), 0);
		tsi_io_slot_take(s, &out);
		files_check(&out, q.offset, 10, 3);
		tsi_io_slot_release(s);
	}
	assert_int_equal(odd_reads, 0);
	tsi_io_slots_destroy(s, 1);
}

/* An error of the disk is none of these. */
static void other_errors_are_not_hidden(void **state)
{
	struct tsi_io_slot *s = tsi_io_slots_create(1);
	struct tsi_read_request q = request("file", 0, 0);
	int fd;

	(void)state;
	files_put("file", 100, 3);
	tsi_io_slot_begin(s, &q);
	fd = tsi_io_slot_open_file(&q);
	assert_int_equal(tsi_io_slot_opened(s, fd), TSI_IO_MORE);
	assert_int_equal(tsi_io_slot_failed(s, EIO), EIO);
	if (has_direct())
		assert_int_equal(tsi_io_slot_failed(s, EINVAL), TSI_IO_MORE);
	assert_int_equal(tsi_io_slot_failed(s, EINVAL), EINVAL);
	assert_int_equal(tsi_io_slot_ended(s, EINVAL), fd);
	close(fd);
	tsi_io_slots_destroy(s, 1);
}

/* ------------------------------------------------------------------------
 * File systems that refuse
 */

static unsigned said;
static char what_was_said[300];

static void hear(void *arg, int level, const char *line)
{
	(void)arg;
	if (level != TSOCK_LOG_WARN)
		return;
	said++;
	snprintf(what_was_said, sizeof(what_was_said), "%s", line);
}

/* fcntl(F_SETFL) with O_DIRECT fails by EINVAL. */
static void forbid_direct(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (!seccomp_install(code, sizeof(code) / sizeof(code[0])))
		_exit(77);
}

/* In a child, since it can't be undone and is said once in a process. */
static void read_where_it_is_refused(void (*refuse)(void), unsigned direct)
{
	int status;
	pid_t pid;

	files_put("file", 3 * BLOCK + 9, 3);
	tsi_io_reader_destroy(files_reader(2)); /* or this test is skipped */
	pid = fork();
	if (pid == 0) {
		struct tsi_io_reader *r;

		tsock_set_logger(hear, NULL);
		/* Before there are threads that it would not concern. */
		refuse();
		r = files_reader(2);
		read_both_ways(r, "file", 0, 0, 3 * BLOCK + 9);
		read_both_ways(r, "file", 5000, 99, 0);
		tsi_io_reader_destroy(r);
		if (direct_reads != direct || cached_reads == 0)
			_exit(2);
		if (said != 1 || !strstr(what_was_said, "--direct: file "))
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void refuse_reads(void)
{
	refuses = true;
}

static void a_refusal_is_said_once_and_the_cache_is_used(void **state)
{
	(void)state;
	if (!has_direct())
		skip();
	read_where_it_is_refused(forbid_direct, 0);
	if (files_kind == TSI_READER_PREAD)
		read_where_it_is_refused(refuse_reads, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin_test)

static const struct CMUnitTest suite[] = {
	TEST(bytes_are_right_at_every_edge_of_a_block),
	TEST(the_page_cache_does_not_hold_the_file),
	TEST(ranges_of_files_that_stay_open_are_direct_too),
	TEST(parts_and_refusals_give_the_same_bytes),
	TEST(other_errors_are_not_hidden),
};

/* Before this process has said it. */
static const struct CMUnitTest refusals[] = {
	TEST(a_refusal_is_said_once_and_the_cache_is_used),
};

int main(void)
{
	int failed = 0;

	files_kind = TSI_READER_PREAD;
	failed += files_run("pread, refused", refusals);
	files_kind = TSI_READER_URING;
	failed += files_run("io_uring, refused", refusals);
	failed += files_run("io_uring", suite);
	files_kind = TSI_READER_PREAD;
	failed += files_run("pread", suite);
	return failed != 0;
}
