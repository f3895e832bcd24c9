/* SPDX-License-Identifier: MIT */
/*
 * test_badlist.c - which files count as bad, when that is too much, and who is
 * told.
 */
#include "run/badlist.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/index_tree.h"

static struct tsi_index *x;

/* Files 0 to 9, 10 to 19 and 20 to 29. */
static void open_three(const char *a, const char *b, const char *c)
{
	const char *text[] = { a, b, c };
	char path[32];

	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "%c/%d.jpg", "abc"[i / 10],
			 i % 10);
		tree_put(path, text[i / 10]);
	}
	x = tree_open(tree_options());
}

static struct tsi_badlist *open_list(void)
{
	struct tsi_badlist *l;

	assert_int_equal(tsi_badlist_create(x, &l), 0);
	return l;
}

static void close_list(struct tsi_badlist *l)
{
	tsi_badlist_destroy(l);
	tsi_index_close(x);
}

static int check(struct tsi_badlist *l, double share, bool given)
{
	struct tsi_tolerance t = { share, given };

	return tsi_badlist_check(l, &t);
}

struct heard {
	uint64_t count;
	unsigned n;
	char text[4][1024];
};

static void count(void *arg, uint64_t bad)
{
	struct heard *h = arg;

	h->count = bad;
}

static void hear(void *arg, const char *text)
{
	struct heard *h = arg;

	assert_true(h->n < 4);
	snprintf(h->text[h->n++], sizeof(h->text[0]), "%s", text);
}

static void watch(struct tsi_badlist *l, struct heard *h, double share,
		  bool given)
{
	struct tsi_tolerance t = { share, given };
	struct tsi_badlist_listener to = { count, hear, h };

	tsi_badlist_watch(l, &t, &to);
}

static void says(const struct heard *h, unsigned i, const char *text)
{
	assert_true(i < h->n);
	if (!strstr(h->text[i], text))
		fail_msg("'%s' lacks '%s'", h->text[i], text);
}

static void nothing_bad_may_always_start(void **state)
{
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "ok", "ok");
	l = open_list();
	assert_int_equal(check(l, 0, false), 0);
	assert_int_equal(check(l, 0, true), 0);
	close_list(l);
}

static void a_lost_class_is_refused_unless_its_share_is_given(void **state)
{
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "bad", "ok");
	l = open_list();
	assert_int_equal(tsi_badlist_count(l), 10);
	assert_int_equal(check(l, 0.5, false), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "10 of 30 files (33.3 %)"));
	assert_non_null(strstr(tsock_errmsg(), "class b has no other"));
	assert_non_null(strstr(tsock_errmsg(), "b/0.jpg: isn't ok"));
	assert_int_equal(check(l, 0.33, true), TSOCK_EDATA);
	assert_int_equal(check(l, 0.34, true), 0);
	assert_int_equal(check(l, 1, true), 0);
	close_list(l);
}

static void a_share_is_refused_although_no_class_is_lost(void **state)
{
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "ok", "ok");
	tsi_index_close(x);
	tree_put("a/3.jpg", "bad");
	x = tree_open(tree_options());
	l = open_list();
	assert_int_equal(check(l, 0.01, false), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "1 of 30 files (3.33 %)"));
	assert_null(strstr(tsock_errmsg(), "has no other"));
	assert_int_equal(check(l, 0.04, false), 0);
	close_list(l);
}

/* Classes are told of when the last file is found, shares when exceeded. */
static void what_is_found_later_is_told_once(void **state)
{
	struct heard h = { .n = 0 };
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "ok", "ok");
	l = open_list();
	watch(l, &h, 0.1, false);
	assert_int_equal(h.n, 0);
	for (uint64_t i = 10; i < 13; i++)
		tsi_badlist_report(l, i, "rotten", false);
	assert_int_equal(h.n, 0);
	/* The fourth of 30 is more than a tenth. */
	tsi_badlist_report(l, 13, "rotten", false);
	assert_int_equal(h.n, 1);
	says(&h, 0, "so far 4 of 30 files (13.3 %) can't be read");
	for (uint64_t i = 10; i < 20; i++)
		tsi_badlist_report(l, i, "rotten", i == 19);
	assert_int_equal(h.n, 2);
	says(&h, 1, "class b: none of its 10 files can be read");
	says(&h, 1, "b/0.jpg: rotten");
	tsi_badlist_report(l, 19, "rotten", true);
	tsi_badlist_report(l, 20, "rotten", false);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.count, 11);
	assert_int_equal(tsi_badlist_count(l), 11);
	/* Four times as many are told of again. */
	for (uint64_t i = 20; i < 25; i++)
		tsi_badlist_report(l, i, "rotten", false);
	assert_int_equal(h.n, 2);
	tsi_badlist_report(l, 25, "rotten", false);
	assert_int_equal(h.n, 3);
	says(&h, 2, "so far 16 of 30 files");
	close_list(l);
}

static void what_may_pass_is_not_told(void **state)
{
	struct heard h = { .n = 0 };
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "ok", "ok");
	l = open_list();
	watch(l, &h, 0.5, true);
	for (uint64_t i = 10; i < 20; i++)
		tsi_badlist_report(l, i, "rotten", i == 19);
	assert_int_equal(h.n, 0);
	assert_int_equal(h.count, 10);
	for (uint64_t i = 20; i < 30; i++)
		tsi_badlist_report(l, i, "rotten", i == 29);
	assert_int_equal(h.n, 1);
	says(&h, 0, "16 of 30 files");
	close_list(l);
}

/* A data set that has grown goes on being served. */
static void what_would_be_refused_is_told_at_once(void **state)
{
	struct heard h = { .n = 0 };
	struct tsi_badlist *l;

	(void)state;
	open_three("ok", "ok", "bad");
	l = open_list();
	watch(l, &h, 0.01, false);
	assert_int_equal(h.n, 2);
	says(&h, 0, "class c: none of its 10 files");
	says(&h, 1, "10 of 30 files");
	close_list(l);
}

static bool is_jpg(const char *name)
{
	return strstr(name, ".jpg");
}

/* More than are looked at, of which those of class b have a wrong name. */
static void open_presumed(void)
{
	struct tsi_index_opts o = tree_options();
	char path[32];

	o.foreign = is_jpg;
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "%s/%04d.%s", i % 3 ? "a" : "b", i,
			 i % 3 ? "png" : "jpg");
		tree_put(path, i % 3 ? "ok" : "bad");
	}
	x = tree_open(o);
}

static uint64_t a_presumed_file(void)
{
	for (uint64_t i = 0; i < tsi_index_count(x); i++)
		if (tsi_index_presumed(x, i))
			return i;
	fail_msg("nothing is presumed");
	return 0;
}

static void presumed_files_count_until_one_is_good(void **state)
{
	struct heard h = { .n = 0 };
	struct tsi_badlist *l;
	uint64_t i;

	(void)state;
	open_presumed();
	l = open_list();
	i = a_presumed_file();
	assert_int_equal(tsi_badlist_count(l), 1000);
	assert_true(tsi_index_bad_count(x) < 600);
	assert_int_equal(check(l, 0.5, false), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "1000 of 3000 files (33.3 %)"));
	assert_non_null(strstr(tsock_errmsg(), "were looked at)"));
	watch(l, &h, 0.5, true);
	/* As was presumed. */
	tsi_badlist_report(l, i, "bad", false);
	assert_int_equal(tsi_badlist_count(l), 1000);
	tsi_badlist_vouch(l, i);
	assert_int_equal(tsi_badlist_count(l), 1000);
	/* And as wasn't. */
	for (i++; !tsi_index_presumed(x, i); i++)
		;
	tsi_badlist_vouch(l, i);
	tsi_badlist_vouch(l, i);
	assert_int_equal(tsi_badlist_count(l), 999);
	assert_int_equal(h.count, 999);
	tsi_badlist_report(l, i, "bad now", false);
	assert_int_equal(tsi_badlist_count(l), 1000);
	assert_int_equal(h.n, 0);
	close_list(l);
}

/* A twentieth of 6,000 files is bad, and a sixth of all was looked at. */
static void a_sample_tells_of_a_large_set(void **state)
{
	struct tsi_badlist *l;
	char path[32];

	(void)state;
	for (int i = 0; i < 6000; i++) {
		snprintf(path, sizeof(path), "a/%04d.jpg", i);
		tree_put(path, i % 20 ? "ok" : "bad");
	}
	x = tree_open(tree_options());
	l = open_list();
	/* They are fewer than a hundredth of all files. */
	assert_true(tsi_badlist_count(l) < 60);
	assert_int_equal(check(l, 0.01, false), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "of 1024 files"));
	assert_non_null(strstr(tsock_errmsg(), "that were looked at in"));
	assert_int_equal(check(l, 0.06, true), 0);
	close_list(l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_bad_may_always_start),
		TEST(a_lost_class_is_refused_unless_its_share_is_given),
		TEST(a_share_is_refused_although_no_class_is_lost),
		TEST(what_is_found_later_is_told_once),
		TEST(what_may_pass_is_not_told),
		TEST(what_would_be_refused_is_told_at_once),
		TEST(presumed_files_count_until_one_is_good),
		TEST(a_sample_tells_of_a_large_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
