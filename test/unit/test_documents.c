/* SPDX-License-Identifier: MIT */
/*
 * test_documents.c - which tokens each sample has, by where documents begin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/documents.h"

static struct tsi_documents *documents;

static int clear(void **state)
{
	(void)state;
	tsi_documents_destroy(documents);
	documents = NULL;
	return 0;
}

#define TOKENS 4096
#define FILES 3

/* A sample as the tests make it: one token after the other. */
struct want {
	unsigned file;
	uint64_t at, tokens;
	int32_t mark[16];
};

static uint8_t tokens[FILES][TOKENS];
static uint64_t lengths[FILES][TOKENS], counts[FILES], sums[FILES];
static struct want want[FILES * TOKENS];
static unsigned wanted;

static struct want *new_want(unsigned file, uint64_t at)
{
	struct want *w = &want[wanted++];

	*w = (struct want){ .file = file, .at = at };
	memset(w->mark, -1, sizeof(w->mark));
	return w;
}

static void append(struct want *w, uint64_t n, int32_t mark)
{
	while (n--)
		w->mark[w->tokens++] = mark;
}

/* Documents, and longer ones in pieces that overlap by a token. */
static void want_whole(unsigned file, uint64_t t)
{
	uint64_t begin = 0;

	for (uint64_t k = 0; k < counts[file]; k++) {
		uint64_t left = lengths[file][k], at = begin;

		for (; left > t + 1; left -= t, at += t)
			append(new_want(file, at), t + 1, 0);
		append(new_want(file, at), left, 0);
		begin += lengths[file][k];
	}
}

/* Such pieces, as many as fit; nothing follows on a piece that goes on. */
static void want_packs(unsigned file, uint64_t t)
{
	struct want *w = NULL;
	uint64_t begin = 0;
	int32_t mark = 0;

	for (uint64_t k = 0; k < counts[file]; k++) {
		uint64_t left = lengths[file][k], at = begin;

		for (; left > t + 1; left -= t, at += t) {
			append(new_want(file, at), t + 1, 0);
			w = NULL;
		}
		if (!w || w->tokens + left > t + 1) {
			w = new_want(file, at);
			mark = 0;
		}
		append(w, left, mark++);
		begin += lengths[file][k];
	}
}

static void want_windows(unsigned file, uint64_t t)
{
	static int32_t of[TOKENS];
	uint64_t n = 0;

	for (uint64_t k = 0; k < counts[file]; k++)
		for (uint64_t i = 0; i < lengths[file][k]; i++)
			of[n++] = (int32_t)k;
	for (uint64_t at = 0; at + t < n; at += t) {
		struct want *w = new_want(file, at);

		for (uint64_t i = 0; i <= t; i++)
			append(w, 1, of[at + i] - of[at]);
	}
}

static void is_wanted(uint64_t i, uint64_t t)
{
	struct tsi_documents_run run;
	const struct want *w = &want[i];
	int32_t mark[16];

	tsi_documents_find(documents, i, &run);
	assert_int_equal(run.at, w->at);
	assert_int_equal(run.tokens, w->tokens);
	assert_ptr_equal(run.data, tokens[w->file] + 2 * w->at);
	memset(mark, -1, sizeof(mark));
	tsi_documents_mark(documents, &run, mark);
	assert_memory_equal(mark, w->mark, (t + 1) * sizeof(*mark));
}

static void draw_file(unsigned file, unsigned most)
{
	counts[file] = (unsigned)rand() % 150 + 1;
	sums[file] = 0;
	for (uint64_t k = 0; k < counts[file]; k++) {
		lengths[file][k] = (unsigned)rand() % most + 1;
		sums[file] += lengths[file][k];
	}
}

static void add_file(unsigned file)
{
	uint64_t *start = malloc(counts[file] * sizeof(*start));
	uint64_t at = 0;

	assert_non_null(start);
	for (uint64_t k = 0; k < counts[file]; k++) {
		start[k] = at;
		at += lengths[file][k];
	}
	assert_int_equal(tsi_documents_add(documents, tokens[file], sums[file],
					   start, counts[file]),
			 0);
}

static void are_wanted(enum tsi_documents_way way,
		       void (*add)(unsigned file, uint64_t t))
{
	srand(1);
	for (unsigned round = 0; round < 200; round++) {
		uint64_t t = (unsigned)rand() % 15 + 1;
		unsigned most = (unsigned)rand() % 25 + 1;

		assert_int_equal(tsi_documents_create(way, t, 2, &documents),
				 0);
		assert_int_equal(tsi_documents_count(documents), 0);
		wanted = 0;
		for (unsigned k = 0; k < FILES; k++) {
			draw_file(k, most);
			add_file(k);
			add(k, t);
		}
		assert_int_equal(tsi_documents_count(documents), wanted);
		for (uint64_t i = wanted; i--;)
			is_wanted(i, t);
		tsi_documents_destroy(documents);
		documents = NULL;
	}
}

static void a_document_is_a_sample_or_several(void **state)
{
	(void)state;
	are_wanted(TSI_DOCUMENTS_WHOLE, want_whole);
}

static void documents_are_packed_in_their_order(void **state)
{
	(void)state;
	are_wanted(TSI_DOCUMENTS_PACK, want_packs);
}

static void windows_have_the_marks_of_their_documents(void **state)
{
	(void)state;
	are_wanted(TSI_DOCUMENTS_MARK, want_windows);
}

static void bounds_are_part_of_what_documents_are(void **state)
{
	uint64_t h[3];

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(tsi_documents_create(TSI_DOCUMENTS_MARK, 2, 2,
						      &documents),
				 0);
		counts[0] = 2;
		lengths[0][0] = k == 2 ? 4 : 3;
		sums[0] = 7;
		add_file(0);
		h[k] = tsi_documents_hash(documents, 5);
		tsi_documents_destroy(documents);
		documents = NULL;
	}
	assert_int_equal(h[0], h[1]);
	assert_int_not_equal(h[0], h[2]);
}

#define TEST(f) cmocka_unit_test_teardown(f, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_document_is_a_sample_or_several),
		TEST(documents_are_packed_in_their_order),
		TEST(windows_have_the_marks_of_their_documents),
		TEST(bounds_are_part_of_what_documents_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
