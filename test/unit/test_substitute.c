/* SPDX-License-Identifier: MIT */
/*
 * test_substitute.c - which files stand in for bad ones, and how often.
 *
 * Which files are bad is said here and not found in them: a sampler over files
 * of nothing else than names.
 */
#include "run/substitute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "data/format.h"
#include "tsock/tsock.h"

#define CLASSES 4
#define EACH 500
#define ALL (CLASSES * EACH)
#define SEED 7

static char root[64];
static struct tsi_index *set; /* of imagefolder: files lie by class */
static struct tsi_members *members;
static bool bad[ALL];

static void put(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void open_set(const char *select)
{
	struct tsi_index_opts opts = { .format = &tsi_format_imagefolder,
				       .root = root,
				       .select = select,
				       .cache_dir = "" };

	tsi_members_destroy(members);
	members = NULL;
	tsi_index_close(set);
	set = NULL;
	if (tsi_index_open(&opts, &set) || tsi_members_create(set, &members))
		fail_msg("%s", tsock_errmsg());
}

static int make_set(void **state)
{
	char name[96];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/tsock-substitute-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (int c = 0; c < CLASSES; c++) {
		snprintf(name, sizeof(name), "%s/%d", root, c);
		mkdir(name, 0700);
		for (int i = 0; i < EACH; i++) {
			snprintf(name, sizeof(name), "%d/%04d.png", c, i);
			put(name, "");
		}
	}
	open_set(NULL);
	return 0;
}

static int remove_set(void **state)
{
	char command[96];

	(void)state;
	tsi_members_destroy(members);
	tsi_index_close(set);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static struct tsi_substitutes *open_substitutes(uint64_t seed)
{
	struct tsi_substitutes *s;

	if (tsi_substitutes_create(set, members, seed, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

/* The file that is delivered in the place of this one. */
static uint64_t delivered(const struct tsi_substitutes *s, uint64_t epoch,
			  uint64_t index)
{
	uint64_t file = index;

	for (uint64_t k = 0; bad[file]; k++)
		assert_true(tsi_substitutes_at(s, epoch, index, k, &file));
	return file;
}

/* How often the most wanted file comes in this epoch. */
static unsigned most_of(const struct tsi_substitutes *s, uint64_t epoch)
{
	static unsigned n[ALL];
	unsigned most = 0;

	memset(n, 0, sizeof(n));
	for (uint64_t i = 0; i < tsi_index_count(set); i++) {
		uint64_t file = delivered(s, epoch, i);

		if (++n[file] > most)
			most = n[file];
	}
	return most;
}

static void spoil(unsigned of_a_hundred)
{
	for (unsigned i = 0; i < ALL; i++)
		bad[i] = i * 37 % 100 < of_a_hundred;
}

static void half_of_a_set_is_spread_over_the_other_half(void **state)
{
	struct tsi_substitutes *s = open_substitutes(SEED);

	(void)state;
	spoil(50);
	for (uint64_t epoch = 0; epoch < 20; epoch++)
		assert_in_range(most_of(s, epoch), 2, 2 * 5);
	tsi_substitutes_destroy(s);
}

/* 5 files of a class are good: 100 times each on average. */
static void few_good_files_share_the_places(void **state)
{
	struct tsi_substitutes *s = open_substitutes(SEED);

	(void)state;
	spoil(99);
	for (uint64_t epoch = 0; epoch < 20; epoch++)
		assert_in_range(most_of(s, epoch), 100, 300);
	tsi_substitutes_destroy(s);
}

static void a_substitute_is_of_the_same_class(void **state)
{
	static const unsigned share[] = { 1, 50, 90, 99 };
	struct tsi_substitutes *s = open_substitutes(SEED);

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		spoil(share[k]);
		for (uint64_t i = 0; i < ALL; i++)
			assert_int_equal(delivered(s, k, i) / EACH, i / EACH);
	}
	/* One file of the class is good: it is found. */
	memset(bad, true, sizeof(bad));
	bad[2 * EACH + 123] = bad[0] = false;
	for (uint64_t i = 2 * EACH; i < 3 * EACH; i++)
		assert_int_equal(delivered(s, 1, i), 2 * EACH + 123);
	tsi_substitutes_destroy(s);
}

/* No file of the class is good: all others take its places. */
static void a_lost_class_is_spread_over_all_others(void **state)
{
	struct tsi_substitutes *s = open_substitutes(SEED);
	unsigned of[CLASSES] = { 0 };

	(void)state;
	for (unsigned i = 0; i < ALL; i++)
		bad[i] = i / EACH == 1;
	for (uint64_t epoch = 0; epoch < 20; epoch++) {
		assert_in_range(most_of(s, epoch), 2, 7);
		for (uint64_t i = EACH; i < 2 * EACH; i++)
			of[delivered(s, epoch, i) / EACH]++;
	}
	assert_int_equal(of[1], 0);
	for (unsigned c = 0; c < CLASSES; c++)
		if (c != 1)
			assert_in_range(of[c], 20 * EACH / 4, 20 * EACH / 2);
	tsi_substitutes_destroy(s);
}

static void all_tries_come_to_every_file(void **state)
{
	struct tsi_substitutes *s = open_substitutes(SEED);
	static bool seen[ALL];
	uint64_t beyond = tsi_substitutes_beyond_class(s, 700), k, file;
	unsigned n = 0;

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (k = 0; tsi_substitutes_at(s, 3, 700, k, &file); k++) {
		n += !seen[file];
		seen[file] = true;
		if (k < beyond)
			assert_int_equal(file / EACH, 1);
		if (k == beyond - 1)
			assert_int_equal(n, EACH);
	}
	assert_int_equal(n, ALL);
	tsi_substitutes_destroy(s);
}

/* Not of who asks, nor of what was asked before; another seed, epoch or file
 * has others. */
static void a_try_is_a_function_of_its_number(void **state)
{
	struct tsi_substitutes *s = open_substitutes(SEED);
	struct tsi_substitutes *again = open_substitutes(SEED);
	struct tsi_substitutes *other = open_substitutes(SEED + 1);
	unsigned same[3] = { 0 };

	(void)state;
	for (uint64_t k = 100; k-- > 0;) {
		uint64_t a, b;

		assert_true(tsi_substitutes_at(s, 5, 600, k, &a));
		assert_true(tsi_substitutes_at(again, 5, 600, k, &b));
		assert_int_equal(a, b);
		tsi_substitutes_at(other, 5, 600, k, &b);
		same[0] += a == b;
		tsi_substitutes_at(s, 6, 600, k, &b);
		same[1] += a == b;
		tsi_substitutes_at(s, 5, 601, k, &b);
		same[2] += a == b;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(same[i], 0, 5);
	tsi_substitutes_destroy(other);
	tsi_substitutes_destroy(again);
	tsi_substitutes_destroy(s);
}

/* A selection has its own order, in which classes don't lie together. */
static void what_is_selected_is_stood_in_for_by_what_is(void **state)
{
	char name[96], text[4096];
	struct tsi_substitutes *s;
	size_t at = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%d/%04d.png\n", i % CLASSES, i);
	put("select.txt", text);
	snprintf(name, sizeof(name), "%s/select.txt", root);
	open_set(name);
	s = open_substitutes(SEED);
	memset(bad, 0, sizeof(bad));
	for (unsigned i = 0; i < 100; i++)
		bad[i] = i % 3 == 0;
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t file = delivered(s, 2, i);

		assert_true(file < 100);
		assert_int_equal(tsi_index_label(set, file),
				 tsi_index_label(set, i));
	}
	assert_in_range(most_of(s, 2), 2, 6);
	tsi_substitutes_destroy(s);
	open_set(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_a_set_is_spread_over_the_other_half),
		cmocka_unit_test(few_good_files_share_the_places),
		cmocka_unit_test(a_substitute_is_of_the_same_class),
		cmocka_unit_test(a_lost_class_is_spread_over_all_others),
		cmocka_unit_test(all_tries_come_to_every_file),
		cmocka_unit_test(a_try_is_a_function_of_its_number),
		cmocka_unit_test(what_is_selected_is_stood_in_for_by_what_is),
	};

	return cmocka_run_group_tests(tests, make_set, remove_set);
}
