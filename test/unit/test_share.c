/* SPDX-License-Identifier: MIT */
/*
 * test_share.c - how several producers divide the CPUs that they may use.
 */
#include "run/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tsi_share_stream list[TSI_SHARE_STREAMS];
static unsigned n;

/* CPUs first to last are allowed; one reader, all CPUs wanted, no quota. */
static struct tsi_share_stream *add(unsigned first, unsigned last)
{
	struct tsi_share_stream *s = &list[n++];

	memset(s, 0, sizeof(*s));
	s->key = 1000 - n;
	s->group = n;
	s->readers = 1;
	for (unsigned cpu = first; cpu <= last; cpu++)
		s->cpu[cpu / 64] |= UINT64_C(1) << cpu % 64;
	s->quota = s->wants = last - first + 1;
	return s;
}

static int begin(void **state)
{
	(void)state;
	n = 0;
	return 0;
}

static unsigned share(unsigned i)
{
	return tsi_share_count(list, n, i);
}

static void a_stream_alone_has_all_cpus(void **state)
{
	(void)state;
	add(0, 7);
	assert_int_equal(share(0), 8);
	assert_int_equal(tsi_share_rivals(list, n, 0), 0);
}

static void streams_with_readers_share(void **state)
{
	(void)state;
	add(0, 6);
	add(0, 6);
	add(0, 6);
	/* The lower key has the CPU that is left over. */
	assert_int_equal(share(0), 2);
	assert_int_equal(share(1), 2);
	assert_int_equal(share(2), 3);
	assert_int_equal(tsi_share_rivals(list, n, 0), 2);
}

static void a_stream_without_readers_takes_none(void **state)
{
	(void)state;
	add(0, 7);
	add(0, 7)->readers = 0;
	assert_int_equal(share(0), 8);
	assert_int_equal(tsi_share_rivals(list, n, 0), 0);
	/* The stream without readers hears what it has once it has one. */
	assert_int_equal(share(1), 4);
}

static void a_stream_with_few_threads_leaves_the_rest(void **state)
{
	(void)state;
	add(0, 7);
	add(0, 7)->wants = 1;
	add(0, 7);
	assert_int_equal(share(0), 3);
	assert_int_equal(share(1), 1);
	assert_int_equal(share(2), 4);
}

static void everybody_has_one(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++)
		add(0, 1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(share(i), 1);
}

static void other_cpus_are_no_rivals(void **state)
{
	(void)state;
	add(0, 3);
	add(4, 7);
	assert_int_equal(share(0), 4);
	assert_int_equal(share(1), 4);
	assert_int_equal(tsi_share_rivals(list, n, 0), 0);
}

/* The one that may go elsewhere does. */
static void cpus_of_one_alone_are_given_first(void **state)
{
	(void)state;
	add(0, 1);
	add(0, 3);
	assert_int_equal(share(0), 2);
	assert_int_equal(share(1), 2);
	add(100, 163);
	assert_int_equal(share(2), 64);
}

static void a_quota_is_shared_within_its_cgroup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tsi_share_stream *s = add(0, 15);

		s->group = 7;
		s->quota = 5;
	}
	add(0, 15);
	assert_int_equal(share(0), 1);
	assert_int_equal(share(1), 2);
	assert_int_equal(share(2), 2);
	/* Outside of it, what the quota can't use. */
	assert_int_equal(share(3), 11);
}

/* Whatever the list: no CPU is given twice, and none is idle that is wanted. */
static void the_division_is_the_same_in_any_order(void **state)
{
	(void)state;
	srand(5);
	for (unsigned round = 0; round < 200; round++) {
		unsigned sum = 0, had[8];

		n = 0;
		for (unsigned i = 0; i < 8; i++) {
			unsigned first = (unsigned)rand() % 32;
			unsigned many = (unsigned)rand() % 32;
			struct tsi_share_stream *s = add(first, first + many);

			s->wants = 1 + (unsigned)rand() % 20;
			s->readers = (unsigned)rand() % 3;
		}
		for (unsigned i = 0; i < 8; i++) {
			had[i] = share(i);
			assert_in_range(had[i], 1, list[i].wants);
			sum += list[i].readers ? had[i] : 0;
		}
		/* A stream for which nothing is left has one all the same. */
		assert_in_range(sum, 0, 64 + 8);
		for (unsigned i = 0; i < 4; i++) {
			struct tsi_share_stream s = list[i];

			list[i] = list[7 - i];
			list[7 - i] = s;
		}
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(share(i), had[7 - i]);
	}
}

#define of_streams(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		of_streams(a_stream_alone_has_all_cpus),
		of_streams(streams_with_readers_share),
		of_streams(a_stream_without_readers_takes_none),
		of_streams(a_stream_with_few_threads_leaves_the_rest),
		of_streams(everybody_has_one),
		of_streams(other_cpus_are_no_rivals),
		of_streams(cpus_of_one_alone_are_given_first),
		of_streams(a_quota_is_shared_within_its_cgroup),
		of_streams(the_division_is_the_same_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
