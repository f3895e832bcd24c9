/* SPDX-License-Identifier: MIT */
/*
 * test_format.c - the table of data set formats, and a format that is not in
 * it: a list of samples, whole files or ranges of one file, all the way to
 * decoded samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format_list.h"
#include "test/lib/image_gen.h"
#include "test/lib/worker_fixture.h"
#include "tsock/tsock.h"

#define FILES 12

static const char *const folder[] = { "a", "b", "c" };

#define WORD(name, help) #name,
static const char *const words[] = { TSI_FORMATS(WORD) };
#define FORMATS (sizeof(words) / sizeof(words[0]))

static void every_format_of_the_table_is_whole(void **state)
{
	char all[400] = "";

	(void)state;
	for (unsigned k = 0; k < FORMATS; k++) {
		const struct tsi_format *f = tsi_format_at(k);

		assert_string_equal(f->name, words[k]);
		assert_true(f->open && f->scan && f->locate && f->label);
		assert_null(strchr(f->layout, '/'));
		/* Or its samples are known to have no image. */
		if (f->nfields || !f->look) {
			assert_int_equal(f->nfields, 2);
			assert_string_equal(f->fields[0].name,
					    strcmp(f->name, "audio") ? "image"
								     : "audio");
			assert_string_equal(f->fields[1].name, "label");
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 k ? "|" : "", words[k]);
	}
	assert_string_equal(TSI_FORMAT_WORDS, all);
	for (unsigned k = 0; k < FORMATS; k++)
		assert_non_null(strstr(TSI_FORMAT_HELP, words[k]));
}

static void append(const char *name, const void *data, size_t len)
{
	worker_write_file(name, "ab", data, len);
}

static void add_line(const char *text)
{
	append("list.txt", text, strlen(text));
}

/*
 * Put images as a tree and, one after the other, in the file "pack", of which
 * list.txt names the ranges.  Returns the length of the pack.
 */
static uint64_t put_images(void)
{
	uint64_t at = 5;

	append("pack", "bytes", 5);
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_bytes b = image_gen_either(i);
		char text[60];

		snprintf(text, sizeof(text), "%s/%02u.%s", folder[i / 4], i,
			 i % 3 ? "jpg" : "png");
		worker_put(text, b.data, b.len);
		append("pack", b.data, b.len);
		snprintf(text, sizeof(text), "pack %u %llu %zu\n", i / 4,
			 (unsigned long long)at, b.len);
		add_line(text);
		at += b.len;
		free(b.data);
	}
	return at;
}

static void make_all(const struct tsi_format *f, struct sample *to, uint64_t n,
		     unsigned *substituted)
{
	struct tsi_sampler *s;

	worker_options.format = f;
	s = worker_open_sampler();
	memset(to, 0, n * sizeof(*to));
	assert_int_equal(worker_make(s, DEPTH, to, n, substituted), 0);
	tsi_sampler_close(s);
}

static void ranges_of_one_file_give_the_samples_of_a_tree(void **state)
{
	static const enum tsi_io_reader_kind io[] = { TSI_READER_PREAD,
						      TSI_READER_AUTO };
	struct sample tree[64], list[64];
	unsigned n;

	(void)state;
	put_images();
	worker_options.order = TSOCK_ORDER_PHILOX;
	make_all(&tsi_format_imagefolder, tree, 3 * FILES, &n);
	assert_int_equal(n, 0);
	for (unsigned k = 0; k < 2; k++) {
		worker_options.io = io[k];
		make_all(&tsi_format_list, list, 3 * FILES, &n);
		assert_int_equal(n, 0);
		for (unsigned i = 0; i < 3 * FILES; i++)
			assert_memory_equal(&tree[i], &list[i],
					    sizeof(tree[i]));
	}
	/* The three epochs and the images do differ. */
	assert_memory_not_equal(&tree[0], &tree[1], sizeof(tree[0]));
	assert_memory_not_equal(&tree[0], &tree[FILES], sizeof(tree[0]));
}

static void whole_files_and_ranges_stand_in_one_list(void **state)
{
	struct sample got[64];
	struct tsi_location at;
	struct tsi_sampler *s;
	const struct tsi_index *x;
	unsigned n;

	(void)state;
	worker_put_five();
	append("two", worker_png, sizeof(worker_png));
	append("two", worker_png, sizeof(worker_png));
	add_line("b/0.png 7\n");
	add_line("two 2 83 83\n");
	worker_options.format = &tsi_format_list;
	s = worker_open_sampler();
	x = tsi_sampler_index(s);
	assert_int_equal(sizeof(worker_png), 83);
	assert_int_equal(tsi_index_count(x), 2);
	assert_int_equal(tsi_index_classes(x), 8);
	assert_string_equal(tsi_index_class(x, 7), "7");
	tsi_index_locate(x, 0, &at);
	assert_string_equal(at.file, "b/0.png");
	assert_int_equal(at.offset + at.length, 0);
	assert_int_equal(at.size, 83);
	tsi_index_locate(x, 1, &at);
	assert_string_equal(at.file, "two");
	assert_int_equal(at.offset, 83);
	assert_int_equal(at.length, 83);
	assert_int_equal(at.size, 83);
	assert_int_equal(worker_make(s, DEPTH, got, 2, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(got[0].label, 7);
	assert_int_equal(got[1].label, 2);
	assert_int_equal(got[1].image[0], 128);
	tsi_sampler_close(s);
}

/* Too large to be read ahead: read when memory was claimed for it. */
static void a_large_range_gives_the_sample_of_the_file(void **state)
{
	struct image_gen_png p = { .width = 1500,
				   .height = 1300,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB,
				   .seed = 5 };
	struct image_gen_bytes b = image_gen_png(&p);
	struct sample tree[64], list[64];
	char text[60];
	unsigned n;

	(void)state;
	assert_true(b.len > TSI_READER_AHEAD);
	worker_put_five();
	worker_put("a/large.png", b.data, b.len);
	append("pack", worker_png, sizeof(worker_png));
	append("pack", b.data, b.len);
	append("pack", worker_png, sizeof(worker_png));
	snprintf(text, sizeof(text), "pack 0 %zu %zu\n", sizeof(worker_png),
		 b.len);
	add_line("a/0.png 0\na/1.png 0\n");
	add_line(text);
	free(b.data);
	make_all(&tsi_format_imagefolder, tree, 3, &n);
	assert_int_equal(n, 0);
	make_all(&tsi_format_list, list, 3, &n);
	assert_int_equal(n, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(&tree[i], &list[i], sizeof(tree[i]));
	assert_memory_not_equal(list[1].image, list[2].image,
				sizeof(list[1].image));
}

static void ranges_that_hold_no_image_are_bad(void **state)
{
	uint64_t len = put_images();
	const struct tsi_index *x;
	struct sample got[64];
	struct tsi_sampler *s;
	char text[100];
	unsigned n;

	(void)state;
	snprintf(text, sizeof(text), "pack 0 %llu 2\npack 0 0 5\n",
		 (unsigned long long)len - 1);
	add_line(text);
	/* The first ten bytes of an image. */
	add_line("pack 1 5 10\nmissing 0 0 1\na 0 0 1\n");
	worker_options.format = &tsi_format_list;
	s = worker_open_sampler();
	x = tsi_sampler_index(s);
	assert_int_equal(tsi_index_count(x), FILES + 5);
	assert_int_equal(tsi_index_bad_count(x), 5);
	assert_string_equal(tsi_index_bad_reason(x, FILES),
			    "ends before the sample does");
	assert_non_null(tsi_index_bad_reason(x, FILES + 1));
	assert_non_null(tsi_index_bad_reason(x, FILES + 2));
	assert_non_null(strstr(tsi_index_bad_reason(x, FILES + 3), "No such"));
	assert_non_null(strstr(tsi_index_bad_reason(x, FILES + 4), "folder"));
	assert_int_equal(worker_make(s, DEPTH, got, FILES + 5, &n), 0);
	assert_int_equal(n, 5);
	for (unsigned i = FILES; i < FILES + 5; i++)
		assert_in_range(got[i].index, 0, FILES - 1);
	tsi_sampler_close(s);
}

static void a_file_cut_off_after_the_scan_loses_its_last_samples(void **state)
{
	uint64_t len = put_images();
	struct sample got[64];
	struct tsi_sampler *s;
	char path[128];
	unsigned n;

	(void)state;
	worker_options.format = &tsi_format_list;
	s = worker_open_sampler();
	snprintf(path, sizeof(path), "%s/pack", worker_root);
	assert_int_equal(truncate(path, (off_t)len - 1), 0);
	assert_int_equal(worker_make(s, DEPTH, got, FILES, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(got[FILES - 2].index, FILES - 2);
	assert_in_range(got[FILES - 1].index, 0, FILES - 2);
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 1);
	tsi_sampler_close(s);
}

static bool cached(const struct tsi_format *f, uint64_t count)
{
	struct tsi_sampler *s;
	bool yes;

	worker_options.format = f;
	s = worker_open_sampler();
	assert_int_equal(tsi_index_count(tsi_sampler_index(s)), count);
	yes = tsi_index_cached(tsi_sampler_index(s));
	tsi_sampler_close(s);
	return yes;
}

static void scans_of_each_layout_are_kept_apart(void **state)
{
	struct sample fresh[64], kept[64];
	char cache[100];
	unsigned n;

	(void)state;
	put_images();
	make_all(&tsi_format_list, fresh, FILES, &n);
	snprintf(cache, sizeof(cache), "%s/a/cache", worker_root);
	worker_options.cache = cache;
	assert_false(cached(&tsi_format_list, FILES));
	assert_true(cached(&tsi_format_list, FILES));
	make_all(&tsi_format_list, kept, FILES, &n);
	for (unsigned i = 0; i < FILES; i++)
		assert_memory_equal(&fresh[i], &kept[i], sizeof(kept[i]));
	/* A change of the file that the scan read is seen. */
	add_line("a/00.png 0\n");
	assert_false(cached(&tsi_format_list, FILES + 1));
	assert_false(cached(&tsi_format_imagefolder, FILES));
	assert_true(cached(&tsi_format_list, FILES + 1));
}

static void refuse(int code, const char *what)
{
	struct tsi_sampler *s;

	worker_options.format = &tsi_format_list;
	assert_int_equal(tsi_sampler_open(&worker_options, &s), code);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static void a_formats_own_words_come_through(void **state)
{
	(void)state;
	refuse(TSOCK_EARG, "list.txt");
	add_line("");
	refuse(TSOCK_EDATA, "is empty");
	add_line("a/0.png\n");
	refuse(TSOCK_EDATA, "no sample: a/0.png");
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, worker_make_root, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_of_the_table_is_whole),
		TEST(ranges_of_one_file_give_the_samples_of_a_tree),
		TEST(whole_files_and_ranges_stand_in_one_list),
		TEST(a_large_range_gives_the_sample_of_the_file),
		TEST(ranges_that_hold_no_image_are_bad),
		TEST(a_file_cut_off_after_the_scan_loses_its_last_samples),
		TEST(scans_of_each_layout_are_kept_apart),
		TEST(a_formats_own_words_come_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
