/* SPDX-License-Identifier: MIT */
/*
 * test_words.c - the random words of an operation: shares, by their moments.
 * test/parity/test_draws.py compares what recipes draw with torchvision and
 * timm.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transforms/words.h"

#define SAMPLES 40000

static struct tsi_words words_of(uint64_t index)
{
	return tsi_words_of(3, 1, index, 9);
}

static void shares_are_a_function_of_their_place(void **state)
{
	struct tsi_words w = words_of(5), same = words_of(5),
			 other = words_of(6);
	double a[4], b[4], c[4];

	(void)state;
	tsi_words_shares(&w, 0.7, 4, a);
	tsi_words_shares(&same, 0.7, 4, b);
	tsi_words_shares(&other, 0.7, 4, c);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	/* As many words were taken. */
	assert_int_equal(tsi_words_next(&w), tsi_words_next(&same));
}

/* The sum is 1, and no share is outside, also of the smallest alphas. */
static void shares_are_parts_of_one(void **state)
{
	static const double alphas[] = { 1e-3, 0.01, 0.5, 1, 7, 1e3 };
	double share[10];

	(void)state;
	for (unsigned k = 0; k < 6; k++)
		for (uint64_t index = 0; index < 500; index++) {
			struct tsi_words w = words_of(index);
			double sum = 0;

			tsi_words_shares(&w, alphas[k], 10, share);
			for (unsigned i = 0; i < 10; i++) {
				assert_true(share[i] >= 0 && share[i] <= 1);
				sum += share[i];
			}
			assert_true(fabs(sum - 1) < 1e-12);
		}
	for (uint64_t index = 0; index < 500; index++) {
		struct tsi_words w = words_of(index);

		tsi_words_shares(&w, 0.3, 1, share);
		assert_true(share[0] == 1);
	}
}

/*
 * Each of n shares has the mean 1 / n and the variance
 * (1 / n) * (1 - 1 / n) / (n * alpha + 1).
 */
static void has_moments(double alpha, unsigned n)
{
	const double mean = 1.0 / n;
	const double variance = mean * (1 - mean) / (n * alpha + 1);
	double sum = 0, squares = 0, share[5], off;

	for (uint64_t index = 0; index < SAMPLES; index++) {
		struct tsi_words w = words_of(index);

		tsi_words_shares(&w, alpha, n, share);
		sum += share[n - 1];
		squares += (share[n - 1] - mean) * (share[n - 1] - mean);
	}
	off = (sum / SAMPLES - mean) / sqrt(variance / SAMPLES);
	if (fabs(off) > 4 || fabs(squares / SAMPLES / variance - 1) > 0.05)
		fail_msg("alpha %g, %u shares: the mean is %g and the variance "
			 "%g, not %g and %g",
			 alpha, n, sum / SAMPLES, squares / SAMPLES, mean,
			 variance);
}

static void shares_are_spread_by_alpha(void **state)
{
	(void)state;
	has_moments(0.05, 2);
	has_moments(0.5, 3);
	has_moments(0.99, 2);
	has_moments(1, 2);
	has_moments(1, 5);
	has_moments(2.5, 3);
	has_moments(100, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_a_function_of_their_place),
		cmocka_unit_test(shares_are_parts_of_one),
		cmocka_unit_test(shares_are_spread_by_alpha),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
