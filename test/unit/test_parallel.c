/* SPDX-License-Identifier: MIT */
/*
 * test_parallel.c - a loop over pieces of work by several threads.
 */
#include "data/parallel.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

#define PIECES 100

static int count(void *arg, uint64_t first, uint64_t last)
{
	_Atomic int *seen = arg;

	while (first < last)
		atomic_fetch_add(&seen[first++], 1);
	return 0;
}

static void each_piece_is_done_once(void **state)
{
	(void)state;
	for (uint64_t chunk = 1; chunk <= 2 * PIECES; chunk += 33) {
		_Atomic int seen[PIECES] = { 0 };

		assert_int_equal(tsi_parallel(4, PIECES, chunk, count, seen),
				 0);
		for (int i = 0; i < PIECES; i++)
			assert_int_equal(atomic_load(&seen[i]), 1);
	}
	assert_int_equal(tsi_parallel(4, 0, 1, count, NULL), 0);
}

/* Pieces 0 to 3 are there at once, and fail from the last to the first. */
static int fail_backwards(void *arg, uint64_t first, uint64_t last)
{
	_Atomic int *begun = arg, *left = begun + 1;

	atomic_fetch_add(begun, 1);
	while (atomic_load(begun) < 4)
		sched_yield();
	while (atomic_load(left) != (int)last)
		sched_yield();
	tsi_err(TSOCK_EDATA, "piece %d", (int)first);
	atomic_fetch_sub(left, 1);
	return TSOCK_EDATA;
}

static void the_first_of_several_failures_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		_Atomic int shared[2] = { 0, 4 };

		assert_int_equal(
			tsi_parallel(4, PIECES, 1, fail_backwards, shared),
			TSOCK_EDATA);
		assert_string_equal(tsock_errmsg(), "piece 0");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_piece_is_done_once),
		cmocka_unit_test(the_first_of_several_failures_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
