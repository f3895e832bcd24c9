/* SPDX-License-Identifier: MIT */
/*
 * test_rows.c - data sets that lie in files as arrays: how their heads and
 * schemas are read, where rows end, and what tells two of them apart.
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
#include <fcntl.h>
#include <sys/stat.h>

#include "data/format.h"
#include "data/rows/npy.h"
#include "data/rows/rows.h"
#include "data/rows/schema.h"
#include "data/rows/zip.h"
#include "test/lib/old_file.h"
#include "test/lib/rows_gen.h"
#include "tsock/tsock.h"

static char folder[64];
static struct tsi_root root;
static struct tsi_rows *rows;
static struct tsi_table table;
static struct rows_gen gen;

static int make(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/tsock-rows-XXXXXX");
	tsi_root_init(&root);
	gen.len = 0;
	rows = NULL;
	table = (struct tsi_table){ .block = NULL };
	return !mkdtemp(folder) || tsi_root_open(&root, folder) ||
	       tsi_rows_create(&root, &rows);
}

static int clear(void **state)
{
	char command[128];

	(void)state;
	tsi_rows_destroy(rows);
	tsi_table_clear(&table);
	tsi_root_close(&root);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void put(const char *name, const void *bytes, size_t n)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_true(old_file_write(path, bytes, n));
}

/* The file gen, mapped. */
static unsigned map(const char *name)
{
	unsigned file;

	put(name, gen.bytes, gen.len);
	assert_int_equal(tsi_rows_map(rows, name, &file), 0);
	return file;
}

static void said(const char *text)
{
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

/* ---- --schema ---- */

static void a_schema_says_where_each_field_lies(void **state)
{
	struct tsi_rows_schema s;

	(void)state;
	assert_int_equal(tsi_rows_schema_read(" label : int32 , _:uint8[3], "
					      "x:float16[2, 5],b:bool",
					      &s),
			 0);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.bytes, 4 + 3 + 20 + 1);
	assert_string_equal(s.field[0].name, "label");
	assert_int_equal(s.field[0].dtype, TSOCK_I32);
	assert_int_equal(s.field[0].ndim, 0);
	assert_int_equal(s.at[1], 4);
	assert_string_equal(s.field[2].name, "x");
	assert_int_equal(s.field[2].dtype, TSOCK_F16);
	assert_int_equal(s.field[2].ndim, 2);
	assert_int_equal(s.field[2].shape[1], 5);
	assert_int_equal(s.at[2], 7);
	assert_int_equal(s.at[3], 27);
	assert_int_equal(tsi_rows_schema_read("uint16[1024]", &s), 0);
	assert_string_equal(s.field[0].name, "");
	assert_int_equal(s.bytes, 2048);
}

static void a_schema_that_is_none_is_refused_where_it_is_wrong(void **state)
{
	static const char *const texts[][2] = {
		{ "", "at \"\": a dtype is wanted" },
		{ "a:", "at \"\": a dtype is wanted" },
		{ "a:int33", "at \"int33\": a dtype" },
		{ ":int32", "1 to 31 letters" },
		{ "a_name_that_has_32_letters_in_it:int8", "1 to 31 letters" },
		{ "a:int8 b:int8", "at \"b:int8\": a ','" },
		{ "a:int8,", "at \"\": a dtype" },
		{ "a:int8[0]", "1 or more" },
		{ "a:int8[-1]", "1 or more" },
		{ "a:int8[]", "1 or more" },
		{ "a:int8[1", "']' is missing" },
		{ "a:int8[1,2,3,4,5]", "four dimensions" },
		{ "a:int8,a:int8", "comes twice" },
		{ "int8,int8", "need names" },
		{ "index:int64", "every stream" },
		{ "a:int64[268435457]", "2 GiB" },
		{ "a:int8[65536,65536,65536,65536]", "2 GiB" },
		{ "a:int8[2147483648],b:int8", "2 GiB" },
		{ "a:int8[18446744073709551617]", "1 or more" },
	};
	struct tsi_rows_schema s;
	char many[400] = "_:int8";

	(void)state;
	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
		if (tsi_rows_schema_read(texts[k][0], &s) != TSOCK_EARG)
			fail_msg("'%s' is taken", texts[k][0]);
		said(texts[k][1]);
	}
	for (unsigned k = 1; k < TSI_ROWS_FIELDS; k++)
		strcat(many, ",_:int8");
	assert_int_equal(tsi_rows_schema_read(many, &s), 0);
	strcat(many, ",_:int8");
	assert_int_equal(tsi_rows_schema_read(many, &s), TSOCK_EARG);
	said("too many fields");
}

/* ---- .npy ---- */

static int read_npy(unsigned file, uint64_t len, struct tsi_npy *out)
{
	return tsi_npy_read(
		rows,
		&(struct tsi_npy_place){
			.file = file, .at = 0, .len = len, .name = "x" },
		out);
}

static void heads_of_each_version_are_read(void **state)
{
	struct tsi_npy a;

	(void)state;
	for (unsigned version = 1; version <= 3; version++) {
		unsigned file;

		gen.len = 0;
		rows_gen_npy(&gen, version, "<f4", "(3, 2)");
		assert_int_equal(gen.len % 64, 0);
		rows_gen_put(&gen, "0123456789abcdefghijklmn", 24);
		file = map("a.npy");
		assert_int_equal(read_npy(file, gen.len, &a), 0);
		assert_int_equal(a.dtype, TSOCK_F32);
		assert_int_equal(a.ndim, 2);
		assert_int_equal(a.shape[0], 3);
		assert_int_equal(a.shape[1], 2);
		assert_int_equal(a.at, gen.len - 24);
		/* Its last byte is behind what it may have. */
		assert_int_equal(read_npy(file, gen.len - 1, &a), TSOCK_EDATA);
		said("x is truncated: its values are 24 bytes");
	}
	gen.bytes[6] = 4;
	assert_int_equal(read_npy(map("a.npy"), gen.len, &a), TSOCK_EDATA);
	said("version");
}

static void is_no_array(const char *descr, const char *shape, const char *why)
{
	struct tsi_npy a;

	gen.len = 0;
	rows_gen_npy(&gen, 1, descr, shape);
	rows_gen_number(&gen, 0, 64);
	if (read_npy(map("a.npy"), gen.len, &a) != TSOCK_EDATA)
		fail_msg("%s %s is taken", descr, shape);
	said(why);
}

static void heads_that_say_what_can_not_be_are_refused(void **state)
{
	(void)state;
	is_no_array(">i4", "(2,)", "dtype >i4");
	is_no_array("<U3", "(2,)", "dtype <U3");
	is_no_array("|O", "(2,)", "dtype |O");
	is_no_array("<i4", "(2", "isn't one of an array");
	is_no_array("<i4", "2", "no shape");
	is_no_array("<i4", "(-2,)", "isn't one of an array");
	is_no_array("<i4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "isn't one of");
	/* Bytes that would be 8, without what doesn't fit 64 bits. */
	is_no_array("<i8", "(1, 2305843009213693953)", "isn't one of");
	is_no_array("<i8", "(4294967296, 4294967296)", "isn't one of");
	is_no_array("|u1", "(576460752303423488,)", "truncated");
	is_no_array("<i8", "(9,)", "its values are 72 bytes");
}

/* ---- zip files ---- */

struct seen {
	unsigned n;
	struct tsi_zip_member m[4];
};

static int note(void *arg, const struct tsi_zip_member *m)
{
	struct seen *s = arg;

	if (s->n < 4)
		s->m[s->n] = *m;
	s->n++;
	return 0;
}

static struct rows_gen one, two;

static unsigned map_zip(bool wide)
{
	struct rows_gen_member m[2] = { { "a.npy", &one, 0 },
					{ "b/c.npy", &two, 0 } };

	one.len = two.len = gen.len = 0;
	rows_gen_put(&one, "first", 5);
	rows_gen_put(&two, "the second", 10);
	rows_gen_zip(&gen, m, 2, wide);
	return map("a.npz");
}

static void members_are_found_by_either_directory(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		unsigned file = map_zip(wide);
		struct seen s = { 0 };

		assert_int_equal(tsi_zip_each(rows, file, note, &s), 0);
		assert_int_equal(s.n, 2);
		assert_string_equal(s.m[0].name, "a.npy");
		assert_string_equal(s.m[1].name, "b/c.npy");
		assert_int_equal(s.m[0].len, 5);
		assert_int_equal(s.m[1].len, 10);
		assert_memory_equal(gen.bytes + s.m[0].at, "first", 5);
		assert_memory_equal(gen.bytes + s.m[1].at, "the second", 10);
	}
}

static void is_no_zip(const char *why)
{
	struct seen s = { 0 };

	assert_int_equal(tsi_zip_each(rows, map("a.npz"), note, &s),
			 TSOCK_EDATA);
	said(why);
}

/* Where the directory's first entry and its end are: the ends have 22 bytes. */
static uint8_t *end_of(void)
{
	return gen.bytes + gen.len - 22;
}

static uint8_t *entry_of(void)
{
	uint32_t at;

	memcpy(&at, end_of() + 16, 4);
	return gen.bytes + at;
}

static void zip_files_that_are_damaged_or_compressed_are_refused(void **state)
{
	uint64_t most = UINT64_C(1) << 60;

	(void)state;
	map_zip(false);
	entry_of()[10] = 8;
	is_no_zip("compressed");
	map_zip(false);
	entry_of()[0]++;
	is_no_zip("directory is damaged");
	map_zip(false);
	entry_of()[42]++;
	is_no_zip("no member lies where it says");
	map_zip(false);
	entry_of()[24 + 2] = 9;
	is_no_zip("a member ends behind it");
	map_zip(false);
	entry_of()[28] = 200;
	is_no_zip("name is too long");
	map_zip(false);
	gen.len--;
	is_no_zip("no directory at its end");
	/* The directory says more than there is. */
	map_zip(false);
	end_of()[10] = 3;
	is_no_zip("truncated");
	map_zip(false);
	end_of()[11] = 4; /* and 2 + 1024 are too many */
	is_no_zip("more members");
	map_zip(true);
	memcpy(end_of() - 20 - 56 + 32, &most, 8);
	is_no_zip("more members");
	map_zip(true);
	memcpy(end_of() - 20 + 8, &most, 8);
	is_no_zip("truncated");
}

/* ---- where rows end ---- */

static void a_part_ends_with_its_last_row_s_last_byte(void **state)
{
	const struct tsock_field f = {
		.name = "x", .dtype = TSOCK_U8, .ndim = 1, .shape = { 4 }
	};
	const struct tsi_columns *c;
	uint8_t is[4];
	unsigned column, file;

	(void)state;
	rows_gen_put(&gen, "0123456789", 10);
	file = map("x");
	/* Rows that begin every 3 bytes, and share one with the next. */
	assert_int_equal(tsi_rows_field(rows, &f, 3, &column), 0);
	assert_int_equal(tsi_rows_part(rows, column, file, 0, 4), TSOCK_EDATA);
	said("4 rows of 3 bytes from byte 0");
	assert_int_equal(tsi_rows_part(rows, column, file, 7, 1), TSOCK_EDATA);
	assert_int_equal(tsi_rows_part(rows, column, file, 11, 1), TSOCK_EDATA);
	assert_int_equal(tsi_rows_part(rows, column, file, UINT64_MAX, 1),
			 TSOCK_EDATA);
	assert_int_equal(tsi_rows_part(rows, column, file, 0, UINT64_MAX),
			 TSOCK_EDATA);
	assert_int_equal(tsi_rows_part(rows, column, file, 99, 0), 0);
	assert_int_equal(tsi_rows_count(rows, column), 0);
	assert_int_equal(tsi_rows_part(rows, column, file, 0, 3), 0);
	assert_int_equal(tsi_rows_part(rows, column, file, 6, 1), 0);
	assert_int_equal(tsi_rows_part(rows, column, file, 1, 2), 0);
	assert_int_equal(tsi_rows_count(rows, column), 6);
	assert_int_equal(tsi_rows_finish(rows, &table), 0);
	c = tsi_table_columns(&table);
	for (uint64_t i = 0; i < 6; i++) {
		static const uint64_t at[6] = { 0, 3, 6, 6, 1, 4 };
		struct tsi_location l;

		assert_int_equal(tsi_columns_put(c, 0, i, is), 0);
		assert_memory_equal(is, gen.bytes + at[i], 4);
		tsi_rows_locate(&table, i, &l);
		assert_string_equal(l.file, "x");
		assert_int_equal(l.offset, at[i]);
		assert_int_equal(l.length, 4);
	}
}

static void chosen_rows_are_those_of_the_files(void **state)
{
	uint64_t chosen[] = { 4, 0, 4 }, again[] = { 1, 0 };
	const struct tsi_columns *c;
	uint64_t all, some;
	uint8_t is;

	(void)state;
	put("r", "abcdef", 6);
	assert_int_equal(tsi_format_scan(&tsi_format_records, &root,
					 &(struct tsi_format_opts){
						 .schema = "x:uint8" },
					 &table),
			 0);
	c = tsi_table_columns(&table);
	all = tsi_table_fingerprint(&table);
	assert_int_equal(tsi_table_choose(&table, chosen, 3), 0);
	assert_int_equal(tsi_table_count(&table), 3);
	for (uint64_t i = 0; i < 3; i++) {
		struct tsi_location l;

		assert_int_equal(tsi_columns_put(c, 0, i, &is), 0);
		assert_int_equal(is, "aea"[i == 1 ? 0 : 1]);
		tsi_rows_locate(&table, i, &l);
		assert_int_equal(l.offset, chosen[i]);
	}
	some = tsi_table_fingerprint(&table);
	assert_int_not_equal(some, all);
	assert_int_equal(tsi_table_choose(&table, again, 2), 0);
	assert_int_equal(tsi_columns_put(c, 0, 1, &is), 0);
	assert_int_equal(is, 'e');
	assert_int_not_equal(tsi_table_fingerprint(&table), some);
}

/* ---- what a data set is ---- */

static uint64_t fingerprint_of_records(void)
{
	uint64_t h;

	assert_int_equal(tsi_format_scan(&tsi_format_records, &root,
					 &(struct tsi_format_opts){
						 .schema = "x:uint8[2]" },
					 &table),
			 0);
	h = tsi_table_fingerprint(&table);
	tsi_table_clear(&table);
	table = (struct tsi_table){ .block = NULL };
	return h;
}

static void bytes_names_and_lengths_are_part_of_what_a_data_set_is(void **state)
{
	static uint8_t bytes[3 << 20];
	char from[160], to[160];
	uint64_t was, is;

	(void)state;
	put("a", bytes, sizeof(bytes));
	put("b", bytes, 2);
	was = fingerprint_of_records();
	assert_int_equal(fingerprint_of_records(), was);
	for (unsigned k = 0; k < 3; k++) {
		size_t at = k == 0 ? 0 : k == 1 ? sizeof(bytes) / 2 : 1;

		bytes[at] ^= 1;
		put("a", bytes, sizeof(bytes));
		is = fingerprint_of_records();
		assert_int_not_equal(is, was);
		was = is;
	}
	put("b", "ab", 2);
	is = fingerprint_of_records();
	assert_int_not_equal(is, was);
	put("b", "abab", 4);
	assert_int_not_equal(fingerprint_of_records(), is);
	was = fingerprint_of_records();
	snprintf(from, sizeof(from), "%s/b", folder);
	snprintf(to, sizeof(to), "%s/c", folder);
	assert_int_equal(rename(from, to), 0);
	assert_int_not_equal(fingerprint_of_records(), was);
}

static void a_label_of_no_class_is_refused(void **state)
{
	static const int32_t labels[] = { 1, 1001 };
	struct tsi_format_opts o = { .threads = 1 };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		gen.len = 0;
		rows_gen_pickle_begin(&gen);
		rows_gen_pickle_bytes(&gen, "data", 1, 3072, 7);
		rows_gen_pickle_numbers(&gen, "labels", &labels[k], 1);
		rows_gen_pickle_end(&gen);
		put("train_data_batch_1", gen.bytes, gen.len);
		assert_int_equal(tsi_format_scan(&tsi_format_imagenet32, &root,
						 &o, &table),
				 k ? TSOCK_EDATA : 0);
		tsi_table_clear(&table);
		table = (struct tsi_table){ .block = NULL };
	}
	said("is of class 1000, and there are 1000 classes");
	/* The same number as a long one: the least that 64 bits have. */
	gen.len = 0;
	rows_gen_pickle_begin(&gen);
	rows_gen_pickle_bytes(&gen, "data", 1, 3072, 7);
	rows_gen_put(&gen, "U\6labels](\x8a\x08", 12);
	rows_gen_number(&gen, UINT64_C(1) << 63, 8);
	rows_gen_put(&gen, "e", 1);
	rows_gen_pickle_end(&gen);
	put("train_data_batch_1", gen.bytes, gen.len);
	assert_int_equal(
		tsi_format_scan(&tsi_format_imagenet32, &root, &o, &table),
		TSOCK_EDATA);
	said("is of class 9223372036854775807");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_schema_says_where_each_field_lies),
		TEST(a_schema_that_is_none_is_refused_where_it_is_wrong),
		TEST(heads_of_each_version_are_read),
		TEST(heads_that_say_what_can_not_be_are_refused),
		TEST(members_are_found_by_either_directory),
		TEST(zip_files_that_are_damaged_or_compressed_are_refused),
		TEST(a_part_ends_with_its_last_row_s_last_byte),
		TEST(chosen_rows_are_those_of_the_files),
		TEST(bytes_names_and_lengths_are_part_of_what_a_data_set_is),
		TEST(a_label_of_no_class_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
