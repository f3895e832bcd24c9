/* SPDX-License-Identifier: MIT */
/*
 * test_growth.c - files that are added to a data set, or removed, while it is
 * served.
 */
#include "run/growth.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/worker_fixture.h"

#define WITHIN 3000 /* looks of 10 ms: half a minute */

static _Atomic unsigned scans, warnings;

static void count_lines(void *arg, int level, const char *line)
{
	(void)arg;
	if (strstr(line, "scanning"))
		atomic_fetch_add(&scans, 1);
	if (level == TSOCK_LOG_WARN)
		atomic_fetch_add(&warnings, 1);
}

static int make_stream(void **state)
{
	atomic_store(&scans, 0);
	atomic_store(&warnings, 0);
	if (worker_make_root(state))
		return -1;
	worker_put_five();
	worker_options.name = "growth";
	worker_options.threads = 2;
	worker_options.image_memory = 1 << 20;
	worker_options.ring = 64;
	worker_options.max_batch = 8;
	worker_options.grows = true;
	return setenv("TSOCK_DIR", worker_root, 1);
}

static struct tsi_service *open_service(void)
{
	struct tsi_service *s;

	if (tsi_service_open(&worker_options, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

static struct tsi_growth *watch(const struct tsi_service *s)
{
	struct tsi_growth *g;

	assert_int_equal(tsi_growth_open(&worker_options, s, 1, &g), 0);
	return g;
}

static void drop(const char *name)
{
	char path[1400];

	snprintf(path, sizeof(path), "%s/%s", worker_root, name);
	assert_int_equal(unlink(path), 0);
}

static void pause_a_bit(void)
{
	struct timespec ts = { 0, 10000000 };

	nanosleep(&ts, NULL);
}

/* Until that many samples are found. */
static void await_found(struct tsi_growth *g, uint64_t want, uint32_t classes)
{
	uint64_t samples = 0;
	uint32_t n = 0;

	for (unsigned i = 0; i < WITHIN; i++) {
		if (tsi_growth_found(g, &samples, &n) && samples == want)
			break;
		pause_a_bit();
	}
	assert_int_equal(samples, want);
	assert_int_equal(n, classes);
}

static void await(const _Atomic unsigned *counter, unsigned least)
{
	for (unsigned i = 0; i < WITHIN && atomic_load(counter) < least; i++)
		pause_a_bit();
	assert_true(atomic_load(counter) >= least);
}

static uint64_t count_of(const struct tsi_service *s)
{
	return tsi_index_count(tsi_sampler_index(tsi_service_sampler(s)));
}

static void a_file_that_is_added_is_found(void **state)
{
	struct tsi_service *s = open_service(), *next;
	struct tsi_growth *g = watch(s);
	uint64_t samples;
	uint32_t classes;

	(void)state;
	assert_false(tsi_growth_found(g, &samples, &classes));
	worker_put_image("b/2.png");
	await_found(g, 6, 3);
	/* And what is added later. */
	drop("a/0.png");
	drop("b/0.png");
	drop("b/1.png");
	await_found(g, 3, 3);
	next = tsi_growth_close(g);
	assert_int_equal(count_of(next), 3);
	assert_int_equal(count_of(s), 5);
	assert_false(tsi_service_equal(s, next));
	tsi_service_close(next);
	tsi_service_close(s);
	assert_null(tsi_growth_close(NULL));
}

static void what_is_no_sample_is_no_change(void **state)
{
	struct tsi_service *s = open_service(), *next;
	struct tsi_growth *g = watch(s);
	uint64_t samples;
	uint32_t classes;

	(void)state;
	await(&scans, 1);
	worker_put("a/notes.txt", "no image", 8);
	await(&scans, 2);
	next = tsi_growth_close(g);
	assert_non_null(next);
	assert_true(tsi_service_equal(s, next));
	tsi_service_close(next);
	/* Nor is what was undone. */
	g = watch(s);
	worker_put_image("c/1.png");
	await_found(g, 6, 3);
	drop("c/1.png");
	for (unsigned i = 0;
	     i < WITHIN && tsi_growth_found(g, &samples, &classes); i++)
		pause_a_bit();
	assert_false(tsi_growth_found(g, &samples, &classes));
	tsi_service_close(tsi_growth_close(g));
	tsi_service_close(s);
}

/* Below the tree: worker_put_image() goes by the tree's own path. */
static void put_five_in(const char *folder)
{
	static const char *const files[] = { "a/0.png", "a/1.png", "b/0.png",
					     "b/1.png", "c/0.png" };
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", worker_root, folder);
	assert_int_equal(mkdir(path, 0700), 0);
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(path, sizeof(path), "%s/%s/%c", worker_root, folder,
			 c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		worker_put_image(path);
	}
}

static void move(const char *from, const char *to)
{
	char a[128], b[128];

	snprintf(a, sizeof(a), "%s/%s", worker_root, from);
	snprintf(b, sizeof(b), "%s/%s", worker_root, to);
	assert_int_equal(rename(a, b), 0);
}

static void link_to(const char *target, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", worker_root, name);
	assert_int_equal(symlink(target, path), 0);
}

/* Is the data set that was found the one at path now? */
static void await_replaced(const struct tsi_service *s, uint64_t samples)
{
	struct tsi_growth *g = watch(s);
	struct tsi_service *next;

	await_found(g, samples, 3);
	next = tsi_growth_close(g);
	assert_false(tsi_service_equal(s, next));
	tsi_service_close(next);
}

static void the_data_set_s_folder_may_be_replaced(void **state)
{
	char path[128];
	struct tsi_service *s, *again;
	struct tsi_growth *g;
	uint64_t samples;
	uint32_t classes;

	(void)state;
	snprintf(path, sizeof(path), "%s/data", worker_root);
	worker_options.folder = path;
	put_five_in("data");
	s = open_service();
	again = open_service();
	assert_true(tsi_service_equal(s, again));
	tsi_service_close(again);
	/* By one whose files are called the same: the old ones may be removed
	 * any time. */
	put_five_in("new");
	move("data", "old");
	move("new", "data");
	await_replaced(s, 5);
	worker_put_image("data/b/7.png");
	await_replaced(s, 6);
	/* Nothing is there for the moment; and the old one again. */
	move("data", "new");
	g = watch(s);
	await(&warnings, 1);
	assert_false(tsi_growth_found(g, &samples, &classes));
	move("old", "data");
	tsi_service_close(tsi_growth_close(g));
	g = watch(s);
	worker_put_image("data/c/7.png");
	await_found(g, 6, 3);
	drop("data/c/7.png");
	for (unsigned i = 0;
	     i < WITHIN && tsi_growth_found(g, &samples, &classes); i++)
		pause_a_bit();
	assert_false(tsi_growth_found(g, &samples, &classes));
	tsi_service_close(tsi_growth_close(g));
	tsi_service_close(s);
}

static void a_link_to_the_folder_may_name_another_one(void **state)
{
	char path[128];
	struct tsi_service *s;

	(void)state;
	snprintf(path, sizeof(path), "%s/data", worker_root);
	worker_options.folder = path;
	put_five_in("first");
	put_five_in("second");
	worker_put_image("second/c/7.png");
	link_to("first", "data");
	s = open_service();
	link_to("second", "other");
	move("other", "data");
	await_replaced(s, 6);
	tsi_service_close(s);
}

static void a_folder_that_is_empty_for_the_moment_is_said_once(void **state)
{
	static const char *const files[] = { "a/0.png", "a/1.png", "b/0.png",
					     "b/1.png", "c/0.png" };
	struct tsi_service *s = open_service();
	struct tsi_growth *g = watch(s);
	unsigned n;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		drop(files[i]);
	await(&warnings, 1);
	n = atomic_load(&scans);
	worker_put("a/notes.txt", "no image", 8);
	await(&scans, n + 1);
	worker_put_image("a/7.png");
	worker_put_image("b/7.png");
	worker_put_image("c/7.png");
	await_found(g, 3, 3);
	assert_int_equal(atomic_load(&warnings), 1);
	tsi_service_close(tsi_growth_close(g));
	tsi_service_close(s);
}

static void the_next_stream_goes_on_under_the_name(void **state)
{
	struct tsi_service *s = open_service(), *next;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsi_growth *g;
	tsock_batch *b;
	tsock *t;

	(void)state;
	assert_int_equal(tsi_service_start(s), 0);
	o.batch_size = 6;
	assert_int_equal(tsock_open("growth", &o, &t), 0);
	assert_non_null(strstr(tsock_identity(t), "\ngrows=1\n"));
	tsock_close(t);
	g = watch(s);
	worker_put_image("b/2.png");
	await_found(g, 6, 3);
	next = tsi_growth_close(g);
	tsi_service_close(s);
	tsi_service_go_on(next, 4, 0);
	assert_int_equal(tsi_service_start(next), 0);
	assert_int_equal(tsock_open("growth", &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_epoch(t), 4);
	assert_int_equal(tsock_next(t, 20000, &b), 0);
	assert_int_equal(tsock_batch_count(b), 6);
	assert_int_equal(tsock_batch_seq(b), 24);
	tsock_batch_release(b);
	tsock_close(t);
	tsi_service_close(next);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, make_stream, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(a_file_that_is_added_is_found),
		in_a_tree(what_is_no_sample_is_no_change),
		in_a_tree(the_data_set_s_folder_may_be_replaced),
		in_a_tree(a_link_to_the_folder_may_name_another_one),
		in_a_tree(a_folder_that_is_empty_for_the_moment_is_said_once),
		in_a_tree(the_next_stream_goes_on_under_the_name),
	};

	tsock_set_logger(count_lines, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
