/* SPDX-License-Identifier: MIT */
/*
 * table_fixture.c - a table in a folder of its own, scanned by the format.
 */
#include "test/lib/table_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct table_gen table_fixture_gen;
struct tsi_table table_fixture_table;
struct tsi_root table_fixture_root;
char table_fixture_path[64];
static char folder[] = "/tmp/tsock-table-XXXXXX";

bool table_fixture_named;

int table_fixture_make(void **state)
{
	(void)state;
	table_fixture_named = false;
	table_gen_make(&table_fixture_gen);
	table_fixture_table = (struct tsi_table){ .block = NULL };
	tsi_root_init(&table_fixture_root);
	return 0;
}

int table_fixture_clear(void **state)
{
	(void)state;
	tsi_table_clear(&table_fixture_table);
	tsi_root_close(&table_fixture_root);
	return 0;
}

int table_fixture_scan_bytes(const void *bytes, size_t len, unsigned threads)
{
	FILE *f = fopen(table_fixture_path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(tsi_format_open(&tsi_format_table, table_fixture_path,
					 &table_fixture_root),
			 0);
	return tsi_format_scan(
		&tsi_format_table, &table_fixture_root,
		&(struct tsi_format_opts){ .threads = threads,
					   .named = table_fixture_named },
		&table_fixture_table);
}

int table_fixture_scan(void)
{
	return table_fixture_scan_bytes(table_fixture_gen.bytes,
					table_fixture_gen.len, 1);
}

int table_fixture_begin(void)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(table_fixture_path, sizeof(table_fixture_path), "%s/table",
		 folder);
	return 0;
}

void table_fixture_end(void)
{
	unlink(table_fixture_path);
	rmdir(folder);
}
