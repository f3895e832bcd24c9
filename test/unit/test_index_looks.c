/* SPDX-License-Identifier: MIT */
/*
 * test_index_looks.c - which files of a large data set are looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/lib/index_tree.h"

#define MANY 2100

static void make_many(const char *odd)
{
	char path[64];

	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "c%d/%04d.jpg", i % 3, i);
		tree_put(path, i % 2 ? "ok" : odd);
	}
}

static void of_many_files_some_are_looked_at(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x, *y;
	uint64_t n, sizes = 0, found;

	(void)state;
	o.cache_dir = tree_cache;
	make_many("bad");
	tree_probed = 0;
	x = tree_open(o);
	assert_int_equal(tree_probed, 1024);
	assert_int_equal(tsi_index_count(x), MANY);
	assert_false(tsi_index_looked_at_all(x));
	n = tsi_index_bad_count(x);
	assert_in_range(n, 300, 700);
	for (uint64_t i = 0; i < MANY; i++)
		sizes += tree_size_of(x, i) > 0;
	assert_int_equal(sizes, 1024);
	/* The index looks at these when the scan was kept, and when it is made
	 * again. */
	y = tree_open(o);
	assert_true(tsi_index_cached(y));
	assert_int_equal(tsi_index_bad_count(y), n);
	assert_int_equal(tsi_index_fingerprint(x), tsi_index_fingerprint(y));
	tsi_index_close(y);
	/* All, if that is asked for; also where the scan was kept. */
	o.look_at_all = true;
	y = tree_open(o);
	assert_true(tsi_index_cached(y) && tsi_index_looked_at_all(y));
	found = tsi_index_bad_count(y);
	tsi_index_close(y);
	assert_int_equal(found, MANY / 2);
	/* That is not kept: it would be another data set's fingerprint. */
	o.look_at_all = false;
	y = tree_open(o);
	assert_true(tsi_index_cached(y));
	assert_int_equal(tsi_index_bad_count(y), n);
	assert_int_equal(tsi_index_fingerprint(x), tsi_index_fingerprint(y));
	tsi_index_close(y);
	tsi_index_close(x);
}

static void a_data_set_whose_sizes_differ_is_another(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;
	uint64_t before;

	(void)state;
	make_many("ok, but longer");
	x = tree_open(o);
	before = tsi_index_fingerprint(x);
	tsi_index_close(x);
	make_many("ok, and of another length");
	x = tree_open(o);
	assert_int_not_equal(tsi_index_fingerprint(x), before);
	tsi_index_close(x);
}

static void what_may_be_no_file_is_always_looked_at(void **state)
{
	struct tsi_index *x;
	char path[128];
	uint64_t bad = 0;

	(void)state;
	make_many("ok");
	for (int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%s/tree/c1/%d.png", tree_top, i);
		assert_int_equal(mkfifo(path, 0600), 0);
		snprintf(path, sizeof(path), "c2/%d.png", i);
		tree_link(i % 2 ? "nowhere" : "/dev/null", path);
		snprintf(path, sizeof(path), "c0/%d.png", i);
		tree_link("0000.jpg", path);
	}
	tree_probed = 0;
	x = tree_open(tree_options());
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		const char *name = tree_path(x, i);

		if (strcmp(strrchr(name, '.'), ".png") || name[1] == '0')
			continue;
		assert_true(tsi_index_bad(x, i));
		assert_non_null(strstr(tsi_index_bad_reason(x, i),
				       name[1] == '1' ? "but a FIFO"
				       : strtol(name + 3, NULL, 10) % 2
					       ? "No such file"
					       : "but a device"));
		bad++;
	}
	assert_int_equal(bad, 40);
	assert_int_equal(tsi_index_bad_count(x), 40);
	assert_in_range(tree_probed, 900, 1024);
	tsi_index_close(x);
}

/* Only if all that are looked at are bad. */
static void a_search_for_a_good_file_looks_at_all(void **state)
{
	struct tsi_index *x;
	char path[64];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "c/%04d.jpg", i);
		tree_put(path, "bad");
	}
	/* Row 1: those looked at are 0, 2 and so on. */
	tree_put("c/0001.jpg", "ok");
	x = tree_open(tree_options());
	assert_true(tsi_index_looked_at_all(x));
	assert_int_equal(tsi_index_bad_count(x), MANY - 1);
	assert_false(tsi_index_bad(x, 1));
	tsi_index_close(x);
}

/* ---- classes of which nothing is good, as far as was looked ---- */

static bool is_webp(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".webp");
}

/* n files CLASS/NNNN.EXT with this text. */
static void put_class(const char *class_, const char *ext, int n,
		      const char *text)
{
	char path[64];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%04d.%s", class_, i, ext);
		tree_put(path, text);
	}
}

static uint64_t presumed_of(const struct tsi_index *x, int64_t label)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < tsi_index_count(x); i++)
		n += tsi_index_label(x, i) == label && tsi_index_presumed(x, i);
	return n;
}

static uint64_t bad_of(const struct tsi_index *x, int64_t label)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < tsi_index_count(x); i++)
		n += tsi_index_label(x, i) == label && tsi_index_bad(x, i);
	return n;
}

/* A scan that was kept says so too. */
static void is_kept(struct tsi_index_opts o, struct tsi_index *x)
{
	struct tsi_index *y = tree_open(o);

	assert_true(tsi_index_cached(y));
	assert_int_equal(tsi_index_fingerprint(x), tsi_index_fingerprint(y));
	assert_int_equal(tsi_index_bad_count(x), tsi_index_bad_count(y));
	for (uint64_t i = 0; i < tsi_index_count(x); i++)
		assert_int_equal(tsi_index_presumed(x, i),
				 tsi_index_presumed(y, i));
	tsi_index_close(y);
}

/* 40 of 3,040 files: one look in three would miss some of them. */
static void files_of_foreign_names_are_presumed_by_three(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	o.cache_dir = tree_cache;
	o.foreign = is_webp;
	put_class("a", "jpg", 3000, "ok");
	put_class("a", "webp", 40, "bad");
	tree_probed = 0;
	x = tree_open(o);
	assert_in_range(tree_probed, 1024, 1024 + 3);
	assert_true(tsi_index_presumes(x));
	assert_int_equal(presumed_of(x, 0) + bad_of(x, 0), 40);
	assert_true(presumed_of(x, 0) > 20);
	is_kept(o, x);
	tsi_index_close(x);
}

/* Their names are wrong: one of the three is good. */
static void files_of_foreign_names_may_be_good(void **state)
{
	static const int good[] = { 0, 20, 39 };
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;
	char path[64];

	(void)state;
	o.foreign = is_webp;
	put_class("a", "jpg", 2000, "ok");
	for (int i = 0; i < 3; i++) {
		put_class("a", "webp", 40, "bad");
		snprintf(path, sizeof(path), "a/%04d.webp", good[i]);
		tree_put(path, "ok");
		x = tree_open(o);
		assert_false(tsi_index_presumes(x));
		assert_int_equal(presumed_of(x, 0), 0);
		tsi_index_close(x);
	}
}

/* Class b of 300 files has 32 of the 1,024 looks, and 64 more. */
static void a_class_of_bad_files_is_presumed_by_64_more(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	o.cache_dir = tree_cache;
	put_class("a", "jpg", 5000, "ok");
	put_class("b", "jpg", 300, "bad");
	put_class("c", "jpg", 4000, "ok");
	tree_probed = 0;
	x = tree_open(o);
	assert_in_range(tree_probed, 1024 + 50, 1024 + 64);
	assert_in_range(bad_of(x, 1), 64, 100);
	assert_int_equal(bad_of(x, 1) + presumed_of(x, 1), 300);
	assert_int_equal(presumed_of(x, 0) + presumed_of(x, 2), 0);
	is_kept(o, x);
	tsi_index_close(x);
}

/* All 64 files are known then, and nothing is presumed. */
static void a_small_class_is_looked_at_whole(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	o.cache_dir = tree_cache;
	put_class("a", "jpg", 2000, "ok");
	put_class("b", "jpg", 64, "bad");
	x = tree_open(o);
	assert_int_equal(bad_of(x, 1), 64);
	assert_false(tsi_index_presumes(x));
	is_kept(o, x);
	tsi_index_close(x);
}

static void a_class_with_a_good_file_is_not_presumed(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;
	char path[64];

	(void)state;
	o.cache_dir = tree_cache;
	put_class("a", "jpg", 2000, "ok");
	put_class("b", "jpg", 300, "bad");
	/* In every fourth place, so that some look finds one. */
	for (int i = 0; i < 300; i += 4) {
		snprintf(path, sizeof(path), "b/%04d.jpg", i);
		tree_put(path, "ok");
	}
	x = tree_open(o);
	assert_true(bad_of(x, 1) > 0);
	assert_false(tsi_index_presumes(x));
	is_kept(o, x);
	tsi_index_close(x);
}

/* All of a data set is foreign: that is known without a look at all. */
static void a_set_of_foreign_names_is_not_looked_through(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	o.foreign = is_webp;
	put_class("a", "webp", 2000, "bad");
	tree_probed = 0;
	x = tree_open(o);
	assert_in_range(tree_probed, 1024, 1024 + 3);
	assert_int_equal(bad_of(x, 0) + presumed_of(x, 0), 2000);
	tsi_index_close(x);
	/* Asked for, each is looked at, and nothing presumed. */
	o.look_at_all = true;
	x = tree_open(o);
	assert_int_equal(bad_of(x, 0), 2000);
	assert_false(tsi_index_presumes(x));
	tsi_index_close(x);
}

static void the_looks_of_a_sample_are_counted(void **state)
{
	struct tsi_index *x;
	uint64_t n;

	(void)state;
	make_many("bad");
	x = tree_open(tree_options());
	assert_int_equal(tsi_index_looked(x, &n), tsi_index_bad_count(x));
	assert_int_equal(n, 1024);
	tsi_index_close(x);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(of_many_files_some_are_looked_at),
		TEST(a_data_set_whose_sizes_differ_is_another),
		TEST(what_may_be_no_file_is_always_looked_at),
		TEST(a_search_for_a_good_file_looks_at_all),
		TEST(files_of_foreign_names_are_presumed_by_three),
		TEST(files_of_foreign_names_may_be_good),
		TEST(a_class_of_bad_files_is_presumed_by_64_more),
		TEST(a_small_class_is_looked_at_whole),
		TEST(a_class_with_a_good_file_is_not_presumed),
		TEST(a_set_of_foreign_names_is_not_looked_through),
		TEST(the_looks_of_a_sample_are_counted),
	};

	return cmocka_run_group_tests_name("index looks", tests, NULL, NULL) !=
	       0;
}
