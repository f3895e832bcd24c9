/* SPDX-License-Identifier: MIT */
/*
 * test_labels_arrays.c - fields of .npy files beside samples, in tar files and
 * in folders.
 */
#include "data/labels/labels.h"

#include <stdio.h>
#include <string.h>

#include "data/format.h"
#include "data/index.h"
#include "data/labels/array.h"
#include "test/lib/rows_gen.h"
#include "test/lib/shard_fixture.h"
#include "test/lib/worker_fixture.h"

static struct rows_gen gen;
static char given[1200];

/* An array of the values from first on. */
static void make(const char *descr, const char *shape, float first, unsigned n)
{
	gen.len = 0;
	rows_gen_npy(&gen, 1, descr, shape);
	for (unsigned k = 0; k < n; k++) {
		float v = first + (float)k;

		rows_gen_put(&gen, &v, sizeof(v));
	}
}

/* Add what was made, without its last bytes. */
static void add(struct tar_gen *t, const char *name, size_t without)
{
	tar_gen_file(t, name, gen.bytes, gen.len - without);
}

static int open_with(const struct tsi_format *f, const char *how,
		     struct tsi_index **x)
{
	struct tsi_index_opts o = { .format = f,
				    .root = worker_root,
				    .labels = given,
				    .cache_dir = "",
				    .threads = 2 };

	snprintf(given, sizeof(given), "%s:%s", worker_root, how);
	return tsi_index_open(&o, x);
}

static struct tsi_index *open_index(const struct tsi_format *f, const char *how)
{
	struct tsi_index *x = NULL;

	if (open_with(f, how, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static void refuse(const char *how, int err, const char *what)
{
	struct tsi_index *x = NULL;

	assert_int_equal(open_with(&tsi_format_webdataset_bare, how, &x), err);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static void expect(const struct tsi_index *x, unsigned k, uint64_t i,
		   float first, unsigned n)
{
	float v[16];

	assert_int_equal(tsi_columns_put(tsi_index_columns(x), k, i, v), 0);
	for (unsigned at = 0; at < n; at++)
		assert_true(v[at] == first + (float)at);
}

static void put_sample(struct tar_gen *t, const char *key, float first)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.png", key);
	shard_add(t, name);
	snprintf(name, sizeof(name), "%s.emb.npy", key);
	make("<f4", "(2, 3)", first, 6);
	add(t, name, 0);
	snprintf(name, sizeof(name), "%s.npy", key);
	make("<f4", "()", -first, 1);
	add(t, name, 0);
}

static void arrays_in_tar_files_are_fields(void **state)
{
	const struct tsock_field *f;
	struct tar_gen t = { 0 };
	struct tsi_index *x;

	(void)state;
	put_sample(&t, "x/0", 10);
	put_sample(&t, "x/1", 20);
	tar_gen_end(&t);
	shard_write_tar(&t, "0.tar");
	put_sample(&t, "x/0", 30);
	tar_gen_end(&t);
	shard_write_tar(&t, "1.tar");
	x = open_index(&tsi_format_webdataset_bare, "fields=.emb.npy+.npy");
	f = tsi_columns_field(tsi_index_columns(x), 0);
	assert_string_equal(f->name, "emb");
	assert_int_equal(f->dtype, TSOCK_F32);
	assert_int_equal(f->ndim, 2);
	assert_int_equal(f->shape[0], 2);
	assert_int_equal(f->shape[1], 3);
	f = tsi_columns_field(tsi_index_columns(x), 1);
	assert_string_equal(f->name, "npy");
	assert_int_equal(f->ndim, 0);
	for (uint64_t i = 0; i < 3; i++) {
		expect(x, 0, i, 10 * (float)(i + 1), 6);
		expect(x, 1, i, -10 * (float)(i + 1), 1);
	}
	tsi_index_close(x);
	refuse("label=.npy", TSOCK_EARG, "arrays are fields: fields=.npy");
}

static void arrays_beside_images_are_fields(void **state)
{
	struct tsi_index *x;

	(void)state;
	worker_put_image("0.png");
	worker_put_image("1.png");
	make("<f4", "(4,)", 1, 4);
	worker_put("0.emb.npy", gen.bytes, gen.len);
	make("<f4", "(4,)", 5, 4);
	worker_put("1.emb.npy", gen.bytes, gen.len);
	x = open_index(&tsi_format_images, "fields=.emb.npy");
	expect(x, 0, 0, 1, 4);
	expect(x, 0, 1, 5, 4);
	tsi_index_close(x);
}

/* The array of the second sample is what was made. */
static void refuse_made(const char *what)
{
	struct rows_gen made = gen;
	struct tar_gen t = { 0 };

	shard_add(&t, "0.png");
	make("<f4", "(2,)", 0, 2);
	add(&t, "0.emb.npy", 0);
	gen = made;
	shard_add(&t, "1.png");
	if (gen.len)
		add(&t, "1.emb.npy", 0);
	tar_gen_end(&t);
	shard_write_tar(&t, "0.tar");
	refuse("fields=.emb.npy", TSOCK_EDATA, what);
}

static void what_is_no_array_names_tar_file_and_member(void **state)
{
	(void)state;
	make("<f4", "(2,)", 0, 2);
	gen.bytes[0] = 'x';
	refuse_made("0.tar: 1.emb.npy is not an array that NumPy's");
	make("<f4", "(2,)", 0, 2);
	gen.len -= 1;
	refuse_made("0.tar: 1.emb.npy is truncated: its values are 8 bytes");
	gen.len = 20;
	refuse_made("0.tar: 1.emb.npy is truncated: it ends within its head");
	make("|O", "(2,)", 0, 2);
	refuse_made("0.tar: 1.emb.npy: values of dtype |O are not served");
	gen.len = 0;
	refuse_made("0.tar: the sample 1 has no file NAME.emb.npy");
}

static void all_arrays_have_one_dtype_and_shape(void **state)
{
	(void)state;
	make("<f4", "(3,)", 0, 3);
	refuse_made("float32 [3]");
	refuse_made("float32 [2]");
	make("<i4", "(2,)", 0, 2);
	refuse_made("int32 [2]");
	make("<f4", "(2, 1)", 0, 2);
	refuse_made("float32 [2, 1]");
}

static void arrays_that_can_not_be_a_field_are_refused(void **state)
{
	struct tsi_labels_array *a = NULL;

	(void)state;
	assert_int_equal(tsi_labels_array_create(2, &a), 0);
	make("<f4", "(0, 3)", 0, 0);
	assert_int_equal(tsi_labels_array_take(a, 0, "x", gen.bytes, gen.len),
			 TSOCK_EDATA);
	make("<f4", "(1, 1, 1, 1, 1)", 0, 1);
	assert_int_equal(tsi_labels_array_take(a, 0, "x", gen.bytes, gen.len),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "4 dimensions at most"));
	assert_false(tsi_labels_array_has(a, 0));
	tsi_labels_array_destroy(a);
	/* More than any machine has. */
	assert_int_equal(tsi_labels_array_create(1 << 28, &a), 0);
	make("<f4", "(15000,)", 0, 15000);
	assert_int_equal(tsi_labels_array_take(a, 0, "x", gen.bytes, gen.len),
			 TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "tsock.index()"));
	tsi_labels_array_destroy(a);
}

static void is_called(const char *ending, const char *want)
{
	size_t len;
	const char *name = tsi_labels_array_name(ending, &len);

	assert_true(tsi_labels_array_is(ending));
	assert_int_equal(len, strlen(want));
	assert_memory_equal(name, want, len);
}

static void fields_are_called_by_the_word_before_npy(void **state)
{
	(void)state;
	is_called(".npy", "npy");
	is_called(".emb.npy", "emb");
	is_called(".img.emb.npy", "emb");
	assert_false(tsi_labels_array_is(".txt"));
	assert_false(tsi_labels_array_is("npy"));
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, shard_setup, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(arrays_in_tar_files_are_fields),
		TEST(arrays_beside_images_are_fields),
		TEST(what_is_no_array_names_tar_file_and_member),
		TEST(all_arrays_have_one_dtype_and_shape),
		TEST(fields_are_called_by_the_word_before_npy),
		TEST(arrays_that_can_not_be_a_field_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
