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

#include "data/format.h"
#include "test/lib/table_gen.h"
#include "tsock/tsock.h"

static struct table_gen gen;
static struct tsi_table table;
static struct tsi_root root;
static char folder[] = "/tmp/tsock-table-XXXXXX", path[64];

static int make(void **state)
{
	(void)state;
	table_gen_make(&gen);
	table = (struct tsi_table){ .block = NULL };
	tsi_root_init(&root);
	return 0;
}

static int clear(void **state)
{
	(void)state;
	tsi_table_clear(&table);
	tsi_root_close(&root);
	return 0;
}

static int scan(void)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(gen.bytes, 1, gen.len, f), gen.len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(tsi_format_open(&tsi_format_table, path, &root), 0);
	return tsi_format_scan(&tsi_format_table, &root, 1, &table);
}

/* The head has been changed, or an entry: the checksum fits. */
static void is_refused(const char *said)
{
	table_gen_sign(gen.bytes, gen.len);
	assert_int_not_equal(scan(), 0);
	if (!strstr(tsock_errmsg(), said))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), said);
}

static void has(uint64_t i, const char *key, int64_t label, float pose,
		const char *note)
{
	const struct tsi_columns *c = tsi_table_columns(&table);
	struct tsi_location at;
	float is[2];
	int64_t own;
	char text[8];

	tsi_format_locate(&tsi_format_table, &table, i, &at);
	assert_string_equal(at.member, key);
	assert_int_equal(tsi_format_label(&tsi_format_table, &table, i), label);
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
	assert_int_equal(scan(), 0);
	c = tsi_table_columns(&table);
	assert_int_equal(tsi_table_count(&table), 3);
	assert_int_equal(tsi_table_classes(&table), 2);
	assert_string_equal(tsi_table_class(&table, 1), "dog");
	assert_int_equal(tsi_columns_count(c), 2);
	assert_int_equal(tsi_columns_field(c, 1)->shape[0], 8);
	assert_int_equal(tsi_columns_field(c, 1)->flags, TSOCK_FIELD_TEXT);
	has(0, "one", 1, 1, "");
	has(1, "two", 0, 3, "ab");
	has(2, "three", 1, 5, "c");
	tsi_format_locate(&tsi_format_table, &table, 1, &at);
	assert_string_equal(at.path, "a.bin");
	assert_int_equal(at.offset, 4);
	assert_int_equal(at.length, 9);
}

static void chosen_rows_keep_their_values(void **state)
{
	uint64_t rows[] = { 2, 0 }, again[] = { 1 }, all, some;

	(void)state;
	assert_int_equal(scan(), 0);
	all = tsi_table_fingerprint(&table);
	assert_int_equal(tsi_table_choose(&table, rows, 2), 0);
	has(0, "three", 1, 5, "c");
	has(1, "one", 1, 1, "");
	some = tsi_table_fingerprint(&table);
	assert_int_not_equal(some, all);
	assert_int_equal(tsi_table_choose(&table, again, 1), 0);
	has(0, "one", 1, 1, "");
	assert_int_not_equal(tsi_table_fingerprint(&table), some);
}

static void a_label_s_value_is_part_of_what_the_table_is(void **state)
{
	uint64_t was;

	(void)state;
	assert_int_equal(scan(), 0);
	was = tsi_table_fingerprint(&table);
	clear(NULL);
	((int64_t *)table_gen_data(&gen, "label"))[1] = 1;
	assert_int_equal(scan(), 0);
	assert_int_not_equal(tsi_table_fingerprint(&table), was);
}

static void a_class_that_is_not_there_is_refused(void **state)
{
	(void)state;
	((int64_t *)table_gen_data(&gen, "label"))[2] = 2;
	is_refused("row 2 is of class 2, and there are 2 classes");
	((int64_t *)table_gen_data(&gen, "label"))[2] = -1;
	clear(NULL);
	is_refused("row 2 is of class -1");
}

static void a_file_that_is_not_there_is_refused(void **state)
{
	(void)state;
	((struct tsi_columnar_range *)table_gen_data(&gen, "image"))[1].file =
		2;
	is_refused("row 1 is in file 2, and there are 2 files");
}

static void a_text_without_an_end_is_refused(void **state)
{
	(void)state;
	((uint64_t *)table_gen_data(&gen, "note"))[1] = 2;
	is_refused("the column note has a text without an end");
}

static void more_texts_than_bytes_are_refused(void **state)
{
	(void)state;
	table_gen_find(&gen, "note")->count = UINT64_C(1) << 61;
	is_refused("the column note has fewer texts than it says");
}

static void a_shape_that_overflows_is_refused(void **state)
{
	struct tsi_columnar_entry *e = table_gen_find(&gen, "pose");

	(void)state;
	e->ndim = 4;
	for (unsigned i = 0; i < 4; i++)
		e->shape[i] = 1u << 30;
	is_refused("the column pose has no dtype and shape");
	clear(NULL);
	e->ndim = 5;
	is_refused("the column pose has no dtype and shape");
}

static void names_of_other_fields_are_refused(void **state)
{
	(void)state;
	strcpy(table_gen_find(&gen, "pose")->name, "index");
	is_refused("a column can't be called index");
}

static void a_column_that_comes_twice_is_refused(void **state)
{
	(void)state;
	strcpy(table_gen_find(&gen, "pose")->name, "note");
	is_refused("the column note comes twice");
}

#define on_a_table(test) cmocka_unit_test_setup_teardown(test, make, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_table(rows_have_their_files_classes_and_values),
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

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/table", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
