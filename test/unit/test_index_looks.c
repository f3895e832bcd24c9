/* SPDX-License-Identifier: MIT */
/*
 * test_index_looks.c - which files of a large data set are looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/lib/index_tree.h"

#define MANY 3000

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
	/* The same ones when the scan was kept, and when it is made again. */
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
		const char *name = tsi_index_path(x, i);

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(of_many_files_some_are_looked_at),
		TEST(a_data_set_whose_sizes_differ_is_another),
		TEST(what_may_be_no_file_is_always_looked_at),
		TEST(a_search_for_a_good_file_looks_at_all),
	};

	return cmocka_run_group_tests_name("index looks", tests, NULL, NULL) !=
	       0;
}
