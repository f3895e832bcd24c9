/* SPDX-License-Identifier: MIT */
/*
 * test_index_keeper.c - the rows that one producer of a data set has recorded
 * are known to the next one, and where they can't be kept that is no error.
 */
#include "run/index_keeper.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/service.h"
#include "test/lib/image_gen.h"
#include "test/lib/worker_fixture.h"

static char cache[96];
static int complaints;

static void listen(void *arg, int level, const char *line)
{
	(void)level;
	(void)arg;
	if (strstr(line, "no index of JPEG rows written"))
		complaints++;
}

static int make_jpegs(void **state)
{
	if (worker_make_root(state))
		return -1;
	for (unsigned i = 0; i < 3; i++) {
		struct image_gen_jpeg g = {
			.width = 200,
			.height = 150 + i * 30,
			.components = 3,
			.quality = 80,
			.seed = i,
		};
		struct image_gen_bytes f = image_gen_jpeg(&g);
		char name[16];

		snprintf(name, sizeof(name), "%c/0.jpg", 'a' + (char)i);
		worker_put(name, f.data, f.len);
		free(f.data);
	}
	snprintf(cache, sizeof(cache), "%s-cache", worker_root);
	worker_options.cache = cache;
	worker_options.index_memory = 1 << 20;
	complaints = 0;
	tsock_set_logger(listen, NULL);
	return 0;
}

static int remove_all(void **state)
{
	char command[128];

	tsock_set_logger(NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", cache);
	return system(command) || worker_remove_root(state);
}

static struct tsi_jpeg_index *rows_of(const struct tsi_sampler *s)
{
	return tsi_sampler_image_opts(s).jpeg_index;
}

static struct tsi_index_keeper *open_keeper(struct tsi_sampler *s)
{
	struct tsi_index_keeper *k;

	assert_int_equal(tsi_index_keeper_open(&worker_options,
					       tsi_sampler_index(s), rows_of(s),
					       &k),
			 0);
	return k;
}

static void decode(struct tsi_sampler *s)
{
	static struct sample to[64];
	unsigned substituted;

	assert_int_equal(worker_make(s, 1, to, 3, &substituted), 0);
}

/* Files that are kept; path, if not NULL, gets the first one's. */
static size_t kept(char *path, size_t len)
{
	char pattern[128];
	glob_t g;
	size_t n;

	snprintf(pattern, sizeof(pattern), "%s/*.rows*", cache);
	glob(pattern, 0, NULL, &g);
	n = g.gl_pathc;
	if (n && path)
		snprintf(path, len, "%s", g.gl_pathv[0]);
	globfree(&g);
	return n;
}

/* What a producer knows that decodes nothing. */
static uint64_t known(void)
{
	struct tsi_sampler *s = worker_open_sampler();
	uint64_t n;

	/* The keeper has read the index before it ends. */
	tsi_index_keeper_close(open_keeper(s));
	n = tsi_jpeg_index_rows(rows_of(s));
	tsi_sampler_close(s);
	return n;
}

/* A producer that makes a sample of each file. */
static uint64_t produce(void)
{
	struct tsi_sampler *s = worker_open_sampler();
	struct tsi_index_keeper *k = open_keeper(s);
	uint64_t n;

	decode(s);
	n = tsi_jpeg_index_rows(rows_of(s));
	tsi_index_keeper_close(k);
	tsi_sampler_close(s);
	return n;
}

static void the_next_producer_knows_the_rows(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(known(), 0);
	assert_int_equal(kept(NULL, 0), 0);
	n = produce();
	assert_int_not_equal(n, 0);
	assert_int_equal(kept(NULL, 0), 1);
	assert_int_equal(known(), n);
	/* A scan that is made anew is with rows that are. */
	worker_options.rescan = true;
	assert_int_equal(known(), 0);
}

static void another_data_set_knows_none(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_not_equal(produce(), 0);
	worker_put_image("a/1.png");
	assert_int_equal(known(), 0);
	n = produce();
	assert_int_not_equal(n, 0);
	assert_int_equal(known(), n);
	assert_int_equal(kept(NULL, 0), 1);
}

static void an_index_that_has_not_grown_is_not_written(void **state)
{
	char path[128];
	struct stat a, b;

	(void)state;
	produce();
	assert_int_equal(kept(path, sizeof(path)), 1);
	assert_int_equal(stat(path, &a), 0);
	assert_int_equal(a.st_mode & 0777, 0600);
	/* Equal samples need equal rows. */
	produce();
	assert_int_equal(stat(path, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
	assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
}

static void an_epoch_that_is_over_is_kept(void **state)
{
	struct tsi_sampler *s = worker_open_sampler();
	struct tsi_index_keeper *k = open_keeper(s);
	struct timespec ms = { 0, 1000000 };
	char path[128];
	uint64_t n;

	(void)state;
	tsi_index_keeper_tell(k, 0);
	decode(s);
	n = tsi_jpeg_index_rows(rows_of(s));
	tsi_index_keeper_tell(k, 1);
	/* While the file is written, it has a longer name. */
	while (!kept(path, sizeof(path)) ||
	       strcmp(path + strlen(path) - 5, ".rows") != 0)
		nanosleep(&ms, NULL);
	/* Another one may read while this one lives. */
	assert_int_equal(known(), n);
	/* Nothing was recorded since. */
	assert_int_equal(unlink(path), 0);
	tsi_index_keeper_tell(k, 2);
	tsi_index_keeper_close(k);
	assert_int_equal(kept(NULL, 0), 0);
	tsi_sampler_close(s);
}

static void a_folder_that_takes_no_file_is_no_error(void **state)
{
	struct tsi_sampler *s;
	struct tsi_index_keeper *k;

	(void)state;
	worker_options.cache = "/proc/no/such/folder";
	s = worker_open_sampler();
	k = open_keeper(s);
	decode(s);
	tsi_index_keeper_tell(k, 1);
	tsi_index_keeper_tell(k, 2);
	tsi_index_keeper_close(k);
	assert_int_equal(complaints, 1);
	tsi_sampler_close(s);
}

static void where_nothing_is_kept_there_is_no_keeper(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	worker_options.cache = "";
	s = worker_open_sampler();
	assert_null(open_keeper(s));
	tsi_sampler_close(s);
	worker_options.cache = cache;
	worker_options.index_memory = 0;
	s = worker_open_sampler();
	assert_null(open_keeper(s));
	tsi_sampler_close(s);
	tsi_index_keeper_tell(NULL, 1);
	tsi_index_keeper_close(NULL);
}

/* Through a service: decoded by its threads, kept at its end. */
static void a_service_keeps_its_index(void **state)
{
	struct tsi_service *s;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock_batch *b;
	tsock *t;

	(void)state;
	worker_options.name = "keeper";
	worker_options.threads = 1;
	worker_options.image_memory = 1 << 20;
	worker_options.ring = 64;
	worker_options.max_batch = 8;
	assert_int_equal(setenv("TSOCK_DIR", worker_root, 1), 0);
	assert_int_equal(tsi_service_open(&worker_options, &s), 0);
	assert_int_equal(tsi_service_start(s), 0);
	o.batch_size = 3;
	assert_int_equal(tsock_open("keeper", &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 20000, &b), 0);
	tsock_batch_release(b);
	tsock_close(t);
	tsi_service_tell(s, 3);
	tsi_service_close(s);
	assert_int_equal(kept(NULL, 0), 1);
	assert_int_not_equal(known(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_jpegs, remove_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_next_producer_knows_the_rows),
		TEST(another_data_set_knows_none),
		TEST(an_index_that_has_not_grown_is_not_written),
		TEST(an_epoch_that_is_over_is_kept),
		TEST(a_folder_that_takes_no_file_is_no_error),
		TEST(where_nothing_is_kept_there_is_no_keeper),
		TEST(a_service_keeps_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
