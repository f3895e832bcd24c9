/* SPDX-License-Identifier: MIT */
/*
 * test_webdataset.c - tar shards as a data set: which samples they hold, their
 * labels and bytes.
 */
#include <fcntl.h>
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
#include "test/lib/shard_fixture.h"

#define FILES 12

static void refuse(int code, const char *what)
{
	struct tsi_index_opts o = { .format = worker_options.format,
				    .root = worker_options.folder,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x;

	assert_int_equal(tsi_index_open(&o, &x), code);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static void refuse_one(struct tar_gen *t, const char *what)
{
	tar_gen_end(t);
	shard_write_tar(t, "s.tar");
	refuse(TSOCK_EDATA, what);
	assert_non_null(strstr(tsock_errmsg(), "s.tar"));
}

/* Put images as a tree and as three shards. */
static void put_images(void)
{
	struct tar_gen t = { 0 };

	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_bytes b = image_gen_either(i);
		const char *ext = i % 3 ? "jpg" : "png";
		char name[60], text[20];

		snprintf(name, sizeof(name), "%c/%02u.%s", 'a' + i / 4, i, ext);
		worker_put(name, b.data, b.len);
		snprintf(text, sizeof(text), "%u", i / 4);
		snprintf(name, sizeof(name), "%02u.%s", i, ext);
		tar_gen_file(&t, name, b.data, b.len);
		snprintf(name, sizeof(name), "%02u.cls", i);
		tar_gen_text(&t, name, text);
		free(b.data);
		if (i % 5 == 4 || i == FILES - 1) {
			snprintf(name, sizeof(name), "shard-%02u.tar", i / 5);
			tar_gen_end(&t);
			shard_write_tar(&t, name);
		}
	}
}

static void make_all(const struct tsi_format *f, struct sample *to, uint64_t n)
{
	struct tsi_sampler *s;
	unsigned substituted;

	worker_options.format = f;
	s = worker_open_sampler();
	memset(to, 0, n * sizeof(*to));
	assert_int_equal(worker_make(s, DEPTH, to, n, &substituted), 0);
	assert_int_equal(substituted, 0);
	tsi_sampler_close(s);
}

static void shards_give_the_samples_of_a_tree(void **state)
{
	static const enum tsi_io_reader_kind io[] = { TSI_READER_PREAD,
						      TSI_READER_AUTO };
	struct sample tree[64], shards[64];
	char pattern[100];

	(void)state;
	put_images();
	snprintf(pattern, sizeof(pattern), "%s/shard-{00..02}.tar",
		 worker_root);
	worker_options.order = TSOCK_ORDER_PHILOX;
	make_all(&tsi_format_imagefolder, tree, 3 * FILES);
	for (unsigned k = 0; k < 4; k++) {
		worker_options.io = io[k % 2];
		worker_options.folder = k < 2 ? worker_root : pattern;
		make_all(&tsi_format_webdataset, shards, 3 * FILES);
		for (unsigned i = 0; i < 3 * FILES; i++)
			assert_memory_equal(&tree[i], &shards[i],
					    sizeof(tree[i]));
	}
	assert_memory_not_equal(&tree[0], &tree[1], sizeof(tree[0]));
}

static void a_sample_is_a_run_of_files_of_one_key(void **state)
{
	struct tar_gen t = { 0 };
	struct tsi_index *x;

	(void)state;
	tar_gen_text(&t, "__index__", "no sample");
	tar_gen_text(&t, "__meta__/a.jpg", "none either");
	shard_add(&t, "x/0.JPG");
	tar_gen_text(&t, "x/0.cls", " 7\n");
	tar_gen_text(&t, "x/0.txt", "a caption");
	/* An equal last part, but another folder. */
	tar_gen_text(&t, "y/0.cls", "3");
	tar_gen_header(&t, NULL, "y/", '5', 0);
	tar_gen_header(&t, NULL, "y/0.jpg", '2', 0);
	tar_gen_text(&t, "y/0.seg.png", "another picture of it");
	shard_add(&t, "y/0.jpeg");
	/* Only text. */
	tar_gen_text(&t, "y/1.cls", "9");
	tar_gen_text(&t, "nodot", "");
	shard_add(&t, "a.b/2.png");
	tar_gen_text(&t, "a.b/2.jpeg", "the png counts");
	tar_gen_text(&t, "a.b/2.cls", "0");
	shard_add(&t, "c/.jpg");
	tar_gen_text(&t, "c/.cls", "5");
	/* The key comes again: another sample. */
	shard_add(&t, "x/0.jpg");
	tar_gen_text(&t, "x/0.cls", "1");
	x = shard_open_one(&t);
	assert_int_equal(tsi_index_count(x), 5);
	shard_expect(x, 0, "x/0.JPG", 7);
	shard_expect(x, 1, "y/0.jpeg", 3);
	shard_expect(x, 2, "a.b/2.png", 0);
	shard_expect(x, 3, "c/.jpg", 5);
	shard_expect(x, 4, "x/0.jpg", 1);
	assert_int_equal(tsi_index_classes(x), 8);
	assert_string_equal(tsi_index_class(x, 7), "7");
	assert_int_equal(tsi_index_bad_count(x), 0);
	tsi_index_close(x);
}

/* All that the producer reads, and no others; the ranks are those of the list. */
static void images_of_every_format_are_samples(void **state)
{
	static const char *const ext[] = {
		"jpg", "png", "jpeg", "webp", "gif",  "tif", "tiff", "bmp",
		"ppm", "pgm", "pnm",  "jpe",  "jfif", "dib", "avif"
	};
	const unsigned n = sizeof(ext) / sizeof(ext[0]);
	struct tar_gen t = { 0 };
	struct tsi_index *x;
	char name[20];

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%02u.%s", i, ext[i]);
		shard_add(&t, name);
		/* One that comes later in the list doesn't count. */
		snprintf(name, sizeof(name), "%02u.%s", i,
			 i + 1 < n ? ext[i + 1] : "jp2");
		tar_gen_text(&t, name, "no image");
		snprintf(name, sizeof(name), "%02u.cls", i);
		tar_gen_text(&t, name, "1");
	}
	tar_gen_text(&t, "99.jp2", "what isn't read");
	x = shard_open_one(&t);
	assert_int_equal(tsi_index_count(x), n);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%02u.%s", i, ext[i]);
		shard_expect(x, i, name, 1);
	}
	tsi_index_close(x);
}

static void names_and_sizes_of_every_tar_format_are_read(void **state)
{
	char longer[300], pax[400];
	struct tar_gen t = { 0 };
	struct tsi_location at;
	struct tsi_index *x;
	int n;

	(void)state;
	memset(longer, 'n', sizeof(longer));
	memcpy(longer + 290, ".png", 5);
	/* ustar: the first part of a name stands in the prefix. */
	tar_gen_header(&t, "a/folder", "0.png", '0', sizeof(worker_png));
	tar_gen_bytes(&t, worker_png, sizeof(worker_png));
	tar_gen_header(&t, "a/folder", "0.cls", '0', 1);
	tar_gen_bytes(&t, "0", 1);
	/* GNU: a name longer than the header. */
	tar_gen_header(&t, NULL, "././@LongLink", 'L', 295);
	tar_gen_bytes(&t, longer, 295);
	shard_add(&t, "nnn");
	memcpy(longer + 290, ".cls", 5);
	tar_gen_header(&t, NULL, "././@LongLink", 'L', 295);
	tar_gen_bytes(&t, longer, 295);
	tar_gen_text(&t, "nnn", "1");
	/* pax: name and size in records, and records that say other things. */
	tar_gen_text(&t, "pax_global_header", "");
	t.data[t.len - 512 + 156] = 'g';
	tar_gen_sum(t.data + t.len - 512);
	n = snprintf(pax, sizeof(pax),
		     "20 mtime=1.00000000\n18 path=a/p\xc3\xa4.png\n11 "
		     "size=83\n");
	assert_int_equal(sizeof(worker_png), 83);
	tar_gen_header(&t, NULL, "PaxHeaders/x", 'x', (uint64_t)n);
	tar_gen_bytes(&t, pax, (size_t)n);
	tar_gen_header(&t, NULL, "other", '0', 0);
	tar_gen_bytes(&t, worker_png, sizeof(worker_png));
	tar_gen_text(&t, "a/p\xc3\xa4.cls", "2");
	/* v7: no magic, an old mark of a folder. */
	shard_add(&t, "v7.png");
	memset(t.data + t.len - 1024 + 257, 0, 8);
	t.data[t.len - 1024 + 156] = '\0';
	tar_gen_sum(t.data + t.len - 1024);
	tar_gen_text(&t, "v7.cls", "3");
	x = shard_open_one(&t);
	assert_int_equal(tsi_index_count(x), 4);
	shard_expect(x, 0, "a/folder/0.png", 0);
	memcpy(longer + 290, ".png", 5);
	shard_expect(x, 1, longer, 1);
	shard_expect(x, 2, "a/p\xc3\xa4.png", 2);
	shard_expect(x, 3, "v7.png", 3);
	for (unsigned i = 0; i < 4; i++) {
		tsi_index_locate(x, i, &at);
		assert_int_equal(at.length, sizeof(worker_png));
		assert_string_equal(at.file, "s.tar");
	}
	assert_int_equal(tsi_index_bad_count(x), 0);
	tsi_index_close(x);
}

static void a_label_may_come_from_json(void **state)
{
	struct tar_gen t = { 0 };
	struct tsi_index *x;

	(void)state;
	tar_gen_text(&t, "0.json", "{\"caption\": \"x\", \"label\": 4}");
	shard_add(&t, "0.jpg");
	/* A .cls counts more, before or after. */
	tar_gen_text(&t, "1.cls", "2");
	tar_gen_text(&t, "1.json", "{\"label\": 5}");
	shard_add(&t, "1.jpg");
	tar_gen_text(&t, "2.json", "{\"label\": 5}");
	tar_gen_text(&t, "2.cls", "3");
	shard_add(&t, "2.jpg");
	x = shard_open_one(&t);
	shard_expect(x, 0, "0.jpg", 4);
	shard_expect(x, 1, "1.jpg", 2);
	shard_expect(x, 2, "2.jpg", 3);
	tsi_index_close(x);
}

static void a_label_that_is_elsewhere_or_no_number_is_said_so(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	/* Images first, then labels, as an unsorted folder gives them. */
	shard_add(&t, "0.jpg");
	shard_add(&t, "1.jpg");
	tar_gen_text(&t, "0.cls", "0");
	tar_gen_text(&t, "1.cls", "1");
	refuse_one(&t, "the label of sample 0, at offset 2048, is not beside "
		       "its image");
	tar_gen_text(&t, "0.cls", "0");
	tar_gen_text(&t, "1.cls", "1");
	shard_add(&t, "0.jpg");
	shard_add(&t, "1.jpg");
	refuse_one(&t, "tar --sort=name");
	shard_add(&t, "0.jpg");
	tar_gen_text(&t, "0.json", "{\"label\": \"3\"}");
	refuse_one(&t, "the \"label\" in 0.json is no number of a class");
	/* A key ends at the first dot. */
	shard_add(&t, "a/x.jpg");
	tar_gen_text(&t, "a/x.v1.cls", "1");
	refuse_one(&t, "a/x.v1.cls has another one than meant");
}

static void samples_that_cant_be_meant_are_errors(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	shard_add(&t, "0.jpg");
	refuse_one(&t, "sample 0 has no label");
	shard_add(&t, "0.jpg");
	tar_gen_text(&t, "0.json", "{\"labels\": 1}");
	shard_add(&t, "1.jpg");
	tar_gen_text(&t, "1.cls", "1");
	refuse_one(&t, "sample 0 has no label");
	shard_add(&t, "0.jpg");
	tar_gen_text(&t, "0.cls", "cat");
	refuse_one(&t, "0.cls at offset 1024 is no label");
	shard_add(&t, "0.jpg");
	shard_add(&t, "0.JPG");
	refuse_one(&t, "0.JPG at offset 1024 is there twice");
	/* Damage behind it is not what was wrong first. */
	shard_add(&t, "0.jpg");
	shard_add(&t, "0.JPG");
	tar_gen_text(&t, "0.cls", "1");
	t.data[2048] ^= 1;
	refuse_one(&t, "0.JPG at offset 1024 is there twice");
	tar_gen_text(&t, "0.cls", "1");
	tar_gen_text(&t, "0.cls", "1");
	refuse_one(&t, "is there twice");
	tar_gen_text(&t, "0.cls", "1");
	tar_gen_text(&t, "0.jpg", "");
	refuse_one(&t, "0.jpg at offset 1024 is empty");
	tar_gen_header(&t, NULL, "0.jpg", 'S', 512);
	tar_gen_bytes(&t, worker_png, sizeof(worker_png));
	refuse_one(&t, "--sparse");
	tar_gen_header(&t, NULL, "pax", 'x', 22);
	tar_gen_bytes(&t, "22 GNU.sparse.major=1\n", 22);
	shard_add(&t, "0.jpg");
	refuse_one(&t, "--sparse");
}

static void drop(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", worker_root, name);
	assert_int_equal(unlink(path), 0);
}

static void what_is_no_data_set_says_so(void **state)
{
	struct tar_gen t = { 0 };
	char pattern[120];

	(void)state;
	refuse(TSOCK_EDATA, "no file *.tar");
	tar_gen_text(&t, "0.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	refuse(TSOCK_EDATA, "no sample");
	shard_add(&t, "x.v1.jpg");
	tar_gen_text(&t, "x.v1.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	refuse(TSOCK_EDATA, "x.v1.jpg has another one than meant");
	worker_put("t.tar", "this is no tar file, whatever its name is", 41);
	refuse(TSOCK_EDATA, "t.tar: no tar file");
	worker_put("t.tar", "", 0);
	refuse(TSOCK_EDATA, "no sample");
	memset(t.data = malloc(600), 1, t.len = 600);
	memcpy(t.data, "\x1f\x8b", 2);
	shard_write_tar(&t, "t.tar");
	refuse(TSOCK_EDATA, "gzip");
	memset(t.data = malloc(600), 1, t.len = 600);
	memcpy(t.data, "\x28\xb5\x2f\xfd", 4);
	shard_write_tar(&t, "t.tar");
	refuse(TSOCK_EDATA, "compressed by zstd");
	drop("t.tar");
	drop("s.tar");
	worker_put("a.tar.xz", "", 0);
	refuse(TSOCK_EDATA, "1 compressed tar file (a.tar.xz)");
	worker_put("data.mdb", "", 0);
	worker_put("data2.mdb", "", 0);
	refuse(TSOCK_EDATA, "2 LMDB files (data.mdb, ...)");
	snprintf(pattern, sizeof(pattern), "%s/val", worker_root);
	assert_int_equal(mkdir(pattern, 0700), 0);
	worker_put("val/1.tar", "", 0);
	refuse(TSOCK_EDATA, "/val: give that folder as --root");
	worker_options.folder = pattern;
	snprintf(pattern, sizeof(pattern), "%s/u-{0..1}.tar", worker_root);
	/* Either may be found missing first. */
	refuse(TSOCK_ESYS, "u-");
	snprintf(pattern, sizeof(pattern), "%s/u-{0..}.tar", worker_root);
	refuse(TSOCK_EARG, "braces");
	snprintf(pattern, sizeof(pattern), "%s/{a,b}/u.tar", worker_root);
	refuse(TSOCK_EARG, "their folder");
	snprintf(pattern, sizeof(pattern), "%s/none", worker_root);
	refuse(TSOCK_EARG, "there is no");
	snprintf(pattern, sizeof(pattern), "%s/{a,b}", worker_root);
	refuse(TSOCK_EDATA, "folder");
}

static bool cached(uint64_t count)
{
	struct tsi_sampler *s = worker_open_sampler();
	bool yes = tsi_index_cached(tsi_sampler_index(s));

	assert_int_equal(tsi_index_count(tsi_sampler_index(s)), count);
	tsi_sampler_close(s);
	return yes;
}

static void a_kept_scan_sees_new_and_changed_shards(void **state)
{
	struct tar_gen t = { 0 };
	struct tsi_index *x;
	char cache[100], pattern[100];

	(void)state;
	snprintf(cache, sizeof(cache), "%s/a/cache", worker_root);
	snprintf(pattern, sizeof(pattern), "%s/s.tar", worker_root);
	worker_options.cache = cache;
	shard_three(&t);
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_false(cached(3));
	assert_true(cached(3));
	/* One file of the folder is another data set. */
	worker_options.folder = pattern;
	assert_false(cached(3));
	assert_true(cached(3));
	/* And each has a scan of its own. */
	worker_options.folder = worker_root;
	assert_true(cached(3));
	worker_options.folder = pattern;
	assert_true(cached(3));
	shard_add(&t, "a.png");
	tar_gen_text(&t, "a.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, "t.tar");
	assert_true(cached(3));
	worker_options.folder = worker_root;
	assert_false(cached(4));
	assert_true(cached(4));
	shard_three(&t);
	shard_add(&t, "a.png");
	tar_gen_text(&t, "a.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, "t.tar");
	assert_false(cached(7));
	assert_true(cached(7));
	x = shard_open_index();
	shard_expect(x, 6, "a.png", 1);
	tsi_index_close(x);
}

struct listed {
	char name[2][200];
	unsigned n;
};

static void list(void *arg, const char *name, const char *reason)
{
	struct listed *l = arg;

	(void)reason;
	if (l->n < 2)
		snprintf(l->name[l->n], sizeof(l->name[0]), "%s", name);
	l->n++;
}

static void a_bad_sample_is_named_and_replaced(void **state)
{
	struct tar_gen t = { 0 };
	struct listed l = { .n = 0 };
	struct sample got[64];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	shard_three(&t);
	tar_gen_text(&t, "bad.png", "no image");
	tar_gen_text(&t, "bad.cls", "1");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, DEPTH, got, 4, &n), 0);
	assert_int_equal(n, 1);
	assert_in_range(got[3].index, 0, 2);
	tsi_badlist_each(tsi_sampler_badlist(s), list, &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.name[0], "s.tar: bad.png");
	tsi_sampler_close(s);
	worker_options.on_error = TSI_RAISE;
	s = worker_open_sampler();
	assert_int_equal(worker_make(s, 1, got, 4, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "s.tar: bad.png: neither"));
	tsi_sampler_close(s);
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, shard_setup, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shards_give_the_samples_of_a_tree),
		TEST(a_sample_is_a_run_of_files_of_one_key),
		TEST(images_of_every_format_are_samples),
		TEST(names_and_sizes_of_every_tar_format_are_read),
		TEST(a_label_may_come_from_json),
		TEST(a_label_that_is_elsewhere_or_no_number_is_said_so),
		TEST(samples_that_cant_be_meant_are_errors),
		TEST(what_is_no_data_set_says_so),
		TEST(a_kept_scan_sees_new_and_changed_shards),
		TEST(a_bad_sample_is_named_and_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
