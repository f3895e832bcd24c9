/* SPDX-License-Identifier: MIT */
/*
 * test_shards.c - the files of a pack while it is written: what is there is
 * gone on with, and never cut off because it can't be read just now.
 */
#include "pack/shards.h"

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
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

#define ENTRY sizeof(struct tsi_shards_entry)
#define RECORDS 5

static char folder[100];
static struct tsi_shards *shards;

/* Which read of an entry fails, counted from 1; 0: none. */
static unsigned fails_at;
/* Looks at a shard's size fail. */
static bool blind;

/* These two are in place of libc's. */
ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	if (len == ENTRY && fails_at && --fails_at == 0) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, len, at);
}

int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	if (blind) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_newfstatat, dirfd, path, st, flags);
}

static int open_shards(void)
{
	return tsi_shards_open(folder, 7, 1 << 20, &shards);
}

static off_t size_of(const char *name)
{
	struct stat st;
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Records of 100 bytes, and the folder closed. */
static void write_records(void)
{
	uint8_t record[100] = { 1 };

	assert_int_equal(open_shards(), 0);
	for (unsigned i = 0; i < RECORDS; i++)
		assert_int_equal(
			tsi_shards_add(shards, record, sizeof(record), false),
			0);
	assert_int_equal(tsi_shards_sync(shards), 0);
	tsi_shards_close(shards);
}

static void refuse(const char *what)
{
	off_t journal = size_of("journal"), shard = size_of("00000.pack");

	assert_int_equal(open_shards(), TSOCK_ESYS);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), what);
	fails_at = 0;
	blind = false;
	assert_int_equal(size_of("journal"), journal);
	assert_int_equal(size_of("00000.pack"), shard);
}

static void what_cannot_be_read_just_now_is_not_cut_off(void **state)
{
	(void)state;
	write_records();
	fails_at = 1;
	refuse("read the journal in ");
	fails_at = 3;
	refuse("read the journal in ");
	blind = true;
	refuse("look at a shard in ");
	assert_int_equal(open_shards(), 0);
	assert_int_equal(tsi_shards_count(shards), RECORDS);
	assert_int_equal(tsi_shards_at(shards, 1)->length, 100);
	tsi_shards_close(shards);
}

/* As a power cut may leave it. */
static void what_no_shard_holds_is_cut_off(void **state)
{
	char path[200];

	(void)state;
	write_records();
	snprintf(path, sizeof(path), "%s/00000.pack", folder);
	assert_int_equal(truncate(path, size_of("00000.pack") - 1), 0);
	assert_int_equal(open_shards(), 0);
	assert_int_equal(tsi_shards_count(shards), RECORDS - 1);
	tsi_shards_close(shards);
	assert_int_equal(size_of("journal"), 24 + (RECORDS - 1) * ENTRY);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(open_shards(), 0);
	assert_int_equal(tsi_shards_count(shards), 0);
	tsi_shards_close(shards);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%s/tsock-shards-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "journal", "00000.pack" };
	char path[200];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_cannot_be_read_just_now_is_not_cut_off),
		TEST(what_no_shard_holds_is_cut_off),
	};

	return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
