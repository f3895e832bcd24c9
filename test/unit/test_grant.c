/* SPDX-License-Identifier: MIT */
/*
 * test_grant.c - what is granted is claimed whole or not; test_production has
 * the threads.
 */
#include "serve/grant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_grant_is_taken_whole_or_not(void **state)
{
	struct tsi_grant g;
	uint64_t first = 77;

	(void)state;
	tsi_grant_init(&g, 100);
	assert_int_equal(tsi_grant_take(&g, 1, &first), 0);
	tsi_grant_open(&g, 5);
	assert_int_equal(tsi_grant_take(&g, 6, &first), 0);
	assert_int_equal(tsi_grant_take(&g, 0, &first), 0);
	assert_int_equal(first, 77);
	assert_int_equal(tsi_grant_take(&g, 3, &first), 3);
	assert_int_equal(first, 100);
	assert_int_equal(tsi_grant_take(&g, 3, &first), 0);
	assert_int_equal(tsi_grant_take(&g, 2, &first), 2);
	assert_int_equal(first, 103);
	assert_int_equal(tsi_grant_claimed(&g), 105);
	assert_int_equal(tsi_grant_close(&g), 105);
	tsi_grant_move(&g, 1000);
	tsi_grant_open(&g, UINT64_C(1) << 40);
	assert_int_equal(tsi_grant_take(&g, TSI_GRANT_MOST, &first),
			 TSI_GRANT_MOST);
	assert_int_equal(first, 1000);
	assert_int_equal(tsi_grant_take(&g, 1, &first), 0);
	assert_int_equal(tsi_grant_close(&g), 1000 + TSI_GRANT_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grant_is_taken_whole_or_not),
	};

	return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
