/* SPDX-License-Identifier: MIT */
/*
 * test_table_format.c - the format table: rows, their values, and tables that
 * can't be right.
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

#include "test/lib/table_fixture.h"
#include "tsock/tsock.h"

/* The head has been changed, or an entry: the checksum fits. */
static void is_refused(const char *said)
{
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	assert_int_not_equal(table_fixture_scan(), 0);
	if (!strstr(tsock_errmsg(), said))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), said);
}

static void has(uint64_t i, const char *key, int64_t label, float pose,
		const char *note)
{
	const struct tsi_columns *c = tsi_table_columns(&table_fixture_table);
	struct tsi_location at;
	float is[2];
	int64_t own;
	char text[8];

	tsi_format_locate(&tsi_format_table, &table_fixture_table, i, &at);
	assert_string_equal(at.member, key);
	assert_int_equal(
		tsi_format_label(&tsi_format_table, &table_fixture_table, i),
		label);
	tsi_columns_put_label(c, i, &own);
	assert_int_equal(own, label);
	tsi_columns_put(c, 0, i, is);
	assert_true(is[0] == pose && is[1] == pose + 1);
	memset(text, 'x', sizeof(text));
	tsi_columns_put(c, 1, i, text);
	assert_string_equal(text, note);
	/* Nothing is left of the sample before. */
	for (size_t k = strlen(note); k < sizeof(text); k++)
		assert_int_equal(text[k], 0);
}

static void rows_have_their_files_classes_and_values(void **state)
{
	const struct tsi_columns *c;
	struct tsi_location at;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	c = tsi_table_columns(&table_fixture_table);
	assert_int_equal(tsi_table_count(&table_fixture_table), 3);
	assert_int_equal(tsi_table_classes(&table_fixture_table), 2);
	assert_string_equal(tsi_table_class(&table_fixture_table, 1), "dog");
	assert_int_equal(tsi_columns_count(c), 6);
	assert_int_equal(tsi_columns_field(c, 1)->shape[0], 8);
	assert_int_equal(tsi_columns_field(c, 1)->flags, TSOCK_FIELD_TEXT);
	has(0, "one", 1, 1, "");
	has(1, "two", 0, 3, "ab");
	has(2, "three", 1, 5, "c");
	tsi_format_locate(&tsi_format_table, &table_fixture_table, 1, &at);
	assert_string_equal(at.file, "a.bin");
	assert_int_equal(at.offset, 4);
	assert_int_equal(at.length, 9);
}

static void labels_of_several_rows_are_those_of_each_one(void **state)
{
	uint64_t chosen[] = { 2, 1, 0, 1 };
	int64_t label[4];

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	tsi_format_labels(&tsi_format_table, &table_fixture_table, 1, 2, label);
	assert_int_equal(label[0], 0);
	assert_int_equal(label[1], 1);
	assert_int_equal(tsi_table_choose(&table_fixture_table, chosen, 4), 0);
	tsi_format_labels(&tsi_format_table, &table_fixture_table, 0, 4, label);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(label[k], chosen[k] != 1);
}

/* Field k's values and the field behind it, their number. */
static void has_ragged(unsigned k, uint64_t i, const void *is, size_t len,
		       int32_t count)
{
	const struct tsi_columns *c = tsi_table_columns(&table_fixture_table);
	uint8_t to[32], zero[32] = { 0 };
	void *field[TSI_COLUMNS + 1] = { NULL };
	int32_t n;

	assert_true(c->column[k].bytes <= sizeof(to));
	memset(to, 'x', sizeof(to));
	assert_int_equal(tsi_columns_put(c, k, i, to), 0);
	assert_memory_equal(to, is, len);
	assert_memory_equal(to + len, zero, c->column[k].bytes - len);
	field[k + 1] = &n;
	assert_int_equal(tsi_columns_put_rows(c, &i, 1, field), 0);
	assert_int_equal(n, count);
}

static void ragged_rows_have_zeros_behind_them_and_a_length(void **state)
{
	const struct tsock_field *f;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	f = tsi_columns_field(tsi_table_columns(&table_fixture_table), 2);
	assert_string_equal(f->name, "token");
	assert_int_equal(f->flags, TSOCK_FIELD_RAGGED);
	assert_int_equal(f->ndim, 1);
	assert_int_equal(f->shape[0], 3);
	assert_string_equal(f[0].name, "token");
	f = tsi_columns_field(tsi_table_columns(&table_fixture_table), 3);
	assert_string_equal(f->name, "token_length");
	assert_int_equal(f->dtype, TSOCK_I32);
	assert_int_equal(f->ndim, 0);
	f = tsi_columns_field(tsi_table_columns(&table_fixture_table), 4);
	assert_int_equal(f->ndim, 2);
	assert_int_equal(f->shape[0], 2);
	assert_int_equal(f->shape[1], 2);
	has_ragged(2, 0, (int64_t[]){ 7, 8, 9 }, 24, 3);
	has_ragged(2, 1, (int64_t[]){ 0 }, 0, 0);
	has_ragged(2, 2, (int64_t[]){ 10 }, 8, 1);
	has_ragged(4, 0, (float[]){ 0 }, 0, 0);
	has_ragged(4, 1, (float[]){ 1, 2, 3, 4 }, 16, 2);
	has_ragged(4, 2, (float[]){ 5, 6 }, 8, 1);
}

static void a_column_s_own_value_is_behind_its_shorter_rows(void **state)
{
	struct tsi_columnar_entry *e =
		table_gen_find(&table_fixture_gen, "token");
	const struct tsi_columns *c;
	int64_t pad = -100, to[3];
	uint64_t before;

	assert_int_equal(table_fixture_scan(), 0);
	before = tsi_table_columns(&table_fixture_table)->hash;
	table_fixture_clear(state);
	memcpy(e->pad, &pad, sizeof(pad));
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	assert_int_equal(table_fixture_scan(), 0);
	c = tsi_table_columns(&table_fixture_table);
	assert_true(c->hash != before);
	assert_int_equal(tsi_columns_put(c, 2, 0, to), 0);
	assert_memory_equal(to, ((int64_t[]){ 7, 8, 9 }), sizeof(to));
	assert_int_equal(tsi_columns_put(c, 2, 1, to), 0);
	assert_memory_equal(to, ((int64_t[]){ -100, -100, -100 }), sizeof(to));
	assert_int_equal(tsi_columns_put(c, 2, 2, to), 0);
	assert_memory_equal(to, ((int64_t[]){ 10, -100, -100 }), sizeof(to));
	has_ragged(4, 2, (float[]){ 5, 6 }, 8, 1);
}

static void ragged_rows_that_are_no_rows_are_refused(void **state)
{
	uint64_t *at = table_gen_data(&table_fixture_gen, "token");

	(void)state;
	at[1] = 5;
	is_refused("the column token has a row that ends before it begins");
	table_fixture_clear(NULL);
	at[1] = 3;
	at[3] = 3;
	is_refused("the column token has rows that are not all of it");
	table_fixture_clear(NULL);
	at[3] = 4;
	table_gen_find(&table_fixture_gen, "token")->count = UINT64_C(1) << 61;
	is_refused("the column token has fewer rows than it says");
	table_fixture_clear(NULL);
	table_gen_find(&table_fixture_gen, "token")->count = 3;
	table_gen_find(&table_fixture_gen, "token")->ndim = 4;
	is_refused("the column token has no dtype and shape");
}

static void a_ragged_row_that_is_too_long_is_refused(void **state)
{
	struct tsi_columnar_entry *e =
		table_gen_find(&table_fixture_gen, "token");
	const uint64_t n = 3 << 19;
	uint8_t *more;
	FILE *f;

	(void)state;
	/* Its rows are behind all others, and are zeros of 12 MiB. */
	e->offset = table_fixture_gen.len;
	e->bytes = (4 + n) * 8;
	table_fixture_gen.head->bytes = table_fixture_gen.len + e->bytes;
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	more = calloc(1, e->bytes);
	assert_non_null(more);
	memcpy(more, (uint64_t[]){ 0, 1, n, n }, 32);
	f = fopen(table_fixture_path, "w");
	assert_non_null(f);
	assert_int_equal(
		fwrite(table_fixture_gen.bytes, 1, table_fixture_gen.len, f),
		table_fixture_gen.len);
	assert_int_equal(fwrite(more, 1, e->bytes, f), e->bytes);
	assert_int_equal(fclose(f), 0);
	free(more);
	assert_int_equal(tsi_format_open(&tsi_format_table, table_fixture_path,
					 &table_fixture_root),
			 0);
	assert_int_not_equal(
		tsi_format_scan(&tsi_format_table, &table_fixture_root,
				&(struct tsi_format_opts){ .threads = 1 },
				&table_fixture_table),
		0);
	assert_non_null(strstr(tsock_errmsg(),
			       "row 1 has 1572863 values of 8 bytes in the "
			       "column token"));
	assert_non_null(strstr(tsock_errmsg(), "4 MiB at most"));
}

static void a_ragged_column_s_length_needs_its_name(void **state)
{
	(void)state;
	strcpy(table_gen_find(&table_fixture_gen, "pose")->name,
	       "token_length");
	is_refused("a column can't be called token_length");
	table_fixture_clear(NULL);
	strcpy(table_gen_find(&table_fixture_gen, "token_length")->name,
	       "pose");
	strcpy(table_gen_find(&table_fixture_gen, "token")->name,
	       "a-name-of-twenty-five-byte");
	is_refused("the name a-name-of-twenty-five-byte is too long");
}

static void a_table_without_images_is_one(void **state)
{
	struct tsi_samples samples;
	const struct tsi_format_opts o = { .threads = 1 };

	(void)state;
	strcpy(table_gen_find(&table_fixture_gen, "image")->name,
	       "files.stamp");
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	assert_int_equal(table_fixture_scan(), 0);
	assert_true(
		tsi_columns_imageless(tsi_table_columns(&table_fixture_table)));
	assert_int_equal(tsi_format_look(&tsi_format_table, table_fixture_path,
					 &o, &samples),
			 0);
	assert_true(samples.imageless);
	has(1, "two", 0, 3, "ab");
	table_fixture_clear(NULL);
	strcpy(table_gen_find(&table_fixture_gen, "files.stamp")->name,
	       "image");
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	assert_int_equal(table_fixture_scan(), 0);
	assert_int_equal(tsi_format_look(&tsi_format_table, table_fixture_path,
					 &o, &samples),
			 0);
	assert_false(samples.imageless);
}

/* What row i is called where names are asked for; NULL: by its file. */
static void is_called(bool named, uint64_t i, const char *want)
{
	struct tsi_location at;

	table_fixture_clear(NULL);
	table_fixture_named = named;
	table_gen_sign(table_fixture_gen.bytes, table_fixture_gen.len);
	assert_int_equal(table_fixture_scan(), 0);
	tsi_format_locate(&tsi_format_table, &table_fixture_table, i, &at);
	if (want)
		assert_string_equal(at.member, want);
	else
		assert_null(at.member);
}

static void rows_without_a_name_of_their_own_are_called_by_number(void **state)
{
	struct tsi_columnar_range *at =
		table_gen_data(&table_fixture_gen, "image");

	(void)state;
	is_called(true, 2, "three");
	strcpy(table_gen_find(&table_fixture_gen, "key")->name, "other");
	is_called(true, 2, "2");
	is_called(true, 0, "0");
	is_called(false, 2, NULL);
	/* Parts of a file each, and whole ones. */
	at[1].file = 0;
	is_called(true, 2, "2");
	at[2] = at[0];
	at[1].file = 1;
	is_called(true, 2, NULL);
	strcpy(table_gen_find(&table_fixture_gen, "image")->name,
	       "files.stamp");
	is_called(true, 1, "1");
	is_called(false, 1, NULL);
}

static void chosen_rows_keep_their_values(void **state)
{
	uint64_t rows[] = { 2, 0 }, again[] = { 1 }, all, some;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	all = tsi_table_fingerprint(&table_fixture_table);
	assert_int_equal(tsi_table_choose(&table_fixture_table, rows, 2), 0);
	has(0, "three", 1, 5, "c");
	has(1, "one", 1, 1, "");
	some = tsi_table_fingerprint(&table_fixture_table);
	assert_int_not_equal(some, all);
	assert_int_equal(tsi_table_choose(&table_fixture_table, again, 1), 0);
	has(0, "one", 1, 1, "");
	assert_int_not_equal(tsi_table_fingerprint(&table_fixture_table), some);
}

static void a_label_s_value_is_part_of_what_the_table_is(void **state)
{
	uint64_t was;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	was = tsi_table_fingerprint(&table_fixture_table);
	table_fixture_clear(NULL);
	((int64_t *)table_gen_data(&table_fixture_gen, "label"))[1] = 1;
	assert_int_equal(table_fixture_scan(), 0);
	assert_int_not_equal(tsi_table_fingerprint(&table_fixture_table), was);
}

static void a_class_that_is_not_there_is_refused(void **state)
{
	(void)state;
	((int64_t *)table_gen_data(&table_fixture_gen, "label"))[2] = 2;
	is_refused("row 2 is of class 2, and there are 2 classes");
	((int64_t *)table_gen_data(&table_fixture_gen, "label"))[2] = -1;
	table_fixture_clear(NULL);
	is_refused("row 2 is of class -1");
}

static void a_file_that_is_not_there_is_refused(void **state)
{
	(void)state;
	((struct tsi_columnar_range *)table_gen_data(&table_fixture_gen,
						     "image"))[1]
		.file = 2;
	is_refused("row 1 is in file 2, and there are 2 files");
}

static void a_text_without_an_end_is_refused(void **state)
{
	(void)state;
	((uint64_t *)table_gen_data(&table_fixture_gen, "note"))[1] = 2;
	is_refused("the column note has a text without an end");
}

static void more_texts_than_bytes_are_refused(void **state)
{
	(void)state;
	table_gen_find(&table_fixture_gen, "note")->count = UINT64_C(1) << 61;
	is_refused("the column note has fewer texts than it says");
}

static void a_shape_that_overflows_is_refused(void **state)
{
	struct tsi_columnar_entry *e =
		table_gen_find(&table_fixture_gen, "pose");

	(void)state;
	e->ndim = 4;
	for (unsigned i = 0; i < 4; i++)
		e->shape[i] = 1u << 30;
	is_refused("the column pose has no dtype and shape");
	table_fixture_clear(NULL);
	e->ndim = 5;
	is_refused("the column pose has no dtype and shape");
}

static void names_of_other_fields_are_refused(void **state)
{
	(void)state;
	strcpy(table_gen_find(&table_fixture_gen, "pose")->name, "index");
	is_refused("a column can't be called index");
}

static void a_column_that_comes_twice_is_refused(void **state)
{
	(void)state;
	strcpy(table_gen_find(&table_fixture_gen, "pose")->name, "note");
	is_refused("the column note comes twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_table(rows_have_their_files_classes_and_values),
		on_a_table(labels_of_several_rows_are_those_of_each_one),
		on_a_table(ragged_rows_have_zeros_behind_them_and_a_length),
		on_a_table(a_column_s_own_value_is_behind_its_shorter_rows),
		on_a_table(ragged_rows_that_are_no_rows_are_refused),
		on_a_table(a_ragged_row_that_is_too_long_is_refused),
		on_a_table(a_ragged_column_s_length_needs_its_name),
		on_a_table(a_table_without_images_is_one),
		on_a_table(
			rows_without_a_name_of_their_own_are_called_by_number),
		on_a_table(chosen_rows_keep_their_values),
		on_a_table(a_label_s_value_is_part_of_what_the_table_is),
		on_a_table(a_class_that_is_not_there_is_refused),
		on_a_table(a_file_that_is_not_there_is_refused),
		on_a_table(a_text_without_an_end_is_refused),
		on_a_table(more_texts_than_bytes_are_refused),
		on_a_table(a_shape_that_overflows_is_refused),
		on_a_table(names_of_other_fields_are_refused),
		on_a_table(a_column_that_comes_twice_is_refused),
	};
	int failed;

	if (table_fixture_begin())
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	table_fixture_end();
	return failed;
}
