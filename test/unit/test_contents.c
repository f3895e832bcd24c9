/* SPDX-License-Identifier: MIT */
/*
 * test_contents.c - folders that hold something else than a data set: what is
 * said of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/contents.h"
#include "test/lib/index_tree.h"

static struct tsi_contents look(const char *folder, unsigned deep)
{
	struct tsi_contents c;
	char path[200];

	snprintf(path, sizeof(path), "%s/tree/%s", tree_top, folder);
	assert_true(tsi_contents_look(AT_FDCWD, path, deep, &c));
	return c;
}

static void assert_says(const struct tsi_contents *c, const char *wanted)
{
	char text[160];

	assert_string_equal(tsi_contents_say(c, text, sizeof(text)), wanted);
}

static void every_container_is_known_by_its_name(void **state)
{
	static const char *const known[][2] = {
		{ "a.tar", "tar" },
		{ "a.TAR.GZ", "compressed tar" },
		{ "a.tar.zst", "compressed tar" },
		{ "data_batch_3", "CIFAR batch" },
		{ "a.tfrecord", "TFRecord" },
		{ "train-00000-of-01024", "TFRecord" },
		{ "data.mdb", "LMDB" },
		{ "a.rec", "RecordIO" },
		{ "a.beton", "FFCV" },
		{ "shard.00000.mds", "MosaicML Streaming (MDS)" },
		{ "chunk-0-0.bin", "LitData" },
		{ "a.h5", "HDF5" },
		{ "a.npy", "NumPy" },
		{ "train-images-idx3-ubyte", "IDX (MNIST)" },
		{ "train-images-idx3-ubyte.gz", "IDX (MNIST)" },
		{ "a.parquet", "Parquet" },
		{ "data-00000-of-00002.arrow", "Arrow" },
		{ "train.bin", "binary" },
		{ "a.zip", "zip" },
		{ "a.pt", "PyTorch or pickle" },
		{ "labels.csv", "CSV" },
		{ "metadata.jsonl", "JSON" },
		{ "a.txt", "text" },
		{ "a.mp4", "video" },
		{ "a.Opus", "audio" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		char path[80], wanted[160];
		struct tsi_contents c;
		int kind;

		snprintf(path, sizeof(path), "%u/%s", i, known[i][0]);
		tree_put(path, "");
		snprintf(path, sizeof(path), "%u", i);
		c = look(path, 0);
		kind = tsi_contents_most(&c);
		assert_int_equal(kind, tsi_contents_kind(known[i][1]));
		assert_int_equal(tsi_contents_is_native(kind), i == 0);
		if (i)
			assert_true(strlen(tsi_contents_way(kind)) > 20);
		snprintf(wanted, sizeof(wanted), "1 %s file (%s)", known[i][1],
			 known[i][0]);
		assert_says(&c, wanted);
	}
}

static void
a_file_whose_name_says_nothing_is_known_by_its_first_bytes(void **state)
{
	static const struct {
		const char *head;
		size_t len;
		const char *what;
	} known[] = {
		{ "PAR1...", 8, "Parquet" },
		{ "\x89HDF\r\n\x1a\n", 8, "HDF5" },
		{ "\x93NUMPY\1", 7, "NumPy" },
		{ "ARROW1", 6, "Arrow" },
		{ "PK\3\4", 4, "zip" },
		{ "\x0a\x23\xd7\xce", 4, "RecordIO" },
		{ "0123456789abcdef\xde\xc0\xef\xbe", 20, "LMDB" },
	};

	(void)state;
	tree_put("x/y", "");
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct tsi_contents c;
		char path[200];
		int fd;

		snprintf(path, sizeof(path), "%s/tree/x/y", tree_top);
		fd = open(path, O_WRONLY | O_TRUNC);
		assert_int_equal(write(fd, known[i].head, known[i].len),
				 known[i].len);
		close(fd);
		c = look("x", 0);
		assert_int_equal(tsi_contents_most(&c),
				 tsi_contents_kind(known[i].what));
	}
}

static void what_is_there_is_said(void **state)
{
	struct tsi_contents c;

	(void)state;
	tree_folder("empty");
	c = look("empty", 0);
	assert_says(&c, "no files");
	tree_put("deep/a/b/2.parquet", "");
	tree_put("deep/a/b/1.parquet", "");
	tree_put("deep/a/b/0.csv", "");
	c = look("deep", 3);
	assert_says(&c, "2 Parquet files (1.parquet, ...)");
	c = look("deep", 1);
	assert_says(&c, "folders alone");
	assert_int_equal(c.folders, 1);
	tree_put("odd/a\nb", "");
	c = look("odd", 0);
	assert_says(&c, "1 file (a\\nb)");
	tree_put("images/1.jpg", "ok");
	tree_put("images/2.WEBP", "ok");
	c = look("images", 0);
	assert_says(&c, "2 images");
	assert_false(tsi_contents_look(AT_FDCWD, "/nowhere", 0, &c));
	assert_int_equal(c.files + c.folders, 0);
}

/* The message that a tree with such a class is refused with. */
static const char *refusal(void)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_null(strstr(tsock_errmsg(), "remove"));
	assert_non_null(strstr(tsock_errmsg(), "have no images"));
	return tsock_errmsg();
}

static void a_class_without_images_is_described(void **state)
{
	(void)state;
	tree_put("cat/1.jpg", "ok");
	tree_folder("dog");
	assert_non_null(strstr(refusal(), "1 of 2 classes"));
	assert_non_null(strstr(refusal(), "dog holds no files; --allow-empty"));
	tree_put("data/train-0.parquet", "");
	assert_non_null(strstr(refusal(), "data holds 1 Parquet file "
					  "(train-0.parquet), dog holds"));
	assert_non_null(
		strstr(refusal(), "python -m tsock.index DIR train.table"));
	tree_put("data/shard.tar", "");
	tree_put("data/shard1.tar", "");
	assert_non_null(strstr(refusal(), "--dataset webdataset --root "));
	assert_non_null(strstr(refusal(), "/tree/data"));
	tree_folder("snapshots");
	assert_non_null(strstr(refusal(), "Hugging Face"));
}

static void classes_without_images_are_allowed_where_asked(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	o.cache_dir = tree_cache;
	o.allow_empty = true;
	tree_put("a/1.jpg", "ok");
	tree_folder("b");
	tree_put("c/1.jpg", "ok");
	for (unsigned i = 0; i < 2; i++) {
		x = tree_open(o);
		assert_int_equal(tsi_index_cached(x), i);
		assert_int_equal(tsi_index_classes(x), 3);
		assert_int_equal(tsi_index_count(x), 2);
		assert_int_equal(tsi_index_label(x, 1), 2);
		tsi_index_close(x);
	}
	/* A cached scan with empty classes isn't used without the option. */
	o.allow_empty = false;
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b holds no files"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_container_is_known_by_its_name),
		TEST(a_file_whose_name_says_nothing_is_known_by_its_first_bytes),
		TEST(what_is_there_is_said),
		TEST(a_class_without_images_is_described),
		TEST(classes_without_images_are_allowed_where_asked),
	};

	return cmocka_run_group_tests_name("contents", tests, NULL, NULL) != 0;
}
