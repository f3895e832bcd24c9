/* SPDX-License-Identifier: MIT */
/*
 * test_worker.c - from a sequence number to a sample, past files that are bad.
 *
 * The trees are made here: a one-coloured PNG of 40 x 30 pixels, noise of 64 x
 * 64 that is cut off anywhere, and files that are no images.
 */
#include "run/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/lib/image_gen.h"
#include "test/lib/worker_fixture.h"
#include "test/lib/recipes.h"
#include "test/lib/sanitized.h"
#include "tsock/tsock.h"

/* The head of an image that passes the scan, and nothing after it. */
static void put_truncated(const char *name)
{
	worker_put(name, worker_png, 45);
}

static void take_away(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", worker_root, name);
	assert_int_equal(unlink(path), 0);
}

static void samples_come_with_their_labels(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	worker_put_five();
	s = worker_open_sampler();
	assert_int_equal(tsi_sampler_epoch_len(s), 5);
	assert_int_equal(worker_make(s, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 0);
	for (int i = 0; i < 10; i++) {
		static const int64_t label[] = { 0, 0, 1, 1, 2 };

		assert_int_equal(got[i].index, i % 5);
		assert_int_equal(got[i].label, label[i % 5]);
		assert_int_equal(got[i].image[0], 128);
	}
	/* Another epoch is another crop. */
	assert_memory_not_equal(&got[0].box, &got[5].box, sizeof(got[0].box));
	tsi_sampler_close(s);
}

static void a_bad_file_is_replaced_by_a_good_one_of_its_class(void **state)
{
	struct sample whole[64], got[64];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	worker_put_five();
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, whole, 10, &n), 0);
	tsi_sampler_close(s);

	/* One known from the scan, one found later, and the last of all. */
	worker_put("a/1.png", "no image", 8);
	put_truncated("b/0.png");
	put_truncated("c/0.png");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 6);
	for (int i = 0; i < 10; i++) {
		static const int64_t index[] = { 0, 0, 3, 3 };

		/* Nothing of class c is good. */
		if (i % 5 < 4)
			assert_int_equal(got[i].index, index[i % 5]);
		else
			assert_true(got[i].index == 0 || got[i].index == 3);
		assert_int_equal(got[i].label, got[i].index == 3);
		/* Same size of image, so the sample's own crop. */
		assert_memory_equal(got[i].box, whole[i].box,
				    sizeof(got[i].box));
	}
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 3);
	tsi_sampler_close(s);
}

static void the_depth_changes_nothing(void **state)
{
	struct sample one[64], many[64];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	memset(one, 0, sizeof(one));
	memset(many, 0, sizeof(many));
	worker_put_five();
	put_truncated("b/1.png");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, 1, one, 20, &n), 0);
	assert_int_equal(worker_make(s, 8, many, 20, &n), 0);
	for (int i = 0; i < 20; i++)
		assert_memory_equal(&one[i], &many[i], sizeof(one[i]));
	tsi_sampler_close(s);
}

static void a_file_that_comes_back_is_good_again(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	worker_put_five();
	s = worker_open_sampler();
	take_away("a/0.png");
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(got[0].index, 1);
	worker_put_image("a/0.png");
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(got[0].index, 0);
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 1);
	tsi_sampler_close(s);
}

static void raise_names_the_file(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	worker_options.on_error = TSI_RAISE;
	worker_put_five();
	put_truncated("b/1.png");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), worker_root));
	assert_non_null(strstr(tsock_errmsg(), "b/1.png"));
	tsi_sampler_close(s);

	worker_put("b/1.png", "text", 4);
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b/1.png"));
	tsi_sampler_close(s);
}

static void nothing_good_is_an_error(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	put_truncated("a/0.png");
	put_truncated("b/0.png");
	put_truncated("c/0.png");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no file"));
	tsi_sampler_close(s);

	worker_put("a/0.png", "x", 1);
	worker_put("b/0.png", "x", 1);
	worker_put("c/0.png", "x", 1);
	assert_int_equal(tsi_sampler_open(&worker_options, &s), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no good image"));
}

static void segments_fit_the_epoch(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	worker_put_five();
	worker_options.segments = 0;
	s = worker_open_sampler();
	assert_int_equal(tsi_sampler_segments(s), 5);
	assert_int_equal(tsi_sampler_bounds(s)[5], 5);
	tsi_sampler_close(s);
	worker_options.order = TSOCK_ORDER_PHILOX;
	s = worker_open_sampler();
	assert_int_equal(tsi_sampler_segments(s), 1);
	tsi_sampler_close(s);
	worker_options.segments = 6;
	assert_int_equal(tsi_sampler_open(&worker_options, &s), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "--segments 6"));
}

/* ------------------------------------------------------------------------
 * Runs of bad files
 */

#define GOOD 50
#define BAD (SANITIZED ? 150 : 600)
#define ALL (GOOD + BAD + GOOD)

/* What counts is old enough for the clock that files are stamped with. */
static void let_files_settle(void)
{
	struct timespec ts = { 0, 200000000 };

	nanosleep(&ts, NULL);
}

/* The first part of an image: its head is good, its last rows are missing. */
static void put_cut(const char *name, uint64_t seed, unsigned percent)
{
	struct image_gen_png g = { .width = 64,
				   .height = 64,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB,
				   .seed = seed };
	struct image_gen_bytes f = image_gen_png(&g);

	worker_put(name, f.data, f.len * percent / 100);
	free(f.data);
}

/* a: good files, b: a run of files that fn puts, c: good files. */
static void put_run(void (*fn)(const char *name, uint64_t i))
{
	char name[32];

	for (unsigned i = 0; i < GOOD; i++) {
		snprintf(name, sizeof(name), "a/%03u.png", i);
		worker_put_image(name);
		snprintf(name, sizeof(name), "c/%03u.png", i);
		worker_put_image(name);
	}
	for (unsigned i = 0; i < BAD; i++) {
		snprintf(name, sizeof(name), "b/%03u.png", i);
		fn(name, i);
	}
}

static void each_in_run(void (*fn)(const char *name))
{
	char name[32];

	for (unsigned i = 0; i < BAD; i++) {
		snprintf(name, sizeof(name), "b/%03u.png", i);
		fn(name);
	}
}

/* Files that an epoch reads. */
static uint64_t reads_of_epoch(struct tsi_sampler *s, struct tsi_worker *w,
			       uint64_t epoch)
{
	static struct sample scratch[64];
	uint64_t end = (epoch + 1) * ALL;
	uint64_t seq = epoch * ALL;
	uint64_t reads = 0;

	assert_int_equal(tsi_sampler_epoch_len(s), ALL);
	while (seq < end || tsi_worker_busy(w)) {
		struct tsi_made made;

		while (seq < end && tsi_worker_busy(w) < 8)
			assert_int_equal(tsi_worker_begin(w, seq++), 0);
		if (tsi_worker_finish(w, worker_into, scratch, &made))
			fail_msg("%s", tsock_errmsg());
		reads += made.reads;
	}
	return reads;
}

static void put_cut_early(const char *name, uint64_t i)
{
	(void)i;
	put_truncated(name);
}

static void put_cut_late(const char *name, uint64_t i)
{
	put_cut(name, i, 30 + (unsigned)(i % 40));
}

static void put_whole(const char *name, uint64_t i)
{
	(void)i;
	worker_put_image(name);
}

/* A bad file is read once or so, and each sample reads one more: not each the
 * whole run. */
static void check_run(struct tsi_sampler *s)
{
	struct tsi_worker *w;
	uint64_t reads;

	assert_int_equal(tsi_worker_create(s, worker_options.io, 8, NULL, &w),
			 0);
	reads = reads_of_epoch(s, w, 0);
	assert_true(reads >= ALL && reads <= 2 * ALL + BAD);
	assert_int_equal(reads_of_epoch(s, w, 1), ALL);
	assert_int_equal(reads_of_epoch(s, w, 2), ALL);
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), BAD);
	tsi_worker_destroy(w);
}

static void a_run_of_truncated_files_is_walked_once(void **state)
{
	static void (*const cut[])(const char *, uint64_t) = { put_cut_early,
							       put_cut_late };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct tsi_sampler *s;

		worker_options.recipe =
			i ? recipes_eval(SIZE, SIZE) : recipes_train(SIZE);
		put_run(cut[i]);
		let_files_settle();
		s = worker_open_sampler();
		check_run(s);
		tsi_sampler_close(s);
	}
}

/* Some crops end above the damage: these samples get their own file. */
static void a_run_of_partly_good_files_is_walked_once(void **state)
{
	struct tsi_sampler *s;
	struct tsi_worker *w;
	uint64_t reads;

	(void)state;
	put_run(put_cut_late);
	let_files_settle();
	s = worker_open_sampler();
	assert_int_equal(tsi_worker_create(s, worker_options.io, 8, NULL, &w),
			 0);
	reads = reads_of_epoch(s, w, 0);
	assert_true(reads <= 2 * ALL + BAD);
	/* A file may first be bad for a later sample. */
	reads = reads_of_epoch(s, w, 1) + reads_of_epoch(s, w, 2) +
		reads_of_epoch(s, w, 3);
	assert_true(reads <= 3 * ALL + BAD);
	assert_true(tsi_badlist_count(tsi_sampler_badlist(s)) <= BAD);
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
}

static void a_run_of_missing_files_is_walked_once(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	put_run(put_whole);
	s = worker_open_sampler();
	each_in_run(take_away);
	check_run(s);
	tsi_sampler_close(s);
}

static void a_mended_file_is_good_again(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	worker_put_five();
	put_truncated("b/0.png");
	put_truncated("b/1.png");
	let_files_settle();
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 2);
	worker_put_image("b/0.png");
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(got[2].index, 2);
	/* Its own sample has seen that: from now on others may have it too. */
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(got[3].index, 2);
	tsi_sampler_close(s);
}

/* Everything was away for a while: the stream needn't end. */
static void files_that_all_come_back_are_good_again(void **state)
{
	struct tsi_sampler *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	worker_put_five();
	s = worker_open_sampler();
	take_away("a/1.png");
	take_away("b/0.png");
	take_away("b/1.png");
	take_away("c/0.png");
	assert_int_equal(worker_make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 4);
	take_away("a/0.png");
	worker_put_image("b/1.png");
	assert_int_equal(worker_make(s, 1, got, 1, &n), 0);
	assert_int_equal(got[0].index, 3);
	tsi_sampler_close(s);
}

/*
 * Each sample is made by a sampler that knows of no bad file, and all of them
 * by one that learns.
 */
static void what_is_known_changes_no_sample(void **state)
{
	struct sample fresh[64], got[64];
	struct tsi_sampler *s;
	char name[32];
	unsigned n;

	(void)state;
	memset(fresh, 0, sizeof(fresh));
	memset(got, 0, sizeof(got));
	for (unsigned i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "%c/%02u.png", "abc"[i * 3 / 16],
			 i);
		put_cut(name, i, i % 5 ? 20 + i * 5 : 100);
	}
	let_files_settle();
	for (uint64_t seq = 0; seq < 48; seq++) {
		struct tsi_made made;
		struct tsi_worker *w;

		s = worker_open_sampler();
		assert_int_equal(tsi_sampler_epoch_len(s), 16);
		assert_int_equal(
			tsi_worker_create(s, worker_options.io, 1, NULL, &w),
			0);
		assert_int_equal(tsi_worker_begin(w, seq), 0);
		assert_int_equal(
			tsi_worker_finish(w, worker_into, fresh, &made), 0);
		tsi_worker_destroy(w);
		tsi_sampler_close(s);
	}
	for (unsigned depth = 1; depth <= 8; depth *= 2) {
		s = worker_open_sampler();
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(worker_make(s, depth, got, 48, &n), 0);
			assert_in_range(n, 1, 47);
			assert_memory_equal(got, fresh, sizeof(got[0]) * 48);
		}
		tsi_sampler_close(s);
	}
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(samples_come_with_their_labels),
		in_a_tree(a_bad_file_is_replaced_by_a_good_one_of_its_class),
		in_a_tree(the_depth_changes_nothing),
		in_a_tree(a_file_that_comes_back_is_good_again),
		in_a_tree(raise_names_the_file),
		in_a_tree(nothing_good_is_an_error),
		in_a_tree(segments_fit_the_epoch),
		in_a_tree(a_run_of_truncated_files_is_walked_once),
		in_a_tree(a_run_of_partly_good_files_is_walked_once),
		in_a_tree(a_run_of_missing_files_is_walked_once),
		in_a_tree(a_mended_file_is_good_again),
		in_a_tree(files_that_all_come_back_are_good_again),
		in_a_tree(what_is_known_changes_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
