/* SPDX-License-Identifier: MIT */
/*
 * test_shuffle.c - a shuffle is Fisher's and Yates's, one place after another,
 * by the words of one philox stream.
 */
#include "order/shuffle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"

#define TAG 0x6f726472u

/* The number-th word of the stream. */
static uint32_t word(uint64_t seed, uint64_t epoch, uint32_t segment,
		     uint64_t number)
{
	struct tsi_philox_ctr tag = { { TAG, TSI_SHUFFLE_EPOCH, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);
	struct tsi_philox_ctr at = { { (uint32_t)(number / 4), segment,
				       (uint32_t)epoch,
				       (uint32_t)(epoch >> 32) } };

	return tsi_philox((uint64_t)k.v[1] << 32 | k.v[0], at).v[number % 4];
}

/* How many words were passed by, since they favour low places. */
static unsigned shuffle(uint32_t *v, uint32_t n, uint64_t seed, uint64_t epoch,
			uint32_t segment)
{
	unsigned passed = 0;
	uint64_t number = 0;

	for (uint32_t i = n; i > 1; i--) {
		uint64_t m;
		uint32_t j, t;

		for (;; passed++) {
			m = (uint64_t)word(seed, epoch, segment, number++) * i;
			if ((uint32_t)m >= (0u - i) % i)
				break;
		}
		j = (uint32_t)(m >> 32);
		t = v[i - 1];
		v[i - 1] = v[j];
		v[j] = t;
	}
	return passed;
}

static uint32_t *numbers(uint32_t n)
{
	uint32_t *v = malloc(n * sizeof(*v) + 1);

	assert_non_null(v);
	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
	return v;
}

static unsigned compare(uint32_t n)
{
	uint64_t seed = n * UINT64_C(77), epoch = n + (UINT64_C(3) << 32);
	uint32_t *a = numbers(n), *b = numbers(n);
	unsigned passed = shuffle(a, n, seed, epoch, 5);

	tsi_shuffle_philox(b, n, tsi_shuffle_key(seed, TSI_SHUFFLE_EPOCH),
			   epoch, 5);
	assert_memory_equal(a, b, n * sizeof(*a));
	free(a);
	free(b);
	return passed;
}

static void places_are_drawn_one_after_another(void **state)
{
	static const uint32_t length[] = { 0,   1,   2,   3,   31,  32,
					   33,  34,  63,  64,  65,  66,
					   127, 129, 130, 257, 1000 };

	(void)state;
	for (unsigned k = 0; k < sizeof(length) / sizeof(length[0]); k++)
		compare(length[k]);
}

static void words_that_favour_low_places_are_passed_by(void **state)
{
	(void)state;
	assert_true(compare(1u << 19) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_drawn_one_after_another),
		cmocka_unit_test(words_that_favour_low_places_are_passed_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
