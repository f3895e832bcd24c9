/* SPDX-License-Identifier: MIT */
/*
 * test_table_changed.c - tables that are written over or cut short while they
 * are served, and rows of many, at which several threads look.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/mapped.h"
#include "test/lib/table_fixture.h"
#include "tsock/tsock.h"

static struct sigaction ours;

/* ---- files that change while they are served ---- */

static void write_over(void)
{
	FILE *f = fopen(table_fixture_path, "r+");

	assert_non_null(f);
	assert_int_equal(
		fwrite(table_fixture_gen.bytes, 1, table_fixture_gen.len, f),
		table_fixture_gen.len);
	assert_int_equal(fclose(f), 0);
}

static void can_not_be_put(unsigned k, uint64_t i, const char *said)
{
	uint8_t to[64];

	assert_true(tsi_table_columns(&table_fixture_table)->column[k].bytes <=
		    sizeof(to));
	assert_int_equal(
		tsi_columns_put(tsi_table_columns(&table_fixture_table), k, i,
				to),
		TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), said))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), said);
}

static void rows_that_are_written_over_lead_nowhere_else(void **state)
{
	struct tsi_columnar_range *range;
	struct tsi_location at;
	int64_t own;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	range = table_gen_data(&table_fixture_gen, "image");
	range[1].file = 2;
	range[2].length = 0;
	((uint64_t *)table_gen_data(&table_fixture_gen, "note"))[1] = 4096;
	((char *)table_gen_data(&table_fixture_gen, "note"))[4 * 8 + 5] = 'x';
	((uint64_t *)table_gen_data(&table_fixture_gen, "token"))[1] =
		UINT64_C(1) << 60;
	((uint64_t *)table_gen_data(&table_fixture_gen, "token"))[2] = 0;
	((int64_t *)table_gen_data(&table_fixture_gen, "label"))[1] = 1000;
	write_over();
	for (unsigned i = 1; i < 3; i++) {
		tsi_format_locate(&tsi_format_table, &table_fixture_table, i,
				  &at);
		assert_non_null(strstr(at.file, "was written over"));
	}
	tsi_columns_put_label(tsi_table_columns(&table_fixture_table), 1, &own);
	assert_int_equal(own, 0);
	assert_int_equal(
		tsi_format_label(&tsi_format_table, &table_fixture_table, 1),
		0);
	can_not_be_put(1, 0, "table was written over while it was served");
	can_not_be_put(1, 1, "was written over");
	can_not_be_put(1, 2, "was written over");
	can_not_be_put(2, 0, "was written over");
	can_not_be_put(2, 1, "was written over");
	can_not_be_put(2, 2, "was written over");
	can_not_be_put(3, 0, "was written over");
}

static void a_table_that_is_cut_short_ends_no_process(void **state)
{
	struct sigaction theirs;
	struct tsi_location at;

	(void)state;
	assert_int_equal(table_fixture_scan(), 0);
	assert_int_equal(truncate(table_fixture_path, 0), 0);
	assert_int_equal(sigaction(SIGBUS, &ours, &theirs), 0);
	tsi_format_locate(&tsi_format_table, &table_fixture_table, 1, &at);
	assert_non_null(strstr(at.file, "was written over"));
	assert_null(at.member);
	for (unsigned k = 0; k < 6; k++)
		can_not_be_put(k, 1, "table was cut short while it was served");
	assert_int_equal(sigaction(SIGBUS, &theirs, NULL), 0);
	assert_int_equal(
		tsi_format_label(&tsi_format_table, &table_fixture_table, 0),
		1);
}

/* ---- tables of more rows than a thread takes at once ---- */

#define MANY 100000u
#define LABELS 512u /* where they begin */
#define NAMES (LABELS + MANY * 8)
#define ALL (NAMES + 64)

/* A label for each row, 0 or 1. */
static uint8_t *make_many(void)
{
	uint8_t *bytes = aligned_alloc(64, ALL);
	struct tsi_columnar_head *head = (void *)bytes;
	struct tsi_columnar_entry *e = (void *)(head + 1);
	int64_t *label;

	assert_non_null(bytes);
	memset(bytes, 0, ALL);
	*head = *table_fixture_gen.head;
	head->rows = MANY;
	head->bytes = ALL;
	head->columns = 2;
	e[0] = *table_gen_find(&table_fixture_gen, "label");
	e[0].count = MANY;
	e[0].offset = LABELS;
	e[0].bytes = MANY * 8;
	e[1] = *table_gen_find(&table_fixture_gen, "classes");
	e[1].offset = NAMES;
	memcpy(bytes + NAMES, table_gen_data(&table_fixture_gen, "classes"),
	       e[1].bytes);
	label = (void *)(bytes + LABELS);
	for (unsigned i = 0; i < MANY; i++)
		label[i] = i % 3 == 0;
	return bytes;
}

static int scan_many(uint8_t *bytes, unsigned threads)
{
	table_fixture_clear(NULL);
	table_gen_sign(bytes, ALL);
	return table_fixture_scan_bytes(bytes, ALL, threads);
}

static void every_row_of_many_is_looked_at(void **state)
{
	static const uint32_t rows[] = { 0, 32767, 32768, 65536, MANY - 1 };
	uint8_t *bytes = make_many();
	int64_t *label = (void *)(bytes + LABELS);
	char said[64];

	(void)state;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		label[rows[k]] = 2;
		snprintf(said, sizeof(said), "row %u is of class 2,", rows[k]);
		assert_int_not_equal(scan_many(bytes, 3), 0);
		assert_non_null(strstr(tsock_errmsg(), said));
		label[rows[k]] = 0;
	}
	label[70000] = label[99999] = -1;
	assert_int_not_equal(scan_many(bytes, 3), 0);
	assert_non_null(strstr(tsock_errmsg(), "row 70000 is of class -1,"));
	free(bytes);
}

static void each_row_of_many_is_part_of_what_the_table_is(void **state)
{
	uint8_t *bytes = make_many();
	int64_t *label = (void *)(bytes + LABELS);
	uint64_t was;

	(void)state;
	assert_int_equal(scan_many(bytes, 1), 0);
	was = tsi_table_fingerprint(&table_fixture_table);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(tsi_format_label(&tsi_format_table,
						  &table_fixture_table, i),
				 label[i]);
	/* However many threads look at it. */
	assert_int_equal(scan_many(bytes, 4), 0);
	assert_int_equal(tsi_table_fingerprint(&table_fixture_table), was);
	label[40000] ^= 1;
	assert_int_equal(scan_many(bytes, 4), 0);
	assert_int_not_equal(tsi_table_fingerprint(&table_fixture_table), was);
	free(bytes);
}

/* cmocka has a handler of SIGBUS during a test, and this is that of mapped.c. */
static void find_handler(void)
{
	struct tsi_mapped m = { .mem = NULL };
	struct tsi_stamp stamp;

	table_fixture_make(NULL);
	if (table_fixture_scan() ||
	    tsi_mapped_open(&table_fixture_root, "table", &m, &stamp) ||
	    sigaction(SIGBUS, NULL, &ours))
		abort();
	tsi_mapped_close(&m);
	table_fixture_clear(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_table(rows_that_are_written_over_lead_nowhere_else),
		on_a_table(a_table_that_is_cut_short_ends_no_process),
		on_a_table(every_row_of_many_is_looked_at),
		on_a_table(each_row_of_many_is_part_of_what_the_table_is),
	};
	int failed;

	if (table_fixture_begin())
		return 1;
	find_handler();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	table_fixture_end();
	return failed;
}
