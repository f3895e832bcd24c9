/* SPDX-License-Identifier: MIT */
/*
 * test_idle.c - an idle stream ends: not before a reader can have come, nor
 * while a loader is connected.
 */
#include "cli/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LIMIT 25000
#define BEGIN 1000000

static struct tsi_idle idle;

static int begin(void **state)
{
	(void)state;
	idle = (struct tsi_idle){ .said = false };
	tsi_idle_begin(&idle, BEGIN);
	return 0;
}

static void the_first_reader_has_two_minutes(void **state)
{
	(void)state;
	assert_false(tsi_idle_over(&idle, LIMIT, BEGIN + LIMIT));
	assert_false(tsi_idle_over(&idle, LIMIT, BEGIN + 119999));
	assert_true(tsi_idle_over(&idle, LIMIT, BEGIN + 120000));
	/* Or longer, as was asked for. */
	assert_false(tsi_idle_over(&idle, 200000, BEGIN + 199999));
	assert_true(tsi_idle_over(&idle, 200000, BEGIN + 200000));
}

/* Loaders that came and went before anybody has read change nothing. */
static void a_loader_that_never_read_is_no_reader(void **state)
{
	(void)state;
	tsi_idle_connections(&idle, 1, BEGIN + 1000);
	tsi_idle_connections(&idle, 1, BEGIN + 2000);
	tsi_idle_connections(&idle, 0, BEGIN + 3000);
	assert_false(tsi_idle_over(&idle, LIMIT, BEGIN + 2000 + LIMIT));
	assert_true(tsi_idle_over(&idle, LIMIT, BEGIN + 2000 + 120000));
}

static void after_the_first_reader_the_limit_counts(void **state)
{
	(void)state;
	tsi_idle_readers(&idle, 1, true, BEGIN + 5000);
	tsi_idle_connections(&idle, 0, BEGIN + 6000);
	assert_false(tsi_idle_over(&idle, LIMIT, BEGIN + 5000 + LIMIT - 1));
	assert_true(tsi_idle_over(&idle, LIMIT, BEGIN + 5000 + LIMIT));
	assert_true(tsi_idle_over(&idle, 0, BEGIN + 5001));
}

/* The reader came and left between two looks. */
static void a_reader_that_was_not_seen_counts_by_what_was_made(void **state)
{
	(void)state;
	tsi_idle_readers(&idle, 0, true, BEGIN + 5000);
	assert_true(tsi_idle_over(&idle, LIMIT, BEGIN + LIMIT));
}

static void a_connection_counts_when_it_is_seen_twice(void **state)
{
	(void)state;
	tsi_idle_readers(&idle, 1, true, BEGIN + 100);
	tsi_idle_connections(&idle, 0, BEGIN + 200);
	/* Somebody asks for statistics. */
	assert_false(tsi_idle_connections(&idle, 1, BEGIN + 1000));
	assert_int_equal(idle.busy_ms, BEGIN + 100);
	/* The log says once that the stream stays for a loader. */
	assert_true(tsi_idle_connections(&idle, 1, BEGIN + 2000));
	assert_false(tsi_idle_connections(&idle, 1, BEGIN + 3000));
	assert_int_equal(idle.busy_ms, BEGIN + 3000);
	assert_false(tsi_idle_over(&idle, LIMIT, BEGIN + 3000 + LIMIT));
	tsi_idle_connections(&idle, 0, BEGIN + 4000);
	assert_false(idle.deserted);
	tsi_idle_connections(&idle, 0, BEGIN + 5000);
	assert_true(idle.deserted);
	assert_true(tsi_idle_over(&idle, LIMIT, BEGIN + 3000 + LIMIT));
	tsi_idle_readers(&idle, 1, true, BEGIN + 40000);
	assert_false(idle.deserted);
	assert_true(tsi_idle_connections(&idle, 2, BEGIN + 50000));
}

static void connections_are_not_counted_all_the_time(void **state)
{
	(void)state;
	tsi_idle_connections(&idle, 0, BEGIN);
	assert_false(tsi_idle_due(&idle, BEGIN + 249));
	assert_true(tsi_idle_due(&idle, BEGIN + 250));
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_reader_has_two_minutes),
		TEST(a_loader_that_never_read_is_no_reader),
		TEST(after_the_first_reader_the_limit_counts),
		TEST(a_reader_that_was_not_seen_counts_by_what_was_made),
		TEST(a_connection_counts_when_it_is_seen_twice),
		TEST(connections_are_not_counted_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
