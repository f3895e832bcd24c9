/* SPDX-License-Identifier: MIT */
/*
 * test_select.c - a file that names the samples to serve, and their weights.
 */
#include "data/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/identity.h"
#include "test/lib/image_gen.h"
#include "test/lib/shard_fixture.h"

static char list_path[96];

/* The list is beside the data set, not in it. */
static void put_list(const char *text, size_t len)
{
	FILE *f;

	snprintf(list_path, sizeof(list_path), "%s.txt", worker_root);
	f = fopen(list_path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
	worker_options.select = list_path;
}

static void list(const char *text)
{
	put_list(text, strlen(text));
}

static int remove_list(void **state)
{
	char command[96];

	unlink(list_path);
	snprintf(command, sizeof(command), "rm -rf '%s.cache'", worker_root);
	return system(command) || worker_remove_root(state);
}

static struct tsi_index *open_selected(void)
{
	struct tsi_index_opts o = { .format = worker_options.format,
				    .root = worker_options.folder,
				    .select = worker_options.select,
				    .cache_dir = worker_options.cache,
				    .threads = 2 };
	struct tsi_index *x = NULL;

	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static void refuse(const char *text, const char *what)
{
	struct tsi_index_opts o = { .format = worker_options.format,
				    .root = worker_options.folder,
				    .select = list_path,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x = NULL;

	if (text)
		list(text);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_null(x);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
	assert_non_null(strstr(tsock_errmsg(), list_path));
}

static const char *path_of(const struct tsi_index *x, uint64_t i)
{
	static char text[TSI_PATH];

	return tsi_index_path(x, i, text);
}

static void expect_sample(const struct tsi_index *x, uint64_t i,
			  const char *path, int64_t label, float weight)
{
	assert_string_equal(path_of(x, i), path);
	assert_int_equal(tsi_index_label(x, i), label);
	assert_true(tsi_index_weight(x, i) == weight);
}

/* The file's order; the labels and classes of the whole data set. */
static void lines_are_the_samples(void **state)
{
	struct tsi_index *x;

	(void)state;
	worker_put_five();
	list("\xef\xbb\xbf"
	     "c/0.png\t0.25\r\n\n./a/1.png\nb/0.png 3 \n"
	     "   \nb/1.png\t0\t ");
	x = open_selected();
	assert_int_equal(tsi_index_count(x), 4);
	assert_int_equal(tsi_index_all(x), 5);
	assert_int_equal(tsi_index_classes(x), 3);
	assert_string_equal(tsi_index_class(x, 0), "a");
	expect_sample(x, 0, "c/0.png", 2, 0.25f);
	expect_sample(x, 1, "a/1.png", 0, 1);
	expect_sample(x, 2, "b/0.png", 1, 3);
	expect_sample(x, 3, "b/1.png", 1, 0);
	tsi_index_close(x);
}

/* A name with blanks, though a part of it would do as a weight. */
static void a_name_may_have_blanks(void **state)
{
	struct tsi_index *x;

	(void)state;
	worker_put_image("a/cat 2.png");
	worker_put_image("a/cat 2.png 5.png");
	worker_put_image("b/0.png");
	worker_put_image("c/0.png");
	list("a/cat 2.png 5.png\na/cat 2.png 5\n");
	x = open_selected();
	assert_int_equal(tsi_index_count(x), 2);
	expect_sample(x, 0, "a/cat 2.png 5.png", 0, 1);
	expect_sample(x, 1, "a/cat 2.png", 0, 5);
	tsi_index_close(x);
}

static void mistakes_are_named_with_their_line(void **state)
{
	(void)state;
	worker_put_five();
	refuse("a/0.png\n\na/7.png\n", "line 3: the data set has no sample "
				       "'a/7.png'; a name is written as "
				       "'a/0.png'");
	refuse("a/0.png\nb/0.png\na/0.png\t2\n",
	       "line 3: line 1 has the sample 'a/0.png' already");
	refuse("", "names no sample");
	refuse("\n \r\n\t\n", "names no sample");
	refuse("a/0.png\t-1\n", "line 1: '-1' is no weight");
	refuse("a/0.png\tnan\n", "line 1: 'nan' is no weight");
	refuse("a/0.png\t1e99\n", "line 1: '1e99' is no weight");
	refuse("a/0.png\n\na/1.png\theavy\n", "line 3: 'heavy' is no weight");
	refuse("a/0.png heavy\n", "line 1: 'heavy' is no weight");
	refuse("a/0.png\t1 2\n", "line 1: '1 2' is no weight");
	refuse(" 3\n", "line 1: the data set has no sample ' 3'");
	put_list("a/0.png\na/\0.png\n", 16);
	refuse(NULL, "line 2: it has a zero byte");
	unlink(list_path);
	refuse(NULL, "No such file");
	mkfifo(list_path, 0600);
	refuse(NULL, "FIFO");
}

/* What the scan found bad is bad under its new number, and nothing else is. */
static void bad_files_keep_their_reasons(void **state)
{
	struct tsi_sampler *s;
	const struct tsi_index *x;

	(void)state;
	worker_put_five();
	worker_put("b/0.png", "no image", 8);
	worker_put("a/0.png", "none either", 11);
	list("c/0.png\nb/0.png\na/1.png\n");
	s = worker_open_sampler();
	x = tsi_sampler_index(s);
	assert_int_equal(tsi_sampler_epoch_len(s), 3);
	assert_int_equal(tsi_index_bad_count(x), 1);
	assert_int_equal(tsi_index_bad_at(x, 0), 1);
	assert_non_null(tsi_index_bad_reason(x, 1));
	assert_false(tsi_index_bad(x, 0));
	assert_false(tsi_index_bad(x, 2));
	tsi_sampler_close(s);
}

/* The scan is kept of the whole data set. */
static void a_kept_scan_serves_any_selection(void **state)
{
	char cache[96];
	struct tsi_index *x;

	(void)state;
	worker_put_five();
	/* Not in the tree, where it would be a class. */
	snprintf(cache, sizeof(cache), "%s.cache", worker_root);
	worker_options.cache = cache;
	list("b/1.png\n");
	tsi_index_close(open_selected());
	list("a/0.png\nc/0.png\n");
	x = open_selected();
	assert_true(tsi_index_cached(x));
	assert_int_equal(tsi_index_all(x), 5);
	assert_int_equal(tsi_index_count(x), 2);
	expect_sample(x, 1, "c/0.png", 2, 1);
	tsi_index_close(x);
	worker_options.select = NULL;
	x = open_selected();
	assert_true(tsi_index_cached(x));
	assert_int_equal(tsi_index_count(x), 5);
	assert_null(tsi_index_select(x));
	tsi_index_close(x);
}

/* A substitute comes with its own label, index and weight. */
static void samples_have_their_weights(void **state)
{
	struct sample made[64];
	unsigned substituted;
	struct tsi_sampler *s;

	(void)state;
	worker_put_five();
	worker_put("b/0.png", "no image", 8);
	list("c/0.png\t0.5\nb/0.png\t9\na/1.png\t4\n");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, made, 3, &substituted), 0);
	assert_int_equal(substituted, 1);
	assert_true(made[0].weight == 0.5f && made[0].label == 2);
	assert_true(made[1].weight == 4 && made[1].index == 2);
	assert_true(made[2].weight == 4 && made[2].label == 0);
	tsi_sampler_close(s);
}

/* A file's path; a substitute comes with its own. */
static void samples_have_their_keys(void **state)
{
	struct sample made[64];
	unsigned substituted;
	struct tsi_sampler *s;

	(void)state;
	worker_put_five();
	worker_put("b/0.png", "no image", 8);
	list("c/0.png\nb/0.png\na/1.png\n");
	worker_options.keys = true;
	memset(made, 'x', sizeof(made));
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, made, 3, &substituted), 0);
	assert_int_equal(substituted, 1);
	assert_string_equal(made[0].key, "c/0.png");
	assert_string_equal(made[1].key, "a/1.png");
	assert_string_equal(made[2].key, "a/1.png");
	for (size_t i = 7; i < sizeof(made[0].key); i++)
		assert_int_equal(made[0].key[i], 0);
	tsi_sampler_close(s);
}

static void expect_key(const struct tsi_index *x, uint64_t i, const char *key)
{
	size_t len;
	char text[TSI_PATH];
	const char *is = tsi_index_key(x, i, text, &len);

	assert_int_equal(len, strlen(key));
	assert_memory_equal(is, key, len);
}

static char *identity_of(const char *text)
{
	struct tsi_sampler *s;
	char *out;

	list(text);
	s = worker_open_sampler();
	assert_int_equal(tsi_identity_text(&worker_options, s, &out), 0);
	tsi_sampler_close(s);
	return out;
}

static void the_identity_has_names_order_and_weights(void **state)
{
	static const char *const other[] = { "a/1.png\na/0.png\n",
					     "a/0.png\na/1.png 2\n",
					     "a/0.png\nb/0.png\n",
					     "a/0.png\n" };
	char *first, *same, want[128];

	(void)state;
	worker_put_five();
	first = identity_of("a/0.png\na/1.png\n");
	snprintf(want, sizeof(want), "\nselect=%s\n", list_path);
	assert_non_null(strstr(first, want));
	assert_non_null(strstr(first, "\nsamples=2\n"));
	assert_non_null(strstr(first, "\nclasses=3\n"));
	same = identity_of("./a/0.png\t1\r\na/1.png");
	assert_string_equal(first, same);
	free(same);
	for (unsigned i = 0; i < sizeof(other) / sizeof(*other); i++) {
		char *text = identity_of(other[i]);

		assert_string_not_equal(first, text);
		free(text);
	}
	free(first);
}

static void put_shard(const char *shard, const char *const *name, unsigned n)
{
	struct tar_gen t = { 0 };

	for (unsigned i = 0; i < n; i++) {
		char text[32];

		shard_add(&t, name[i]);
		snprintf(text, sizeof(text), "%.*s.cls",
			 (int)(strlen(name[i]) - 4), name[i]);
		tar_gen_text(&t, text, i ? "1" : "0");
	}
	tar_gen_end(&t);
	shard_write_tar(&t, shard);
}

static void samples_of_tar_files_are_named_by_key_or_shard(void **state)
{
	static const char *const one[] = { "x/0.png", "x/1.png" };
	static const char *const two[] = { "x/2.png", "x/1.png" };
	struct tsi_index *x;

	(void)state;
	worker_options.format = &tsi_format_webdataset;
	put_shard("s0.tar", one, 2);
	put_shard("s1.tar", two, 2);
	list("s1.tar: x/1.png\t3\nx/2\nx/0.png 2\ns0.tar: x/1");
	x = open_selected();
	assert_int_equal(tsi_index_count(x), 4);
	shard_expect(x, 0, "x/1.png", 1);
	expect_sample(x, 0, "s1.tar", 1, 3);
	shard_expect(x, 1, "x/2.png", 0);
	shard_expect(x, 2, "x/0.png", 0);
	assert_true(tsi_index_weight(x, 2) == 2);
	expect_sample(x, 3, "s0.tar", 1, 1);
	expect_key(x, 0, "x/1");
	expect_key(x, 1, "x/2");
	tsi_index_close(x);
	refuse("x/0\nx/1.png\n", "line 2: several samples are called "
				 "'x/1.png'; a name is written as "
				 "'s0.tar: x/1.png'");
	refuse("x/0\nx/1\n", "line 2: several samples");
	refuse("s0.tar: x/2\n", "line 1: the data set has no sample");
	refuse("x/0.png\ns0.tar: x/0\n", "line 2: line 1 has");
}

int main(void)
{
#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, worker_make_root, remove_list)
	const struct CMUnitTest tests[] = {
		TEST(lines_are_the_samples),
		TEST(a_name_may_have_blanks),
		TEST(mistakes_are_named_with_their_line),
		TEST(bad_files_keep_their_reasons),
		TEST(a_kept_scan_serves_any_selection),
		TEST(samples_have_their_weights),
		TEST(samples_have_their_keys),
		TEST(the_identity_has_names_order_and_weights),
		TEST(samples_of_tar_files_are_named_by_key_or_shard),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
