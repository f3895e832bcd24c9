/* SPDX-License-Identifier: MIT */
/*
 * test_files.c - files of many samples stay open: how often they are opened,
 * how many, and what happens when they change.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/files.h"
#include "io/reader.h"
#include "test/lib/image_gen.h"
#include "test/lib/usage.h"
#include "tsock/tsock.h"

#define SHARDS 5
#define LEN 1000 /* bytes of a sample */
#define SAMPLES 40
#define DEPTH 3
#define NEVER INT64_MAX

static char root[64];
static int rootfd, watch;
static struct tsi_io_files *files;
static struct tsi_io_reader *reader;

static const enum tsi_io_reader_kind kinds[] = { TSI_READER_PREAD,
						 TSI_READER_AUTO };

static void put_shard(const char *name, unsigned first, unsigned samples)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	for (unsigned i = 0; i < samples * LEN; i++)
		fputc((int)(first + i / LEN), f);
	fclose(f);
}

/*
 * The kernel notes each opening of a file in the folder, but two of the same
 * file as one if nobody asks in between.
 */
static unsigned opened(void)
{
	char event[64 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	unsigned n = 0;
	ssize_t len;

	while ((len = read(watch, event, sizeof(event))) > 0)
		for (char *p = event; p < event + len;) {
			struct inotify_event e;

			memcpy(&e, p, sizeof(e));
			n += e.mask & IN_OPEN && !(e.mask & IN_ISDIR);
			p += sizeof(e) + e.len;
		}
	return n;
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/tsock-files-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned k = 0; k < SHARDS; k++) {
		char name[16];

		snprintf(name, sizeof(name), "%u.tar", k);
		put_shard(name, k, SAMPLES);
	}
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return inotify_add_watch(watch, root, IN_OPEN) < 0;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	close(watch);
	close(rootfd);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void begin(enum tsi_io_reader_kind kind, unsigned most, int64_t check_ms)
{
	assert_int_equal(tsi_io_files_create(most, check_ms, &files), 0);
	assert_int_equal(tsi_io_reader_create(kind, DEPTH, &reader), 0);
	tsi_io_reader_use_files(reader, files);
	opened();
}

static void destroy_all(void)
{
	tsi_io_reader_destroy(reader);
	tsi_io_files_destroy(files);
}

/* Read a sample; the error, or 0 with the byte that all of it is. */
static int read_one(const char *name, unsigned sample, size_t len,
		    uint8_t *byte)
{
	struct tsi_read_request q = { .dirfd = rootfd,
				      .path = name,
				      .offset = (uint64_t)sample * LEN,
				      .length = len };
	struct tsi_read r;
	int err;

	assert_int_equal(tsi_io_reader_submit(reader, &q), 0);
	assert_int_equal(tsi_io_reader_next(reader, true, &r), 0);
	err = r.err;
	if (!err) {
		assert_int_equal(r.len, len);
		*byte = r.data[0];
		for (size_t i = 0; i < len; i++)
			assert_int_equal(r.data[i], *byte + i / LEN);
	}
	tsi_io_reader_recycle(reader, &r);
	return err;
}

/* All samples of all shards, in some order; how often one was opened. */
static unsigned read_epoch(uint64_t seed)
{
	unsigned order[SHARDS * SAMPLES], n = 0;

	for (unsigned i = 0; i < SHARDS * SAMPLES; i++) {
		unsigned j = (unsigned)(image_gen_random(&seed) % (i + 1));

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < SHARDS * SAMPLES; i++) {
		unsigned shard = order[i] / SAMPLES, at = order[i] % SAMPLES;
		char name[16];
		uint8_t byte;

		snprintf(name, sizeof(name), "%u.tar", shard);
		assert_int_equal(read_one(name, at, LEN, &byte), 0);
		assert_int_equal(byte, shard + at);
		n += opened();
	}
	return n;
}

static void each_is_opened_once(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		begin(kinds[k], 100, NEVER);
		assert_int_equal(read_epoch(1), SHARDS);
		assert_int_equal(read_epoch(2), 0);
		destroy_all();
	}
}

/* Several reads of a file may begin before it is open. */
static void reads_ahead_share_them(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		begin(kinds[k], 100, NEVER);
		for (unsigned n = 0; n < 10; n++) {
			for (unsigned i = 0; i < DEPTH; i++) {
				struct tsi_read_request q = {
					.dirfd = rootfd,
					.path = i ? "1.tar" : "2.tar",
					.offset = (n + i) * LEN,
					.length = LEN,
					.tag = i
				};

				assert_int_equal(
					tsi_io_reader_submit(reader, &q), 0);
			}
			for (unsigned i = 0; i < DEPTH; i++) {
				struct tsi_read r;

				assert_int_equal(
					tsi_io_reader_next(reader, true, &r),
					0);
				assert_int_equal(r.err, 0);
				assert_int_equal(r.data[LEN - 1],
						 (r.tag ? 1 : 2) + n + r.tag);
				tsi_io_reader_recycle(reader, &r);
			}
			if (n == 0)
				assert_in_range(opened(), 2, DEPTH);
			else
				assert_int_equal(opened(), 0);
		}
		destroy_all();
	}
}

static void no_more_stay_open_than_may(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		unsigned before;

		begin(kinds[k], 2, NEVER);
		before = usage_descriptors(getpid());
		/* Two of five once, the others for each sample. */
		assert_int_equal(read_epoch(1), 2 + 3 * SAMPLES);
		/* A sample's file may still be on its way to be closed. */
		assert_in_range(usage_descriptors(getpid()), before + 2,
				before + 4);
		destroy_all();
		begin(kinds[k], 0, NEVER);
		assert_int_equal(read_epoch(1), SHARDS * SAMPLES);
		destroy_all();
	}
}

static void whole_files_do_not_stay_open(void **state)
{
	struct tsi_read_request q = { .dirfd = rootfd, .path = "1.tar" };
	struct tsi_read r;

	(void)state;
	begin(TSI_READER_AUTO, 100, NEVER);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(tsi_io_reader_submit(reader, &q), 0);
		assert_int_equal(tsi_io_reader_next(reader, true, &r), 0);
		assert_int_equal(r.len, SAMPLES * LEN);
		tsi_io_reader_recycle(reader, &r);
		assert_int_equal(opened(), 1);
	}
	destroy_all();
}

static void a_file_that_took_its_place_is_opened(void **state)
{
	char from[128], to[128];
	uint8_t byte;

	(void)state;
	snprintf(from, sizeof(from), "%s/new", root);
	snprintf(to, sizeof(to), "%s/3.tar", root);
	for (unsigned k = 0; k < 2; k++) {
		put_shard("3.tar", 3, SAMPLES);
		begin(kinds[k], 100, 0);
		assert_int_equal(read_one("3.tar", 2, LEN, &byte), 0);
		assert_int_equal(byte, 5);
		put_shard("new", 100, SAMPLES);
		opened();
		assert_int_equal(rename(from, to), 0);
		assert_int_equal(read_one("3.tar", 2, LEN, &byte), 0);
		assert_int_equal(byte, 102);
		assert_int_equal(read_one("3.tar", 3, LEN, &byte), 0);
		assert_int_equal(byte, 103);
		assert_int_equal(opened(), 1);
		assert_int_equal(unlink(to), 0);
		assert_int_equal(read_one("3.tar", 3, LEN, &byte), ENOENT);
		destroy_all();
	}
}

/* As without: see the reader's header. */
static void a_file_that_was_cut_is_truncated(void **state)
{
	char path[128];
	uint8_t byte;

	(void)state;
	snprintf(path, sizeof(path), "%s/4.tar", root);
	for (unsigned k = 0; k < 2; k++) {
		put_shard("4.tar", 4, SAMPLES);
		begin(kinds[k], 100, NEVER);
		assert_int_equal(read_one("4.tar", 9, LEN, &byte), 0);
		assert_int_equal(truncate(path, 9 * LEN + 1), 0);
		assert_int_equal(read_one("4.tar", 9, LEN, &byte),
				 TSI_READER_TRUNCATED);
		assert_int_equal(read_one("4.tar", 20, LEN, &byte),
				 TSI_READER_TRUNCATED);
		assert_int_equal(read_one("4.tar", 8, LEN, &byte), 0);
		assert_int_equal(byte, 12);
		destroy_all();
	}
}

static void a_range_too_large_to_read_ahead_is_told(void **state)
{
	struct tsi_read_request q = { .length = TSI_READER_AHEAD + 1 };
	struct tsi_read r;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/0.tar", root);
	assert_int_equal(truncate(path, 8 << 20), 0);
	q.dirfd = rootfd;
	q.path = "0.tar";
	for (unsigned k = 0; k < 2; k++) {
		begin(kinds[k], 100, NEVER);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(tsi_io_reader_submit(reader, &q), 0);
			assert_int_equal(tsi_io_reader_next(reader, true, &r),
					 0);
			assert_int_equal(r.err, TSI_READ_LARGE);
			assert_int_equal(r.size, TSI_READER_AHEAD + 1);
			tsi_io_reader_recycle(reader, &r);
			assert_int_equal(opened(), i == 0);
		}
		destroy_all();
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_is_opened_once),
		TEST(reads_ahead_share_them),
		TEST(no_more_stay_open_than_may),
		TEST(whole_files_do_not_stay_open),
		TEST(a_file_that_took_its_place_is_opened),
		TEST(a_file_that_was_cut_is_truncated),
		TEST(a_range_too_large_to_read_ahead_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
