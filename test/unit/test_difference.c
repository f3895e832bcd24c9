/* SPDX-License-Identifier: MIT */
/*
 * test_difference.c - what two producers say of their streams, compared.
 */
#include "consumer/difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What a producer says, with two classes. */
struct told {
	struct tsi_msg_stream stream;
	struct tsi_meta meta;
};

static struct told tell(const char *first, const char *identity)
{
	struct told t = { .stream = { .epoch_len = 1000,
				      .dataset_len = 1000,
				      .segments = 4,
				      .nclasses = 2,
				      .resumable = 1,
				      .nfields = 1,
				      .field = { { .name = "image",
						   .dtype = TSOCK_U8,
						   .ndim = 1,
						   .shape = { 12 } } } } };
	const char *text[] = { first, "rose", identity };
	uint32_t at = 0, size = 0;

	for (unsigned i = 0; i < 3; i++)
		size += (uint32_t)strlen(text[i]) + 1;
	assert_int_equal(tsi_meta_begin(&t.meta, size, 2), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t n = (uint32_t)strlen(text[i]) + 1;

		assert_true(
			tsi_meta_add(&t.meta, at, (const uint8_t *)text[i], n));
		at += n;
	}
	assert_true(tsi_meta_divide(&t.meta));
	return t;
}

/* Compare, and free both; NULL in text: they are the same stream. */
static void compare(struct told *was, struct told *is, const char *text)
{
	struct tsi_said a = { &was->stream, &was->meta };
	struct tsi_said b = { &is->stream, &is->meta };
	char why[200];

	assert_int_equal(tsi_difference(&a, &b, why, sizeof(why)),
			 text != NULL);
	assert_string_equal(why, text ? text : "");
	tsi_meta_end(&was->meta);
	tsi_meta_end(&is->meta);
}

static void another_run_serves_the_same_stream(void **state)
{
	struct told was = tell("daisy", "kind=x\n"),
		    is = tell("daisy", "kind=x\n");

	(void)state;
	is.stream.pid = 7;
	is.stream.incarnation = 8;
	is.stream.capacity = 9;
	is.stream.max_batch = 10;
	is.stream.join_window = 11;
	is.stream.epochs = 12;
	compare(&was, &is, NULL);
}

#define CHANGED(change, text) \
	do { \
		struct told was = tell("daisy", "kind=x\n"); \
		struct told is = tell("daisy", "kind=x\n"); \
		change; \
		compare(&was, &is, text); \
	} while (0)

static void what_decides_the_samples_is_compared(void **state)
{
	(void)state;
	CHANGED(is.stream.epoch_len = 9,
		"its epoch's length was 1000 and is 9");
	CHANGED(is.stream.dataset_len = 9,
		"its data set's length was 1000 and is 9");
	CHANGED(is.stream.segments = 1,
		"its number of segments was 4 and is 1");
	CHANGED(is.stream.resumable = 0, "resumable was 1 and is 0");
	CHANGED(is.stream.sequential = 1, "sequential was 0 and is 1");
	CHANGED(is.stream.nfields = 2, "its number of fields was 1 and is 2");
	CHANGED(is.stream.field[0].shape[0] = 13,
		"a field was image and is another or of another shape");
	CHANGED(is.stream.nclasses = 3, "its number of classes was 2 and is 3");
	CHANGED(is.stream.epoch_len = is.stream.dataset_len = 9,
		"its epoch's length was 1000 and is 9, "
		"its data set's length was 1000 and is 9");
}

static void a_class_with_another_name_is_another_stream(void **state)
{
	struct told was = tell("daisy", "kind=x\n");
	struct told is = tell("tulip", "kind=x\n");

	(void)state;
	compare(&was, &is, "class 0 was daisy and is tulip");
}

static void lines_of_an_identity_are_told(void **state)
{
	struct told was = tell("daisy", "kind=x\nseed=1\nold=2\n");
	struct told is = tell("tulip", "kind=x\nseed=2\nnew=3\n");

	(void)state;
	/* And not the classes, which an identity has told of. */
	compare(&was, &is,
		"seed was 1 and is 2, old was 2 and is not said, "
		"new was not said and is 3");
	was = tell("daisy", "without a line");
	is = tell("daisy", "without one");
	compare(&was, &is, "its identity was one and is another");
}

/* As much of it as there is room for, and its end. */
static void what_is_long_is_cut(void **state)
{
	struct told was = tell("daisy", "kind=x\nseed=1\n");
	struct told is = tell("daisy", "kind=y\nseed=2\n");
	struct tsi_said a = { &was.stream, &was.meta };
	struct tsi_said b = { &is.stream, &is.meta };

	(void)state;
	for (size_t size = 2; size < 64; size++) {
		char why[64];

		memset(why, '#', sizeof(why));
		assert_true(tsi_difference(&a, &b, why, size));
		assert_true(strlen(why) < size);
		assert_int_equal(
			strncmp(why, "kind was x and is y, seed was 1 and is 2",
				strlen(why)),
			0);
		assert_int_equal(why[size], '#');
	}
	tsi_meta_end(&was.meta);
	tsi_meta_end(&is.meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_run_serves_the_same_stream),
		cmocka_unit_test(what_decides_the_samples_is_compared),
		cmocka_unit_test(a_class_with_another_name_is_another_stream),
		cmocka_unit_test(lines_of_an_identity_are_told),
		cmocka_unit_test(what_is_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
