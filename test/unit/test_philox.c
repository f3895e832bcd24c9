/* SPDX-License-Identifier: MIT */
/*
 * test_philox.c - the generator's published answers, and that it is pure.
 */
#include "base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox_kernel.h"

/* "Known answer test" vectors of philox4x32-10, Random123's kat_vectors. */
static void published_answers_come_out(void **state)
{
	static const struct {
		uint64_t key;
		struct tsi_philox_ctr ctr, answer;
	} kat[] = {
		{ 0,
		  { { 0, 0, 0, 0 } },
		  { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } } },
		{ UINT64_MAX,
		  { { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX } },
		  { { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } } },
		{ 0x299f31d0a4093822,
		  { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } },
		  { { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } } },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(kat) / sizeof(kat[0]); i++) {
		struct tsi_philox_ctr r = tsi_philox(kat[i].key, kat[i].ctr);

		assert_memory_equal(&r, &kat[i].answer, sizeof(r));
	}
}

static void same_key_and_counter_give_the_same_words(void **state)
{
	struct tsi_philox_ctr ctr = { { 1, 2, 3, 4 } }, a, b;

	(void)state;
	a = tsi_philox(5, ctr);
	ctr.v[0]++;
	tsi_philox(5, ctr);
	ctr.v[0]--;
	b = tsi_philox(5, ctr);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void every_word_of_key_and_counter_matters(void **state)
{
	struct tsi_philox_ctr zero = { { 0, 0, 0, 0 } };
	struct tsi_philox_ctr base = tsi_philox(0, zero), r;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct tsi_philox_ctr ctr = zero;

		ctr.v[i] = 1;
		r = tsi_philox(0, ctr);
		assert_memory_not_equal(&r, &base, sizeof(r));
	}
	r = tsi_philox(1, zero);
	assert_memory_not_equal(&r, &base, sizeof(r));
	r = tsi_philox(1ull << 32, zero);
	assert_memory_not_equal(&r, &base, sizeof(r));
}

/* Across the end of the first word, too. */
static void many_counters_have_the_words_of_each_one(void **state)
{
	static const uint32_t first[] = { 0, 77, UINT32_MAX - 9 };

	(void)state;
	for (int l = TSI_SIMD_SCALAR; l <= (int)tsi_simd_best(); l++) {
		struct tsi_philox_kernel k;

		tsi_philox_kernel_init(&k, l);
		for (unsigned i = 0; i < 3; i++) {
			uint64_t key = UINT64_C(0x9123456789abcdef) * (i + 1);
			struct tsi_philox_ctr ctr = { { first[i], 0x87654321, i,
							UINT32_MAX } };
			struct tsi_philox_ctr out[3 * TSI_PHILOX_STEP];

			k.run(key, ctr, 3 * TSI_PHILOX_STEP, out);
			for (unsigned j = 0; j < 3 * TSI_PHILOX_STEP; j++) {
				struct tsi_philox_ctr one =
					tsi_philox(key, ctr);

				assert_memory_equal(&out[j], &one, sizeof(one));
				ctr.v[0]++;
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_answers_come_out),
		cmocka_unit_test(same_key_and_counter_give_the_same_words),
		cmocka_unit_test(every_word_of_key_and_counter_matters),
		cmocka_unit_test(many_counters_have_the_words_of_each_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
