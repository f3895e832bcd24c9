/* SPDX-License-Identifier: MIT */
/*
 * test_meta.c - the texts of a stream, which come in pieces.
 */
#include "consumer/meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Two classes and an identity, with the last NUL. */
static const uint8_t texts[] = "daisy\0rose\0made of=nothing\n";

/* Give all bytes in pieces of so many at most. */
static void give(struct tsi_meta *m, const uint8_t *bytes, uint32_t piece)
{
	uint32_t at;

	while (tsi_meta_lacks(m, &at)) {
		uint32_t n = m->size - at < piece ? m->size - at : piece;

		assert_true(tsi_meta_add(m, at, bytes + at, n));
	}
}

static void texts_come_in_pieces_of_any_size(void **state)
{
	(void)state;
	for (uint32_t piece = 1; piece <= sizeof(texts); piece++) {
		struct tsi_meta m = { .bytes = NULL };

		assert_false(tsi_meta_begun(&m));
		assert_int_equal(tsi_meta_begin(&m, sizeof(texts), 2), 0);
		assert_true(tsi_meta_begun(&m));
		give(&m, texts, piece);
		assert_null(tsi_meta_identity(&m));
		assert_true(tsi_meta_divide(&m));
		assert_string_equal(tsi_meta_class(&m, 0), "daisy");
		assert_string_equal(tsi_meta_class(&m, 1), "rose");
		assert_null(tsi_meta_class(&m, 2));
		assert_null(tsi_meta_class(&m, UINT32_MAX));
		assert_string_equal(tsi_meta_identity(&m), "made of=nothing\n");
		tsi_meta_end(&m);
		assert_false(tsi_meta_begun(&m));
		assert_null(tsi_meta_class(&m, 0));
		assert_null(tsi_meta_identity(&m));
	}
}

static void a_piece_that_was_not_asked_for_is_refused(void **state)
{
	struct tsi_meta m = { .bytes = NULL };
	uint32_t at;

	(void)state;
	assert_int_equal(tsi_meta_begin(&m, 10, 1), 0);
	assert_false(tsi_meta_add(&m, 1, texts, 4));
	assert_false(tsi_meta_add(&m, 0, texts, 0));
	assert_false(tsi_meta_add(&m, 0, texts, 11));
	assert_false(tsi_meta_add(&m, 0, texts, UINT32_MAX));
	assert_true(tsi_meta_add(&m, 0, texts, 4));
	assert_false(tsi_meta_add(&m, 0, texts, 4));
	assert_false(tsi_meta_add(&m, 4, texts, 7));
	assert_true(tsi_meta_lacks(&m, &at));
	assert_int_equal(at, 4);
	assert_true(tsi_meta_add(&m, 4, texts, 6));
	assert_false(tsi_meta_lacks(&m, &at));
	assert_false(tsi_meta_add(&m, 10, texts, 1));
	tsi_meta_end(&m);
}

static void too_few_texts_are_noticed(void **state)
{
	struct tsi_meta m = { .bytes = NULL };

	(void)state;
	assert_int_equal(tsi_meta_begin(&m, 6, 2), 0);
	give(&m, texts, 6);
	assert_false(tsi_meta_divide(&m));
	assert_null(tsi_meta_identity(&m));
	tsi_meta_end(&m);
}

/* A producer of another version may send no identity, or no last NUL. */
static void the_end_of_the_texts_may_lack(void **state)
{
	struct tsi_meta m = { .bytes = NULL };

	(void)state;
	assert_int_equal(tsi_meta_begin(&m, 6, 1), 0);
	give(&m, texts, 6);
	assert_true(tsi_meta_divide(&m));
	assert_string_equal(tsi_meta_identity(&m), "");
	tsi_meta_end(&m);
	assert_int_equal(tsi_meta_begin(&m, 8, 2), 0);
	give(&m, texts, 8);
	assert_true(tsi_meta_divide(&m));
	assert_string_equal(tsi_meta_class(&m, 1), "ro");
	assert_string_equal(tsi_meta_identity(&m), "");
	tsi_meta_end(&m);
	assert_int_equal(tsi_meta_begin(&m, 0, 0), 0);
	assert_true(tsi_meta_begun(&m));
	assert_true(tsi_meta_divide(&m));
	assert_string_equal(tsi_meta_identity(&m), "");
	tsi_meta_end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_in_pieces_of_any_size),
		cmocka_unit_test(a_piece_that_was_not_asked_for_is_refused),
		cmocka_unit_test(too_few_texts_are_noticed),
		cmocka_unit_test(the_end_of_the_texts_may_lack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
