/* SPDX-License-Identifier: MIT */
/*
 * test_columns.c - rows of all fields are copied at once, and those of fields
 * in the same records together: the bytes are those of one field after another.
 */
#include "data/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define FIELDS (TSI_COLUMNS + 1)
#define LABEL TSI_COLUMNS
#define ROWS 64
#define MOST 8 /* bytes of a field */

/* Records of 11 bytes, of three files that begin at these rows. */
#define RECORD 11
static const uint64_t first[] = { 0, 40, 41 };
static uint8_t records[ROWS * RECORD];

static struct tsi_columns columns;
static struct tsi_column_part parts[FIELDS][3];
static uint8_t one[FIELDS][ROWS * MOST], all[FIELDS][ROWS * MOST];
static void *to[FIELDS];

static struct tsi_column *column_of(unsigned k)
{
	return k == LABEL ? &columns.label : &columns.column[k];
}

static int begin(void **state)
{
	(void)state;
	for (unsigned k = 0; k < sizeof(records); k++)
		records[k] = (uint8_t)(k * 7 + k / 256);
	memset(&columns, 0, sizeof(columns));
	memset(to, 0, sizeof(to));
	memset(one, 0, sizeof(one));
	memset(all, 0, sizeof(all));
	return 0;
}

/* Field k of so many bytes, which lie from byte at of a record on. */
static void add(unsigned k, size_t bytes, size_t at, size_t stride,
		unsigned files)
{
	struct tsi_column *c = column_of(k);

	c->bytes = bytes;
	c->stride = stride;
	c->part = parts[k];
	c->parts = files;
	for (unsigned p = 0; p < files; p++)
		parts[k][p] = (struct tsi_column_part){
			first[p], records + first[p] * stride + at
		};
	columns.n += k != LABEL;
	to[k] = all[k];
}

static void assert_behind(unsigned k, unsigned behind, size_t at)
{
	assert_int_equal(column_of(k)->behind, behind);
	assert_int_equal(column_of(k)->at, at);
}

/* Rows in another order, some of them twice. */
static void assert_same_as_one_by_one(unsigned n)
{
	uint64_t row[ROWS];

	for (unsigned i = 0; i < n; i++)
		row[i] = (i + i / 9) * 37 % ROWS;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < columns.n; k++)
			if (to[k])
				tsi_columns_put(
					&columns, k, row[i],
					one[k] + i * column_of(k)->bytes);
		if (to[LABEL])
			tsi_columns_put_label(&columns, row[i],
					      one[LABEL] +
						      i * columns.label.bytes);
	}
	assert_int_equal(tsi_columns_put_rows(&columns, row, n, to), 0);
	assert_memory_equal(all, one, sizeof(all));
}

static void fields_of_the_same_records_are_copied_together(void **state)
{
	static const unsigned some[] = { 1, 2, 15, 17, ROWS };

	(void)state;
	for (unsigned k = 0; k < sizeof(some) / sizeof(some[0]); k++) {
		begin(NULL);
		add(0, 3, 1, RECORD, 3);
		add(1, 4, 5, RECORD, 3);
		add(2, 2, 9, RECORD, 3);
		add(LABEL, 1, 4, RECORD, 3);
		tsi_columns_join(&columns);
		assert_behind(0, 0, 0);
		assert_behind(1, 1, 4);
		assert_behind(2, 1, 8);
		assert_behind(LABEL, 1, 3);
		assert_same_as_one_by_one(some[k]);
	}
}

static void the_label_may_come_first(void **state)
{
	(void)state;
	add(0, 3, 4, RECORD, 3);
	add(1, 4, 7, RECORD, 3);
	add(LABEL, 4, 0, RECORD, 3);
	tsi_columns_join(&columns);
	assert_behind(0, LABEL + 1, 4);
	assert_behind(1, LABEL + 1, 7);
	assert_behind(LABEL, 0, 0);
	assert_same_as_one_by_one(ROWS);
}

static void what_isnt_wanted_isnt_written(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		begin(NULL);
		add(0, 3, 4, RECORD, 3);
		add(1, 4, 7, RECORD, 3);
		tsi_columns_join(&columns);
		to[k] = NULL;
		assert_same_as_one_by_one(ROWS);
		for (unsigned i = 0; i < sizeof(all[k]); i++)
			assert_int_equal(all[k][i], 0);
	}
}

static void fields_of_other_records_are_copied_by_themselves(void **state)
{
	static const uint32_t narrow[ROWS] = { 5, 6, 7, 8, 9 };

	(void)state;
	add(0, 3, 1, RECORD, 3);
	add(1, 4, 5, RECORD, 2);     /* of fewer files */
	add(2, 4, 0, RECORD - 1, 3); /* records of another size */
	add(3, 3, 1, RECORD, 3);     /* the first field's bytes again */
	add(4, 3, 2, RECORD, 3);
	parts[4][1].data += RECORD; /* not in the same row everywhere */
	columns.label = (struct tsi_column){ .bytes = 8,
					     .data = (const uint8_t *)narrow,
					     .narrow = true };
	to[LABEL] = all[LABEL];
	tsi_columns_join(&columns);
	for (unsigned k = 0; k < FIELDS; k++)
		assert_behind(k, 0, 0);
	assert_same_as_one_by_one(ROWS);
}

/* The third one's are behind the second's, and too far behind the first's. */
static void records_that_overlap_have_one_first_field(void **state)
{
	(void)state;
	add(0, 4, 0, 4, 1);
	add(1, 1, 3, 4, 1);
	add(2, 1, 5, 4, 1);
	tsi_columns_join(&columns);
	assert_behind(1, 1, 3);
	assert_behind(2, 0, 0);
	assert_same_as_one_by_one(ROWS);
}

#define TEST(t) cmocka_unit_test_setup(t, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fields_of_the_same_records_are_copied_together),
		TEST(the_label_may_come_first),
		TEST(what_isnt_wanted_isnt_written),
		TEST(fields_of_other_records_are_copied_by_themselves),
		TEST(records_that_overlap_have_one_first_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
