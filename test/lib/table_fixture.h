/* SPDX-License-Identifier: MIT */
/*
 * table_fixture.h - a table of table_gen.h in a folder of its own, scanned by
 * the format.
 */
#ifndef TEST_LIB_TABLE_FIXTURE_H
#define TEST_LIB_TABLE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/format.h"
#include "test/lib/table_gen.h"

extern struct table_gen table_fixture_gen;
extern struct tsi_table table_fixture_table;
extern struct tsi_root table_fixture_root;
extern char table_fixture_path[64]; /* of the table's file */

/* cmocka's setup and teardown of a test. */
int table_fixture_make(void **state);
int table_fixture_clear(void **state);

#define on_a_table(test) \
	cmocka_unit_test_setup_teardown(test, table_fixture_make, \
					table_fixture_clear)

/* Write the table's bytes to its file, and scan that: the scan's error. */
int table_fixture_scan(void);
/* The same for other bytes, by so many threads. */
int table_fixture_scan_bytes(const void *bytes, size_t len, unsigned threads);

/* Names will be asked for; false when a table is made. */
extern bool table_fixture_named;

/* The folder, which a test program makes first and removes last. */
int table_fixture_begin(void);
void table_fixture_end(void);

#endif
