/* SPDX-License-Identifier: MIT */
/*
 * test_index_cache.c - the cache of a scan: what it sees, and what it survives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "test/lib/index_tree.h"

static void same_index(const struct tsi_index *x, const struct tsi_index *y)
{
	assert_int_equal(tsi_index_count(x), tsi_index_count(y));
	assert_int_equal(tsi_index_classes(x), tsi_index_classes(y));
	assert_int_equal(tsi_index_bad_count(x), tsi_index_bad_count(y));
	for (uint32_t k = 0; k < tsi_index_classes(x); k++)
		assert_string_equal(tsi_index_class(x, k),
				    tsi_index_class(y, k));
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		assert_string_equal(tree_path(x, i), tree_path(y, i));
		assert_int_equal(tsi_index_label(x, i), tsi_index_label(y, i));
		assert_int_equal(tree_size_of(x, i), tree_size_of(y, i));
		assert_int_equal(tsi_index_bad(x, i), tsi_index_bad(y, i));
	}
}

static void make_tree(void)
{
	char path[64];

	for (int i = 0; i < 60; i++) {
		snprintf(path, sizeof(path), "c%d/%s%d.jpg", i % 5,
			 i % 3 ? "" : "sub/", i);
		tree_put(path, i % 7 ? "ok, this one" : "bad");
	}
}

static struct tsi_index_opts cached_options(void)
{
	struct tsi_index_opts o = tree_options();

	o.cache_dir = tree_cache;
	return o;
}

static void threads_make_no_difference(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *one;
	struct tsi_index *many;

	(void)state;
	make_tree();
	o.threads = 1;
	one = tree_open(o);
	o.threads = 200;
	many = tree_open(o);
	assert_int_equal(tsi_index_bad_count(one), 9);
	same_index(one, many);
	tsi_index_close(one);
	tsi_index_close(many);
}

static void a_second_open_looks_at_no_good_file(void **state)
{
	struct tsi_index *x;
	struct tsi_index *y;
	struct tsi_index_opts o = cached_options();
	struct stat st;
	char command[300];

	(void)state;
	make_tree();
	x = tree_open(o);
	assert_false(tsi_index_cached(x));
	tree_probed = 0;
	y = tree_open(o);
	assert_true(tsi_index_cached(y));
	assert_int_equal(tree_probed, 9); /* the bad ones: mended perhaps */
	same_index(x, y);
	tsi_index_close(y);
	o.rescan = true;
	y = tree_open(o);
	assert_false(tsi_index_cached(y));
	same_index(x, y);
	tsi_index_close(y);
	tsi_index_close(x);
	snprintf(command, sizeof(command),
		 "test $(find %s -name '*.idx' -perm 600 | wc -l) = 1 && "
		 "test $(ls -A %s | wc -l) = 1",
		 tree_cache, tree_cache);
	assert_int_equal(system(command), 0);
	assert_int_equal(stat(tree_cache, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

/* Is the tree as it is now taken from the cache? */
static bool hit(void)
{
	struct tsi_index_opts o = cached_options();
	struct tsi_index *x = tree_open(o);
	struct tsi_index *fresh;
	bool cached = tsi_index_cached(x);

	o.cache_dir = "";
	fresh = tree_open(o);
	same_index(x, fresh);
	tsi_index_close(x);
	tsi_index_close(fresh);
	return cached;
}

static void the_cache_sees_what_changed_in_the_tree(void **state)
{
	char from[128];
	char to[128];

	(void)state;
	make_tree();
	assert_false(hit());
	assert_true(hit());
	tree_put("c3/new.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
	tree_drop("c0/sub/0.jpg");
	assert_false(hit());
	tree_put("c1/sub/deep/er/1.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
	tree_put("c1/sub/deep/er/2.jpg", "ok");
	assert_false(hit());
	snprintf(from, sizeof(from), "%s/tree/c2/2.jpg", tree_top);
	snprintf(to, sizeof(to), "%s/tree/c2/02.jpg", tree_top);
	assert_int_equal(rename(from, to), 0);
	assert_false(hit());
	tree_put("c9/1.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
}

static void a_change_right_after_the_scan_is_seen(void **state)
{
	char path[32];

	(void)state;
	tree_put("a/0.jpg", "ok");
	for (int i = 1; i < 20; i++) {
		struct tsi_index *x = tree_open(cached_options());

		assert_int_equal(tsi_index_count(x), i);
		tsi_index_close(x);
		snprintf(path, sizeof(path), "a/%d.jpg", i);
		tree_put(path, "ok");
	}
}

static void a_mended_file_is_good_although_cached(void **state)
{
	struct tsi_index *x;

	(void)state;
	tree_put("a/1.jpg", "ok");
	tree_put("a/2.jpg", "bad");
	tree_put("a/3.jpg", "bad");
	tsi_index_close(tree_open(cached_options()));
	tree_put("a/2.jpg", "ok, mended");
	x = tree_open(cached_options());
	assert_true(tsi_index_cached(x));
	assert_false(tsi_index_bad(x, 1));
	assert_true(tsi_index_bad(x, 2));
	assert_int_equal(tree_size_of(x, 1), 10);
	tsi_index_close(x);
	tree_probed = 0;
	tsi_index_close(tree_open(cached_options()));
	assert_int_equal(tree_probed, 1);
	assert_true(hit());
}

static void a_scan_without_a_probe_does_not_stand_in_for_one(void **state)
{
	struct tsi_index_opts o = cached_options();
	struct tsi_index *x;

	(void)state;
	tree_put("a/1.jpg", "bad");
	o.sniff = NULL;
	x = tree_open(o);
	assert_false(tsi_index_bad(x, 0));
	tsi_index_close(x);
	x = tree_open(cached_options());
	assert_true(tsi_index_bad(x, 0));
	tsi_index_close(x);
}

static void
a_scan_by_a_build_of_other_formats_does_not_stand_in_for_one(void **state)
{
	struct tsi_index_opts o = cached_options();
	struct tsi_index *x;

	(void)state;
	tree_put("a/1.jpg", "ok");
	tsi_index_close(tree_open(o));
	o.sniffs = 1;
	x = tree_open(o);
	assert_false(tsi_index_cached(x));
	tsi_index_close(x);
	x = tree_open(o);
	assert_true(tsi_index_cached(x));
	tsi_index_close(x);
	o.sniffs = 0;
	x = tree_open(o);
	assert_false(tsi_index_cached(x));
	tsi_index_close(x);
}

static void a_cache_that_cannot_be_written_is_no_error(void **state)
{
	struct tsi_index_opts o = tree_options();

	(void)state;
	make_tree();
	o.cache_dir = "/proc/nowhere/tsock";
	tsi_index_close(tree_open(o));
	o.cache_dir = "/dev/null";
	tsi_index_close(tree_open(o));
}

static size_t read_cache(char *path, size_t path_len, uint8_t **data)
{
	char command[200];
	size_t len;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/*.idx", tree_cache);
	f = popen(command, "r");
	assert_non_null(fgets(path, (int)path_len, f));
	pclose(f);
	path[strcspn(path, "\n")] = '\0';
	f = fopen(path, "rb");
	*data = malloc(1 << 20);
	len = fread(*data, 1, 1 << 20, f);
	fclose(f);
	return len;
}

static void write_cache(const char *path, const uint8_t *data, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

/* Open whatever is there; every answer must be one, right or wrong. */
static bool walk(void)
{
	struct tsi_index *x = tree_open(cached_options());
	bool cached = tsi_index_cached(x);
	size_t n = 0;

	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		n += strlen(tree_path(x, i)) + tree_size_of(x, i);
		assert_true((uint64_t)tsi_index_label(x, i) <
			    tsi_index_classes(x));
		n += strlen(
			tsi_index_class(x, (uint32_t)tsi_index_label(x, i)));
		n += tsi_index_bad(x, i);
	}
	assert_true(n > 0);
	tsi_index_close(x);
	return cached;
}

/* Read the cache of a tree of three files, one of them bad. */
static size_t make_cache(char *path, size_t path_len, uint8_t **data)
{
	tree_put("a/1.jpg", "ok");
	tree_put("a/2.jpg", "bad");
	tree_put("b/sub/1.jpg", "ok");
	tsi_index_close(tree_open(cached_options()));
	return read_cache(path, path_len, data);
}

static void a_damaged_cache_is_as_none(void **state)
{
	char path[200];
	uint8_t *data;
	size_t len;

	(void)state;
	len = make_cache(path, sizeof(path), &data);
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 0x41;
		write_cache(path, data, len);
		assert_false(walk());
		data[i] ^= 0x41;
	}
	for (size_t i = 0; i < len; i += 3) {
		write_cache(path, data, i);
		assert_false(walk());
	}
	data[len] = 0;
	write_cache(path, data, len + 1);
	assert_false(walk());
	write_cache(path, data, len);
	assert_true(walk());
	free(data);
}

/* As table_file.c lays the file out: 80 bytes of header, checksum at 16. */
static void seal(uint8_t *data, size_t len)
{
	uint64_t nbad;
	uint64_t sum = 0;

	memcpy(&nbad, data + 48, 8);
	memcpy(data + 16, &sum, 8);
	if (nbad > (len - 80) / 8)
		return;
	sum = tsi_hash(data, 80, 0);
	sum = tsi_hash(data + 80, len - 80 - nbad * 8, sum);
	sum = tsi_hash(data + len - nbad * 8, nbad * 8, sum);
	memcpy(data + 16, &sum, 8);
}

static void a_forged_cache_does_no_harm(void **state)
{
	static const uint8_t value[] = { 0x00, 0x01, 0x7f, 0xff };
	char path[200];
	uint8_t *data;
	unsigned taken = 0;
	size_t len;

	(void)state;
	len = make_cache(path, sizeof(path), &data);
	seal(data, len);
	write_cache(path, data, len);
	assert_true(walk()); /* else this test forges nothing */
	for (size_t i = 0; i < len * 4; i++) {
		uint8_t *copy = malloc(len);

		memcpy(copy, data, len);
		copy[i / 4] = value[i % 4];
		seal(copy, len);
		write_cache(path, copy, len);
		taken += walk();
		free(copy);
	}
	assert_true(taken > 0);
	free(data);
}

/* Where a text stands in a cache file, for another of the same length. */
static void forge(const char *path, const uint8_t *data, size_t len,
		  const char *from, const char *to)
{
	uint8_t *copy = malloc(len);
	uint8_t *at;

	memcpy(copy, data, len);
	at = memmem(copy, len, from, strlen(from));
	assert_non_null(at);
	memcpy(at, to, strlen(to));
	seal(copy, len);
	write_cache(path, copy, len);
	free(copy);
}

static void a_cache_leads_nowhere_but_into_the_tree(void **state)
{
	static const char *const out[][2] = {
		{ "abc", "/et" },       { "abc", "../" },
		{ "de.jpg", "/e.jpg" }, { "de.jpg", "../def" },
		{ "de.jpg", "d/../e" }, { "de.jpg", "def/.." },
	};
	static const char *const in[][2] = { { "abc", "..a" },
					     { "abc", "a/." },
					     { "de.jpg", "..jpg." },
					     { "de.jpg", "a../.b" } };
	char path[200];
	uint8_t *data;
	size_t len;

	(void)state;
	tree_put("abc/de.jpg", "ok");
	tree_put("abd/ef.jpg", "ok");
	tsi_index_close(tree_open(cached_options()));
	len = read_cache(path, sizeof(path), &data);
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		forge(path, data, len, out[i][0], out[i][1]);
		assert_false(walk());
	}
	for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		forge(path, data, len, in[i][0], in[i][1]);
		assert_true(walk());
	}
	free(data);
}

/* What a change is, is the same for who looks and for the cache. */
static void a_look_tells_whether_something_has_changed(void **state)
{
	struct tsi_index *x;
	uint64_t now, then;

	(void)state;
	make_tree();
	x = tree_open(tree_options());
	assert_true(tsi_index_look(x, &then));
	assert_true(tsi_index_look(x, &now));
	assert_int_equal(now, then);
	tree_put("c1/new.jpg", "ok, this one");
	assert_false(tsi_index_look(x, &now));
	assert_int_not_equal(now, then);
	assert_false(tsi_index_look(x, &then));
	assert_int_equal(now, then);
	tree_put("c9/new.jpg", "ok, this one");
	assert_false(tsi_index_look(x, &now));
	assert_int_not_equal(now, then);
	tsi_index_close(x);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(threads_make_no_difference),
		TEST(a_second_open_looks_at_no_good_file),
		TEST(the_cache_sees_what_changed_in_the_tree),
		TEST(a_change_right_after_the_scan_is_seen),
		TEST(a_mended_file_is_good_although_cached),
		TEST(a_scan_without_a_probe_does_not_stand_in_for_one),
		TEST(a_scan_by_a_build_of_other_formats_does_not_stand_in_for_one),
		TEST(a_cache_that_cannot_be_written_is_no_error),
		TEST(a_damaged_cache_is_as_none),
		TEST(a_forged_cache_does_no_harm),
		TEST(a_cache_leads_nowhere_but_into_the_tree),
		TEST(a_look_tells_whether_something_has_changed),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL) != 0;
}
