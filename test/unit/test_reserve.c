/* SPDX-License-Identifier: MIT */
/*
 * test_reserve.c - arrays as long as a data set, of which little is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/reserve.h"

static void arrays_of_all_lengths_are_zero(void **state)
{
	/* Up to more memory than machines have. */
	static const uint64_t length[] = {
		0, 1, 131071, 131072, 131073, 1 << 20, UINT64_C(1) << 38
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		uint64_t n = length[i];
		uint64_t *p = tsi_reserve(n, sizeof(*p));

		assert_non_null(p);
		if (n) {
			assert_int_equal(p[0] | p[n / 2] | p[n - 1], 0);
			p[0] = p[n - 1] = 7;
			assert_int_equal(p[n - 1], 7);
		}
		tsi_reserve_free(p, n, sizeof(*p));
	}
	tsi_reserve_free(NULL, 5, 8);
	tsi_reserve_free(NULL, UINT64_C(1) << 38, 8);
}

static void what_no_address_reaches_is_refused(void **state)
{
	(void)state;
	/* Of which 2 MiB are left in 64 bits. */
	assert_null(tsi_reserve((UINT64_C(1) << 61) + (1 << 18), 8));
	assert_null(tsi_reserve(UINT64_MAX, 8));
	assert_null(tsi_reserve(UINT64_C(1) << 60, 8));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_all_lengths_are_zero),
		cmocka_unit_test(what_no_address_reaches_is_refused),
	};

	return cmocka_run_group_tests_name("reserve", tests, NULL, NULL);
}
