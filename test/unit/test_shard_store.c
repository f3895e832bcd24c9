/* SPDX-License-Identifier: MIT */
/*
 * test_shard_store.c - whole copies of files in a folder: what is a copy, which
 * of them make place, and what several processes do to each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "io/shard_store.h"
#include "tsock/tsock.h"

#define KIB 1024u

static char top[64], store_path[96];
static int source_fd;
static const atomic_bool never_stop;

static int setup(void **state)
{
	char sources[96];

	(void)state;
	strcpy(top, "/tmp/tsock-store-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(store_path, sizeof(store_path), "%s/store", top);
	snprintf(sources, sizeof(sources), "%s/sources", top);
	if (mkdir(sources, 0700))
		return -1;
	source_fd = open(sources, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return source_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	close(source_fd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static struct tsi_shard_store *open_store(uint64_t bytes)
{
	struct tsi_shard_store *s = NULL;

	if (tsi_shard_store_open(store_path, bytes, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

/* A source of so many bytes, each c. */
static void put_source(const char *name, size_t len, char c)
{
	int fd = openat(source_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char *bytes = malloc(len);

	assert_true(fd >= 0 && bytes);
	memset(bytes, c, len);
	assert_int_equal(write(fd, bytes, len), len);
	free(bytes);
	close(fd);
}

static void set_time(int dirfd, const char *name, time_t at)
{
	const struct timespec t[2] = { { .tv_sec = at }, { .tv_sec = at } };

	assert_int_equal(utimensat(dirfd, name, t, 0), 0);
}

static enum tsi_shard_fetched fetch(struct tsi_shard_store *s, const char *name,
				    char to[TSI_SHARD_NAME])
{
	const struct tsi_shard_source of = { top, source_fd, name };

	return tsi_shard_store_fetch(s, &of, &never_stop, to);
}

/* Is there a copy of this name, with so many bytes, each c? */
static bool is_copy(const struct tsi_shard_store *s, const char *name,
		    size_t len, char c)
{
	int fd = openat(tsi_shard_store_fd(s), name, O_RDONLY | O_CLOEXEC);
	char *bytes = malloc(len + 1);
	bool good;

	assert_non_null(bytes);
	if (fd < 0) {
		free(bytes);
		return false;
	}
	good = read(fd, bytes, len + 1) == (ssize_t)len;
	for (size_t i = 0; good && i < len; i++)
		good = bytes[i] == c;
	free(bytes);
	close(fd);
	return good;
}

/* Files of the store whose names end like this. */
static unsigned count(const struct tsi_shard_store *s, const char *end)
{
	int fd = openat(tsi_shard_store_fd(s), ".", O_RDONLY | O_DIRECTORY);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name), m = strlen(end);

		n += len > m && !strcmp(e->d_name + len - m, end);
	}
	closedir(d);
	return n;
}

static void a_copy_is_made_once_and_found_by_others(void **state)
{
	char name[TSI_SHARD_NAME], again[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(KIB * KIB), *t;
	struct stat before, after;

	(void)state;
	put_source("a", 3 * KIB + 1, 'a');
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	assert_true(is_copy(s, name, 3 * KIB + 1, 'a'));
	assert_int_equal(fstatat(tsi_shard_store_fd(s), name, &before, 0), 0);
	tsi_shard_store_close(s);
	t = open_store(KIB * KIB);
	assert_int_equal(fetch(t, "a", again), TSI_SHARD_THERE);
	assert_string_equal(again, name);
	assert_int_equal(fstatat(tsi_shard_store_fd(t), name, &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(count(t, ".shard"), 1);
	assert_int_equal(count(t, ".part"), 0);
	tsi_shard_store_close(t);
}

static void a_source_that_changed_is_copied_anew(void **state)
{
	char a[TSI_SHARD_NAME], b[TSI_SHARD_NAME], c[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(KIB * KIB);

	(void)state;
	put_source("a", 100, 'a');
	set_time(source_fd, "a", 1000);
	assert_int_equal(fetch(s, "a", a), TSI_SHARD_THERE);
	/* The same size, at another time. */
	put_source("a", 100, 'b');
	set_time(source_fd, "a", 1001);
	assert_int_equal(fetch(s, "a", b), TSI_SHARD_THERE);
	assert_true(is_copy(s, b, 100, 'b'));
	/* Another size, at the same time. */
	put_source("a", 101, 'c');
	set_time(source_fd, "a", 1001);
	assert_int_equal(fetch(s, "a", c), TSI_SHARD_THERE);
	assert_true(is_copy(s, c, 101, 'c'));
	assert_true(is_copy(s, a, 100, 'a'));
	tsi_shard_store_close(s);
}

static void the_copy_that_was_unused_for_longest_makes_place(void **state)
{
	static const char *const source[] = { "a", "b", "c" };
	char name[4][TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(3 * KIB);
	int fd = tsi_shard_store_fd(s);
	time_t now = time(NULL);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_source(source[i], KIB, 'x');
		assert_int_equal(fetch(s, source[i], name[i]), TSI_SHARD_THERE);
	}
	/* Files of others are left alone, and take none of the room. */
	assert_int_equal(mkdirat(fd, "folder.shard", 0700), 0);
	close(openat(fd, "notes.txt", O_WRONLY | O_CREAT, 0600));
	set_time(fd, "notes.txt", 10);
	set_time(fd, name[0], now - TSI_SHARD_KEEP_S - 20);
	set_time(fd, name[1], now - TSI_SHARD_KEEP_S - 30);
	put_source("d", KIB, 'd');
	assert_int_equal(fetch(s, "d", name[3]), TSI_SHARD_THERE);
	assert_false(is_copy(s, name[1], KIB, 'x'));
	assert_true(is_copy(s, name[0], KIB, 'x'));
	assert_true(is_copy(s, name[2], KIB, 'x'));
	assert_true(is_copy(s, name[3], KIB, 'd'));
	assert_int_equal(faccessat(fd, "notes.txt", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "folder.shard", F_OK, 0), 0);
	tsi_shard_store_close(s);
}

static void what_was_just_used_stays(void **state)
{
	char name[TSI_SHARD_NAME], other[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(KIB);

	(void)state;
	put_source("a", KIB, 'a');
	put_source("b", KIB, 'b');
	put_source("large", KIB + 1, 'l');
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	set_time(tsi_shard_store_fd(s), name, 1000);
	/* It is found, which is a use. */
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	assert_int_equal(fetch(s, "b", other), TSI_SHARD_FULL);
	assert_true(is_copy(s, name, KIB, 'a'));
	set_time(tsi_shard_store_fd(s), name, 1000);
	assert_int_equal(fetch(s, "large", other), TSI_SHARD_NOT);
	assert_int_equal(fetch(s, "b", other), TSI_SHARD_THERE);
	assert_int_equal(count(s, ".shard"), 1);
	tsi_shard_store_close(s);
}

static void sources_that_cant_be_copied_are_told(void **state)
{
	char name[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(KIB);

	(void)state;
	assert_int_equal(mkdirat(source_fd, "folder", 0700), 0);
	put_source("empty", 0, 'e');
	assert_int_equal(fetch(s, "folder", name), TSI_SHARD_NOT);
	assert_int_equal(fetch(s, "empty", name), TSI_SHARD_NOT);
	assert_int_equal(fetch(s, "none", name), TSI_SHARD_NOT);
	tsi_shard_store_close(s);
}

/* The file that one process writes is no copy to another, which goes on. */
static void two_processes_dont_write_one_copy(void **state)
{
	char name[TSI_SHARD_NAME], part[TSI_SHARD_NAME + 8];
	struct tsi_shard_store *s = open_store(KIB * KIB);
	int dir = tsi_shard_store_fd(s), fd;

	(void)state;
	put_source("a", KIB, 'a');
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	snprintf(part, sizeof(part), "%s.part", name);
	assert_int_equal(renameat(dir, name, dir, part), 0);
	fd = openat(dir, part, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_LATER);
	assert_int_equal(count(s, ".part"), 1);
	/* Its writer has died. */
	close(fd);
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	assert_true(is_copy(s, name, KIB, 'a'));
	assert_int_equal(count(s, ".part"), 0);
	tsi_shard_store_close(s);
}

/* A process is killed while it copies: what is left is no copy, or whole. */
static void a_killed_process_leaves_no_half_copy(void **state)
{
	const size_t len = 64 * KIB * KIB;
	char name[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(4 * len);
	pid_t pid;
	int status;

	(void)state;
	put_source("a", len, 'a');
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(fetch(s, "a", name));
	while (!count(s, ".part") && !count(s, ".shard"))
		sched_yield();
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	put_source("b", KIB, 'b');
	assert_int_equal(fetch(s, "b", name), TSI_SHARD_THERE);
	assert_int_equal(count(s, ".part"), 0);
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	assert_true(is_copy(s, name, len, 'a'));
	tsi_shard_store_close(s);
}

/* As on a full disk: there is a limit to how large files may be. */
static int fetch_on_a_full_disk(void)
{
	struct tsi_shard_store *s = open_store(KIB * KIB);
	const struct rlimit most = { 10 * KIB, 10 * KIB };
	char name[TSI_SHARD_NAME];

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &most) ||
	    fetch(s, "a", name) != TSI_SHARD_BROKEN)
		return 1;
	if (!strstr(tsock_errmsg(), "write to the folder"))
		return 2;
	return count(s, ".part") || count(s, ".shard") ? 3 : 0;
}

static void a_full_disk_leaves_no_half_copy(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	put_source("a", 100 * KIB, 'a');
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(fetch_on_a_full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_stopped_copy_ends_soon_and_leaves_nothing(void **state)
{
	const struct tsi_shard_source of = { top, source_fd, "a" };
	const atomic_bool stop = true;
	char name[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(KIB * KIB);

	(void)state;
	put_source("a", KIB, 'a');
	assert_int_equal(tsi_shard_store_fetch(s, &of, &stop, name),
			 TSI_SHARD_LATER);
	assert_int_equal(count(s, ".shard"), 0);
	assert_int_equal(count(s, ".part"), 0);
	tsi_shard_store_close(s);
}

static void a_folder_that_cant_be_used_says_so(void **state)
{
	struct tsi_shard_store *s;
	char path[128];

	(void)state;
	close(open(store_path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(tsi_shard_store_open(store_path, 1, &s), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), store_path));
	snprintf(path, sizeof(path), "%s/none/store", top);
	assert_int_equal(tsi_shard_store_open(path, 1, &s), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "make the folder"));
}

static void without_a_size_the_disk_is_the_limit(void **state)
{
	char name[TSI_SHARD_NAME];
	struct tsi_shard_store *s = open_store(0);

	(void)state;
	put_source("a", KIB, 'a');
	assert_int_equal(fetch(s, "a", name), TSI_SHARD_THERE);
	tsi_shard_store_close(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_copy_is_made_once_and_found_by_others),
		TEST(a_source_that_changed_is_copied_anew),
		TEST(the_copy_that_was_unused_for_longest_makes_place),
		TEST(what_was_just_used_stays),
		TEST(sources_that_cant_be_copied_are_told),
		TEST(two_processes_dont_write_one_copy),
		TEST(a_killed_process_leaves_no_half_copy),
		TEST(a_full_disk_leaves_no_half_copy),
		TEST(a_stopped_copy_ends_soon_and_leaves_nothing),
		TEST(a_folder_that_cant_be_used_says_so),
		TEST(without_a_size_the_disk_is_the_limit),
	};

	return cmocka_run_group_tests_name("shard_store", tests, NULL, NULL);
}
