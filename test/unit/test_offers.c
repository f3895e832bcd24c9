/* SPDX-License-Identifier: MIT */
/*
 * test_offers.c - the table of rows kept for consumers that asked to join.
 */
#include "serve/offers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct tsi_offers offers;

static int clear(void **state)
{
	(void)state;
	memset(&offers, 0, sizeof(offers));
	return 0;
}

/* The JOIN of consumer number n. */
static struct tsi_msg_join join_of(unsigned n)
{
	struct tsi_msg_join j = { .batch_size = n };

	memcpy(j.nonce, &n, sizeof(n));
	return j;
}

static const struct tsi_offer *add(unsigned n, unsigned view, int64_t now_ms)
{
	struct tsi_msg_join j = join_of(n);

	return tsi_offers_add(&offers, &j, view, now_ms);
}

static bool has(unsigned n)
{
	struct tsi_msg_join j = join_of(n);

	return tsi_offers_find(&offers, j.nonce) != NULL;
}

static void a_token_is_good_once(void **state)
{
	uint8_t token[TSI_TOKEN];
	struct tsi_offer out;

	(void)state;
	memcpy(token, add(7, 2, 0)->token, sizeof(token));
	assert_int_equal(tsi_offers_count(&offers), 1);
	token[0] ^= 1;
	assert_false(tsi_offers_take(&offers, token, &out));
	token[0] ^= 1;
	assert_true(tsi_offers_take(&offers, token, &out));
	assert_int_equal(out.join.batch_size, 7);
	assert_int_equal(out.view, 2);
	assert_false(tsi_offers_take(&offers, token, &out));
	assert_int_equal(tsi_offers_count(&offers), 0);
}

static void no_two_tokens_are_equal(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		assert_non_null(add(i, 0, 0));
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(offers.offer[i].token,
						offers.offer[k].token,
						TSI_TOKEN);
}

static void an_offer_lasts_ten_seconds(void **state)
{
	(void)state;
	add(1, 0, 1000);
	add(2, 0, 3000);
	tsi_offers_expire(&offers, 11000);
	assert_true(has(1));
	tsi_offers_expire(&offers, 11001);
	assert_false(has(1));
	assert_true(has(2));
}

static void a_full_table_gives_up_the_oldest_offer(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		assert_non_null(add(i, 0, (i + 5) % TSI_OFFERS));
	/* The oldest was made at 0; its consumer has a second to connect. */
	assert_null(add(100, 0, 999));
	assert_int_equal(tsi_offers_count(&offers), TSI_OFFERS);
	assert_non_null(add(100, 0, 1000));
	assert_true(has(100));
	assert_false(has(TSI_OFFERS - 5));
	assert_int_equal(tsi_offers_count(&offers), TSI_OFFERS);
}

static void offers_are_withdrawn(void **state)
{
	struct tsi_msg_join j = join_of(3);

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		add(i, i % 2 + 1, 0);
	tsi_offers_withdraw(&offers, j.nonce);
	assert_false(has(3));
	assert_int_equal(tsi_offers_count(&offers), 5);
	assert_true(tsi_offers_for_view(&offers, 2));
	tsi_offers_withdraw_view(&offers, 2);
	assert_false(tsi_offers_for_view(&offers, 2));
	assert_true(tsi_offers_for_view(&offers, 1));
	assert_int_equal(tsi_offers_count(&offers), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_token_is_good_once, clear),
		cmocka_unit_test_setup(no_two_tokens_are_equal, clear),
		cmocka_unit_test_setup(an_offer_lasts_ten_seconds, clear),
		cmocka_unit_test_setup(a_full_table_gives_up_the_oldest_offer,
				       clear),
		cmocka_unit_test_setup(offers_are_withdrawn, clear),
	};

	return cmocka_run_group_tests_name("offers", tests, NULL, NULL);
}
