/* SPDX-License-Identifier: MIT */
/*
 * test_verdict.c - how many bad files are too many, and the sentences.
 */
#include "run/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct tsi_tolerance usual = { .share = 0.01 };

static void more_than_the_share_is_too_many(void **state)
{
	struct tsi_tolerance none = { .share = 0 }, any = { .share = 1 };

	(void)state;
	assert_false(tsi_verdict_too_many(&usual, 0, 50));
	assert_false(tsi_verdict_too_many(&usual, 1, 100));
	assert_true(tsi_verdict_too_many(&usual, 1, 99));
	assert_true(tsi_verdict_too_many(&usual, 101, 10000));
	assert_true(tsi_verdict_too_many(&none, 1, 1000000));
	assert_false(tsi_verdict_too_many(&none, 0, 1000000));
	assert_false(tsi_verdict_too_many(&any, 10, 10));
}

/* By chance a sample of 1,024 has 20 where a hundredth is bad, and not 30. */
static void a_sample_has_to_leave_no_doubt(void **state)
{
	struct tsi_tolerance any = { .share = 1 };

	(void)state;
	assert_false(tsi_verdict_surely_too_many(&usual, 0, 1024));
	assert_false(tsi_verdict_surely_too_many(&usual, 20, 1024));
	assert_true(tsi_verdict_surely_too_many(&usual, 30, 1024));
	assert_true(tsi_verdict_surely_too_many(&usual, 1024, 1024));
	assert_false(tsi_verdict_surely_too_many(&any, 1024, 1024));
}

static const struct tsi_bad_files all = {
	.name = "/data/pets",
	.files = 60,
	.bad = 20,
	.looked = 20,
	.first = "dog/0.heic",
	.reason = "neither JPEG nor PNG but a HEIC image",
};

static void a_start_is_refused_in_one_sentence(void **state)
{
	struct tsi_lost_classes lost = { .name = "dog", .n = 1 };
	char text[1024];

	(void)state;
	tsi_verdict_refuse(&all, &lost, text, sizeof(text));
	assert_string_equal(
		text, "/data/pets: 20 of 60 files (33.3 %) can't be read, and "
		      "class dog has no other; the first is dog/0.heic: "
		      "neither JPEG nor PNG but a HEIC image; convert or "
		      "remove them, or have good files take their places: "
		      "--allow-bad 0.34 (allow_bad=0.34 in Python)");
	lost.n = 3;
	tsi_verdict_refuse(&all, &lost, text, sizeof(text));
	assert_non_null(strstr(text, "and class dog and 2 more have no other"));
	lost.n = 0;
	tsi_verdict_refuse(&all, &lost, text, sizeof(text));
	assert_non_null(strstr(text, "can't be read; the first"));
}

static void a_lost_class_is_told_of(void **state)
{
	struct tsi_bad_files dog = all;
	char text[1024];

	(void)state;
	dog.name = "dog";
	dog.files = dog.bad = 1200;
	dog.looked = 65;
	tsi_verdict_warn_class(&dog, &all, text, sizeof(text));
	assert_string_equal(
		text, "class dog: none of its 1200 files can be read (65 were "
		      "looked at); the first is dog/0.heic: neither JPEG nor "
		      "PNG but a HEIC image; images of other classes take "
		      "their places; --allow-bad 0.34 (allow_bad=0.34 in "
		      "Python) lets that pass");
	tsi_verdict_warn_share(&all, text, sizeof(text));
	assert_string_equal(
		text, "so far 20 of 60 files (33.3 %) can't be read; the first "
		      "is dog/0.heic: neither JPEG nor PNG but a HEIC image; "
		      "others take their places; a larger --allow-bad "
		      "(allow_bad= in Python) lets that pass");
}

/* What is advised is enough, and no share is below a hundredth. */
static void what_is_advised_lets_it_pass(void **state)
{
	struct tsi_lost_classes none = { .n = 0 };
	char text[1024], *at, *end;

	(void)state;
	for (uint64_t bad = 1; bad <= 777; bad++) {
		struct tsi_bad_files f = { .name = "/", .files = 777 };
		struct tsi_tolerance t = { .given = true };

		f.bad = f.looked = bad;
		tsi_verdict_refuse(&f, &none, text, sizeof(text));
		at = strstr(text, "allow_bad=");
		assert_non_null(at);
		t.share = strtod(at + strlen("allow_bad="), &end);
		assert_true(t.share >= 0.01 && t.share <= 1);
		assert_false(tsi_verdict_too_many(&t, bad, 777));
	}
}

static void long_names_are_cut(void **state)
{
	static char name[4000];
	struct tsi_bad_files f = all;
	struct tsi_lost_classes lost = { .name = name, .n = 2 };
	char text[1024];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	f.name = f.first = f.reason = name;
	tsi_verdict_refuse(&f, &lost, text, sizeof(text));
	assert_non_null(strstr(text, "allow_bad=0.34 in Python)"));
	tsi_verdict_warn_class(&f, &all, text, sizeof(text));
	assert_non_null(strstr(text, "lets that pass"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_share_is_too_many),
		cmocka_unit_test(a_sample_has_to_leave_no_doubt),
		cmocka_unit_test(a_start_is_refused_in_one_sentence),
		cmocka_unit_test(a_lost_class_is_told_of),
		cmocka_unit_test(what_is_advised_lets_it_pass),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
