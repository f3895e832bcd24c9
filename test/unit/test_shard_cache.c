/* SPDX-License-Identifier: MIT */
/*
 * test_shard_cache.c - samples that are read from copies of their shards, and
 * from the shards themselves where there is no copy that can be read.
 */
#include "run/shard_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "data/format.h"
#include "run/sampler.h"
#include "test/lib/shard_fixture.h"

#define SHARDS 4u
#define SAMPLES (3 * SHARDS)

static char cache[100];
static struct sample want[SAMPLES], got[SAMPLES];

static int setup(void **state)
{
	int err = shard_setup(state);

	snprintf(cache, sizeof(cache), "%s/cache", worker_root);
	worker_options.order = TSOCK_ORDER_PHILOX;
	return err;
}

static void make_all(struct tsi_sampler *s, struct sample *to)
{
	unsigned substituted;

	memset(to, 0, SAMPLES * sizeof(*to));
	assert_int_equal(worker_make(s, DEPTH, to, SAMPLES, &substituted), 0);
	assert_int_equal(substituted, 0);
}

/* Shards of three samples each, and what these are. */
static void put_shards(void)
{
	struct tsi_sampler *s;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct tar_gen t = { 0 };
		char name[20];

		shard_three(&t);
		tar_gen_end(&t);
		snprintf(name, sizeof(name), "s%u.tar", i);
		shard_write_tar(&t, name);
	}
	s = worker_open_sampler();
	make_all(s, want);
	tsi_sampler_close(s);
}

static struct tsi_sampler *open_cached(void)
{
	worker_options.shard_cache = cache;
	worker_options.shard_cache_size = 1 << 20;
	return worker_open_sampler();
}

/* The shards have been read once: until each of them is read from a copy. */
static void wait_for_copies(const struct tsi_sampler *s)
{
	const struct tsi_index *x = tsi_sampler_index(s);

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct tsi_read_request q;
		struct tsi_location at;

		tsi_index_locate(x, i, &at);
		do {
			q = (struct tsi_read_request){ .dirfd = tsi_index_dirfd(
							       x),
						       .path = at.file,
						       .offset = at.offset,
						       .length = at.length };
			sched_yield();
		} while (!tsi_shard_cache_use(tsi_sampler_shards(s), &q));
		assert_int_not_equal(q.dirfd, tsi_index_dirfd(x));
		assert_int_equal(q.offset, at.offset);
	}
}

/* All bytes of a file become 0, but its size and time stay. */
static void spoil(const char *path)
{
	static const uint8_t zeros[64 << 10];
	struct stat st;
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size <= (off_t)sizeof(zeros));
	assert_int_equal(pwrite(fd, zeros, (size_t)st.st_size, 0), st.st_size);
	assert_int_equal(
		futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
	close(fd);
}

static void spoil_sources(void)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		char path[100];

		snprintf(path, sizeof(path), "%s/s%u.tar", worker_root, i);
		spoil(path);
	}
}

/* Have each copy be an empty file, or none. */
static void damage_copies(bool remove)
{
	DIR *d = opendir(cache);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".shard"))
			continue;
		n++;
		if (remove) {
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
		} else {
			int fd = openat(dirfd(d), e->d_name,
					O_WRONLY | O_TRUNC | O_CLOEXEC);

			assert_true(fd >= 0);
			close(fd);
		}
	}
	closedir(d);
	assert_int_equal(n, SHARDS);
}

static void assert_same(struct tsi_sampler *s)
{
	make_all(s, got);
	assert_memory_equal(got, want, sizeof(want));
}

static void copies_are_read_when_they_are_whole(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	put_shards();
	s = open_cached();
	/* Some from the shards, and some perhaps from copies by now. */
	assert_same(s);
	wait_for_copies(s);
	spoil_sources();
	assert_same(s);
	tsi_sampler_close(s);
}

static void a_later_run_reads_the_copies_of_an_earlier_one(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	put_shards();
	s = open_cached();
	assert_same(s);
	wait_for_copies(s);
	tsi_sampler_close(s);
	s = open_cached();
	/* Behind the scan, which has read the headers. */
	spoil_sources();
	wait_for_copies(s);
	assert_same(s);
	tsi_sampler_close(s);
}

static void copies_that_are_gone_or_cut_give_way_to_the_shards(void **state)
{
	(void)state;
	put_shards();
	for (unsigned remove = 0; remove < 2; remove++) {
		struct tsi_sampler *s = open_cached();

		assert_same(s);
		wait_for_copies(s);
		damage_copies(remove);
		assert_same(s);
		assert_same(s);
		tsi_sampler_close(s);
		/* Of the right size they would be found again. */
		if (!remove)
			damage_copies(true);
	}
}

static void without_a_folder_the_shards_are_read(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	put_shards();
	worker_put("cache", "no folder", 9);
	s = open_cached();
	assert_null(tsi_sampler_shards(s));
	assert_same(s);
	tsi_sampler_close(s);
}

/* A whole file is wanted, although there is a copy of it. */
static void files_of_one_sample_are_read_where_they_are(void **state)
{
	struct tsi_read_request q = { .path = "s0.tar" };
	struct tsi_sampler *s;

	(void)state;
	put_shards();
	s = open_cached();
	assert_same(s);
	wait_for_copies(s);
	assert_false(tsi_shard_cache_use(tsi_sampler_shards(s), &q));
	assert_string_equal(q.path, "s0.tar");
	q.length = 1;
	assert_true(tsi_shard_cache_use(tsi_sampler_shards(s), &q));
	assert_false(tsi_shard_cache_use(NULL, &q));
	tsi_sampler_close(s);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(copies_are_read_when_they_are_whole),
		TEST(a_later_run_reads_the_copies_of_an_earlier_one),
		TEST(copies_that_are_gone_or_cut_give_way_to_the_shards),
		TEST(without_a_folder_the_shards_are_read),
		TEST(files_of_one_sample_are_read_where_they_are),
	};

	return cmocka_run_group_tests_name("shard_cache", tests, NULL, NULL);
}
