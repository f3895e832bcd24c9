/* SPDX-License-Identifier: MIT */
/*
 * test_bounds.c - where the documents of token files begin: by a token, or by
 * Megatron-LM's index.
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
#include <fcntl.h>
#include <sys/stat.h>

#include "data/format.h"
#include "data/rows/rows.h"
#include "test/lib/old_file.h"
#include "test/lib/rows_gen.h"
#include "tsock/tsock.h"

static char folder[64];
static struct tsi_root root;
static struct tsi_table table;
static struct rows_gen gen;
static struct sigaction ours; /* cmocka has its own during a test */

static int make(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/tsock-bounds-XXXXXX");
	tsi_root_init(&root);
	gen.len = 0;
	table = (struct tsi_table){ .block = NULL };
	return !mkdtemp(folder) || tsi_root_open(&root, folder);
}

static int clear(void **state)
{
	char command[128];

	(void)state;
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

static void said(const char *text)
{
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

/* ---- by a token ---- */

/* Scan as --schema and --documents say; 0, or the error. */
static int scan(const char *schema, enum tsi_documents_way way,
		enum tsi_documents_token stands, uint64_t token)
{
	const struct tsi_format_opts o = {
		.schema = schema,
		.documents = { .way = way, .stands = stands, .token = token },
		.threads = 3,
	};
	struct tsi_samples samples;
	int err = tsi_format_look(&tsi_format_tokens, folder, &o, &samples);

	tsi_table_clear(&table);
	table = (struct tsi_table){ .block = NULL };
	return err ? err
		   : tsi_format_scan(&tsi_format_tokens, &root, &o, &table);
}

/* How many tokens samples have: as many numbers, with 0 behind them. */
static void are_long(const int32_t *n)
{
	const struct tsi_columns *c = tsi_table_columns(&table);
	uint64_t i = 0;

	for (; n[i]; i++) {
		int32_t length;

		assert_true(i < tsi_table_count(&table));
		assert_int_equal(tsi_columns_put(c, 1, i, &length), 0);
		assert_int_equal(length, n[i]);
	}
	assert_int_equal(tsi_table_count(&table), i);
}

#define MANY ((3u << 20) + 5)

static void a_token_is_found_wherever_it_stands(void **state)
{
	static uint8_t bytes[MANY];
	static const unsigned at[] = { 0,
				       1,
				       16383,
				       16384,
				       (1 << 20) - 1,
				       1 << 20,
				       (3 << 20) - 1,
				       3 << 20,
				       MANY - 1 };
	static const int32_t ends[] = { 1, 1,       16382, 1, 1032191,
					1, 2097151, 1,     4, 0 };
	static const int32_t begins[] = { 1,       16382, 1, 1032191, 1,
					  2097151, 1,     4, 1,       0 };

	(void)state;
	for (unsigned k = 0; k < sizeof(at) / sizeof(at[0]); k++)
		bytes[at[k]] = 7;
	put("a.bin", bytes, sizeof(bytes));
	assert_int_equal(scan("uint8[3000000]", TSI_DOCUMENTS_WHOLE,
			      TSI_DOCUMENTS_END, 7),
			 0);
	are_long(ends);
	assert_int_equal(scan("uint8[3000000]", TSI_DOCUMENTS_WHOLE,
			      TSI_DOCUMENTS_BEGIN, 7),
			 0);
	are_long(begins);
	assert_int_equal(
		scan("uint8[9]", TSI_DOCUMENTS_WHOLE, TSI_DOCUMENTS_END, 8),
		TSOCK_EDATA);
	said("has no token 8");
}

static void a_token_is_a_number_of_the_dtype(void **state)
{
	static const struct {
		const char *schema;
		unsigned bytes;
		uint64_t token, other;
	} of[] = {
		{ "uint8[9]", 1, 255, 254 },
		{ "int8[9]", 1, 127, 255 },
		{ "uint16[9]", 2, 0x0307, 0x0407 },
		{ "int16[9]", 2, 0x7fff, 0xffff },
		{ "uint32[9]", 4, 0x80000003, 0x70000003 },
		{ "int32[9]", 4, 3, 0x10003 },
		{ "int64[9]", 8, 3, UINT64_C(0x100000003) },
	};
	static const int32_t want_lengths[] = { 3, 2, 0 };

	(void)state;
	for (unsigned k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		gen.len = 0;
		for (unsigned i = 0; i < 5; i++)
			rows_gen_number(&gen,
					i == 2 ? of[k].token : of[k].other,
					of[k].bytes);
		put("a.bin", gen.bytes, gen.len);
		assert_int_equal(scan(of[k].schema, TSI_DOCUMENTS_WHOLE,
				      TSI_DOCUMENTS_END, of[k].token),
				 0);
		are_long(want_lengths);
	}
	assert_int_equal(
		scan("int16[9]", TSI_DOCUMENTS_WHOLE, TSI_DOCUMENTS_END, 32768),
		TSOCK_EARG);
	said("--end-token 32768: tokens of --schema's dtype are 32767 at most");
	assert_int_equal(
		scan("float16[9]", TSI_DOCUMENTS_WHOLE, TSI_DOCUMENTS_BEGIN, 1),
		TSOCK_EARG);
	said("--begin-token: the tokens of --schema are no integers");
	assert_int_equal(scan("uint8[2147483647]", TSI_DOCUMENTS_PACK,
			      TSI_DOCUMENTS_BEGIN, 1),
			 TSOCK_EARG);
	said("2147483646 tokens are the most");
	assert_int_equal(scan("uint16[9]", TSI_DOCUMENTS_PACK,
			      TSI_DOCUMENTS_NO_TOKEN, 0),
			 TSOCK_EARG);
	said("a.bin has no .idx");
}

/* ---- by an index ---- */

/* An index of five sequences and four documents, of twelve int32. */
static void put_index(void)
{
	static const uint32_t n[] = { 3, 1, 2, 0, 6 };
	static const uint64_t first[] = { 0, 2, 3, 3, 5 };
	uint64_t at = 0;

	gen.len = 0;
	rows_gen_put(&gen, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18);
	rows_gen_number(&gen, 5, 8);
	rows_gen_number(&gen, 5, 8);
	for (unsigned k = 0; k < 5; k++)
		rows_gen_number(&gen, n[k], 4);
	for (unsigned k = 0; k < 5; k++) {
		rows_gen_number(&gen, at, 8);
		at += 4 * n[k];
	}
	for (unsigned k = 0; k < 5; k++)
		rows_gen_number(&gen, first[k], 8);
}

static void put_indexed(void)
{
	static const int32_t t[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

	put_index();
	put("a.bin", t, sizeof(t));
	put("a.idx", gen.bytes, gen.len);
}

static void an_index_says_where_documents_begin(void **state)
{
	static const int32_t want_lengths[] = { 4, 2, 6, 0 };

	(void)state;
	put_indexed();
	assert_int_equal(scan("int32[9]", TSI_DOCUMENTS_WHOLE, 0, 0), 0);
	are_long(want_lengths);
	/* Modes of sequences may lie behind it. */
	rows_gen_put(&gen, "\1\1\1\1\1", 5);
	put("a.idx", gen.bytes, gen.len);
	assert_int_equal(scan("int32[9]", TSI_DOCUMENTS_WHOLE, 0, 0), 0);
	are_long(want_lengths);
}

/* A number of the index, where it is another one. */
static void is_refused(size_t at, int64_t value, unsigned bytes,
		       const char *why)
{
	put_index();
	memcpy(gen.bytes + at, &value, bytes);
	put("a.idx", gen.bytes, gen.len);
	if (scan("int32[9]", TSI_DOCUMENTS_PACK, 0, 0) != TSOCK_EDATA)
		fail_msg("%lld at %zu is taken", (long long)value, at);
	said("a.idx");
	said(why);
}

#define LENGTH(k) (34 + 4 * (k))
#define POINTER(k) (54 + 8 * (k))
#define DOCUMENT(k) (94 + 8 * (k))

static void a_damaged_index_is_refused(void **state)
{
	(void)state;
	put_indexed();
	is_refused(18, 6, 8, "truncated: it says that it has");
	is_refused(26, 6, 8, "truncated: it says that it has");
	is_refused(18, INT64_MAX, 8, "truncated: it says that it has");
	is_refused(18, INT64_MIN + 5, 8, "truncated: it says that it has");
	is_refused(26, (INT64_C(1) << 61) + 5, 8,
		   "truncated: it says that it has");
	is_refused(18, 0, 8, "no sequences");
	is_refused(26, 0, 8, "no documents");
	is_refused(LENGTH(1), -1, 4, "sequence 1 has -1 tokens");
	is_refused(LENGTH(4), 7, 4, "sequence 4 ends behind the 12 tokens");
	is_refused(LENGTH(4), 5, 4, "has sequences of 11 tokens");
	is_refused(LENGTH(0), INT32_MAX, 4, "ends behind");
	is_refused(POINTER(0), 4, 8, "sequence 0 begins at byte 4");
	is_refused(POINTER(2), 12, 8,
		   "sequence 2 begins at byte 12, and what "
		   "is before ends at byte 16");
	is_refused(POINTER(0), INT64_MIN, 8, "sequence 0 begins at byte -9");
	is_refused(DOCUMENT(0), 1, 8, "document 0 begins with sequence 1");
	is_refused(DOCUMENT(2), 1, 8, "document 2 begins with sequence 1");
	is_refused(DOCUMENT(1), -2, 8, "document 1 begins with sequence -2");
	is_refused(DOCUMENT(4), 6, 8, "document 4 begins with sequence 6");
	is_refused(DOCUMENT(3), INT64_MAX, 8, "document 3 begins");
	for (size_t n = 1; n < 134; n++) {
		put_index();
		put("a.idx", gen.bytes, n);
		assert_int_equal(scan("int32[9]", TSI_DOCUMENTS_PACK, 0, 0),
				 TSOCK_EDATA);
		said("truncated");
	}
}

/* ---- samples in a table ---- */

static void samples_are_located_chosen_and_copied(void **state)
{
	static const int32_t pack[] = { 1, 2, 3, 4, 5, 6, 0 };
	static const int32_t marks[] = { 0, 0, 0, 0, 1, 1, -1 };
	uint64_t chosen[] = { 1, 0 };
	const struct tsi_columns *c;
	struct tsi_location l;
	int32_t got[7];

	(void)state;
	put_indexed();
	assert_int_equal(scan("int32[6]", TSI_DOCUMENTS_PACK, 0, 0), 0);
	assert_int_equal(tsi_table_count(&table), 2);
	assert_int_equal(tsi_table_choose(&table, chosen, 2), 0);
	c = tsi_table_columns(&table);
	assert_int_equal(tsi_columns_count(c), 2);
	memset(got, 9, sizeof(got));
	assert_int_equal(tsi_columns_put(c, 0, 1, got), 0);
	assert_memory_equal(got, pack, sizeof(got));
	assert_int_equal(tsi_columns_put(c, 1, 1, got), 0);
	assert_memory_equal(got, marks, sizeof(got));
	tsi_rows_locate(&table, 0, &l);
	assert_string_equal(l.file, "a.bin");
	assert_int_equal(l.offset, 24);
	assert_int_equal(l.length, 24);
}

static void a_file_that_is_cut_short_is_named(void **state)
{
	const struct tsi_columns *c;
	static uint16_t t[9000];
	struct sigaction theirs;
	uint64_t last;
	char path[160];

	(void)state;
	put("a.bin", t, sizeof(t));
	assert_int_equal(
		scan("uint16[9]", TSI_DOCUMENTS_PACK, TSI_DOCUMENTS_END, 0), 0);
	c = tsi_table_columns(&table);
	last = tsi_table_count(&table) - 1;
	snprintf(path, sizeof(path), "%s/a.bin", folder);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(sigaction(SIGBUS, &ours, &theirs), 0);
	assert_int_equal(tsi_columns_put(c, 0, last, t), TSOCK_EDATA);
	assert_int_equal(sigaction(SIGBUS, &theirs, NULL), 0);
	said("a.bin was cut short");
}

/* The handler that the first mapping sets. */
static int take_handler(void **state)
{
	if (make(state))
		return 1;
	put_indexed();
	return scan("int32[9]", TSI_DOCUMENTS_PACK, 0, 0) || clear(state) ||
	       sigaction(SIGBUS, NULL, &ours);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_is_found_wherever_it_stands),
		TEST(a_token_is_a_number_of_the_dtype),
		TEST(an_index_says_where_documents_begin),
		TEST(a_damaged_index_is_refused),
		TEST(samples_are_located_chosen_and_copied),
		TEST(a_file_that_is_cut_short_is_named),
	};

	return cmocka_run_group_tests(tests, take_handler, NULL);
}
