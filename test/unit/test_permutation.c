/* SPDX-License-Identifier: MIT */
/*
 * test_permutation.c - a permutation that is evaluated: that it is one, the same
 * in each way to evaluate it, and that counting can't tell it from chance.
 */
#include "order/permutation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order/permutation_kernel.h"
#include "order/shuffle.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LEAST TSI_PERMUTATION_MIN
#define MOST TSI_PERMUTATION_MAX

struct instance {
	struct tsi_permutation p;
	uint32_t key[TSI_PERMUTATION_KEY];
};

static struct instance make(uint64_t n, uint64_t seed, uint64_t epoch)
{
	struct instance i;

	tsi_permutation_init(&i.p, n);
	tsi_shuffle_words(tsi_shuffle_key(seed, TSI_SHUFFLE_EPOCH), epoch, 0,
			  i.key);
	return i;
}

static uint64_t at(const struct instance *i, uint64_t x)
{
	tsi_permutation_run(&i->p, i->key, &x, 1);
	return x;
}

/* ------------------------------------------------------------------------
 * A permutation
 */

/* Those of all numbers, to be freed. */
static uint64_t *all_of(const struct instance *i)
{
	uint64_t *v = malloc(i->p.n * sizeof(*v));

	assert_non_null(v);
	for (uint64_t x = 0; x < i->p.n; x++)
		v[x] = x;
	tsi_permutation_run(&i->p, i->key, v, (unsigned)i->p.n);
	return v;
}

static void assert_all_come_once(uint64_t n)
{
	struct instance i = make(n, 7, n);
	uint8_t *seen = calloc(n, 1);
	uint64_t *v = all_of(&i);

	assert_non_null(seen);
	for (uint64_t x = 0; x < n; x++) {
		assert_true(v[x] < n);
		assert_int_equal(seen[v[x]]++, 0);
	}
	free(v);
	free(seen);
}

/* Primes, squares, and what is beside them. */
static void every_number_comes_once(void **state)
{
	static const uint64_t n[] = { LEAST - 2, LEAST - 1, LEAST, LEAST + 1,
				      LEAST + 2, 66048,     66049, 66050,
				      65792,     65793,     99991, 131072,
				      359 * 359, 1 << 18 };

	(void)state;
	for (uint64_t small = 1; small <= 300; small++)
		assert_all_come_once(small);
	for (size_t k = 0; k < COUNT(n); k++)
		assert_all_come_once(n[k]);
}

static uint32_t mix(uint32_t x, uint32_t m)
{
	x *= m;
	return x ^ x >> TSI_PERMUTATION_SHIFT;
}

static uint32_t word(uint32_t v, uint32_t first, uint32_t second)
{
	uint32_t x = mix(v ^ first, TSI_PERMUTATION_M0) ^ second;

	return mix(mix(x, TSI_PERMUTATION_M1), TSI_PERMUTATION_M2);
}

/* v less another number below m, modulo m. */
static uint32_t less(uint32_t v, uint32_t w, uint32_t m)
{
	uint32_t by = (uint32_t)((uint64_t)w * m >> 32);

	return v >= by ? v - by : v + (m - by);
}

/* The number in whose place y comes. */
static uint64_t place_of(const struct instance *i, uint64_t y)
{
	const struct tsi_permutation *p = &i->p;

	do {
		uint32_t r = (uint32_t)(y / p->columns);
		uint32_t c = (uint32_t)(y % p->columns);

		for (uint32_t k = TSI_PERMUTATION_ROUNDS; k > 0; k -= 2) {
			c = less(c, word(r, i->key[1], i->key[3] + k - 1),
				 p->columns);
			r = less(r, word(c, i->key[0], i->key[2] + k - 2),
				 p->rows);
		}
		y = (uint64_t)r * p->columns + c;
	} while (y >= p->n);
	return y;
}

/* So no two numbers have the same, and each comes. */
static void it_can_be_undone_at_any_size(void **state)
{
	static const uint64_t n[] = {
		LEAST,
		LEAST + 1,
		1000003,
		(UINT64_C(1) << 32) - 1,
		UINT64_C(1) << 32,
		(UINT64_C(1) << 32) + 1,
		(UINT64_C(1) << 40) + 15,
		(UINT64_C(1) << 48) - 1,
		UINT64_C(1) << 48,
		(UINT64_C(1) << 48) + 1,
		UINT64_C(2147483647) << 31,
		MOST - 1,
		MOST,
	};

	(void)state;
	for (size_t k = 0; k < COUNT(n); k++) {
		struct instance i = make(n[k], k, 3);
		uint64_t x = 0;

		for (unsigned j = 0; j < 500; j++) {
			assert_true(at(&i, x) < n[k]);
			assert_true(place_of(&i, at(&i, x)) == x);
			assert_true(at(&i, place_of(&i, x)) == x);
			/* All over, and both ends. */
			x = j == 100 ? n[k] - 1
			    : j & 1  ? n[k] / 500 * j
				     : at(&i, x);
		}
	}
}

/* ------------------------------------------------------------------------
 * In each way
 */

static void runs_have_what_their_numbers_have(void **state)
{
	struct instance i = make(LEAST + 1, 5, 5); /* leaves the table often */

	(void)state;
	for (unsigned m = 0; m <= 200; m += m < 70 ? 1 : 13) {
		uint64_t x[200];

		for (unsigned k = 0; k < m; k++)
			x[k] = (k * UINT64_C(331) + m * 997) % i.p.n;
		tsi_permutation_run(&i.p, i.key, x, m);
		for (unsigned k = 0; k < m; k++)
			assert_true(
				x[k] ==
				at(&i, (k * UINT64_C(331) + m * 997) % i.p.n));
	}
}

static void compare_level(enum tsi_simd level, uint64_t n)
{
	enum { M = 2 * TSI_PERMUTATION_STEP };
	struct tsi_permutation_kernel k, plain;
	uint32_t row[2][M], column[2][M];
	struct instance i = make(n, 1, n);

	tsi_permutation_kernel_init(&k, level);
	tsi_permutation_kernel_init(&plain, TSI_SIMD_SCALAR);
	for (unsigned j = 0; j < M; j++) {
		row[0][j] = j < 5 ? i.p.rows - 1 - j : j * 77 % i.p.rows;
		column[0][j] =
			j < 5 ? i.p.columns - 1 - j : j * 7 % i.p.columns;
	}
	memcpy(row[1], row[0], sizeof(row[0]));
	memcpy(column[1], column[0], sizeof(column[0]));
	plain.run(&i.p, i.key, row[0], column[0], M);
	k.run(&i.p, i.key, row[1], column[1], M);
	assert_memory_equal(row[0], row[1], sizeof(row[0]));
	assert_memory_equal(column[0], column[1], sizeof(column[0]));
}

static void every_level_gives_the_numbers_of_plain_c(void **state)
{
	(void)state;
	for (int l = TSI_SIMD_SCALAR; l <= (int)tsi_simd_best(); l++)
		for (unsigned bits = 16; bits <= 62; bits++) {
			uint64_t n = UINT64_C(1) << bits;

			compare_level((enum tsi_simd)l, n);
			compare_level((enum tsi_simd)l, n - n / 7);
		}
}

/* ------------------------------------------------------------------------
 * As chance has it
 *
 * Each count is compared with its expectation.  For a uniform permutation the
 * results below would be those of a normal distribution; a network of 4 rounds,
 * or words of one product, have some beyond 20.
 */

#define EPOCHS 10
#define LIMIT 4.5

static double beyond(const double *count, unsigned cells, double total)
{
	double mean = total / cells, sum = 0;

	for (unsigned i = 0; i < cells; i++)
		sum += (count[i] - mean) * (count[i] - mean) / mean;
	return (sum - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

#define B 128
#define D 256

struct counts {
	double high[B * B], low[B * B], mixed[B * B]; /* position, value */
	double next[D], column[D], epoch[D]; /* differences of values */
	double pairs, columns, epochs;
};

static void count(struct counts *c, const struct instance *i, const uint64_t *v,
		  const uint64_t *before)
{
	uint64_t n = i->p.n, below = i->p.columns;

	for (uint64_t x = 0; x < n; x++) {
		c->high[x * B / n * B + v[x] * B / n]++;
		c->low[x % B * B + v[x] % B]++;
		c->mixed[x % B * B + v[x] * B / n]++;
		/* A difference of 0 can't be, so there are n - 1. */
		if (x + 1 < n)
			c->next[((v[x + 1] + n - v[x]) % n - 1) * D /
				(n - 1)]++;
		if (x + below < n)
			c->column[((v[x + below] + n - v[x]) % n - 1) * D /
				  (n - 1)]++;
		if (before)
			c->epoch[((v[x] + n - before[x]) % n) * D / n]++;
	}
	c->pairs += (double)(n - 1);
	c->columns += (double)(n - below);
	c->epochs += before ? (double)n : 0;
}

/* By epochs, or by seeds. */
static void assert_even(bool by_seed)
{
	struct counts *c = calloc(1, sizeof(*c));
	uint64_t *before = NULL;
	double n = (double)LEAST * EPOCHS;

	assert_non_null(c);
	for (uint64_t e = 0; e < EPOCHS; e++) {
		struct instance i =
			make(LEAST, by_seed ? e : 1, by_seed ? 0 : e);
		uint64_t *v = all_of(&i);

		count(c, &i, v, before);
		free(before);
		before = v;
	}
	free(before);
	assert_true(fabs(beyond(c->high, B * B, n)) < LIMIT);
	assert_true(fabs(beyond(c->low, B * B, n)) < LIMIT);
	assert_true(fabs(beyond(c->mixed, B * B, n)) < LIMIT);
	assert_true(fabs(beyond(c->next, D, c->pairs)) < LIMIT);
	assert_true(fabs(beyond(c->column, D, c->columns)) < LIMIT);
	assert_true(fabs(beyond(c->epoch, D, c->epochs)) < LIMIT);
	free(c);
}

static void numbers_and_pairs_go_everywhere_alike(void **state)
{
	(void)state;
	assert_even(false);
	assert_even(true);
}

/* How long values rise: of three that follow each other, six orders. */
static void all_orders_of_three_are_alike(void **state)
{
	double six[6] = { 0 }, triples = 0;

	(void)state;
	for (uint64_t e = 0; e < EPOCHS; e++) {
		struct instance i = make(LEAST, 3, e);
		uint64_t *v = all_of(&i);

		for (uint64_t x = 0; x + 2 < LEAST; x += 3, triples++) {
			unsigned first = (v[x] > v[x + 1]) + (v[x] > v[x + 2]);

			six[2 * first + (v[x + 1] > v[x + 2])]++;
		}
		free(v);
	}
	assert_true(fabs(beyond(six, 6, triples)) < LIMIT);
}

/* A bit of the number, of the seed or of the epoch changes half of the bits. */
static void every_bit_changes_half_of_the_bits(void **state)
{
	enum { BITS = 48, TRIES = 400 };

	(void)state;
	for (unsigned what = 0; what < BITS + 16; what++) {
		unsigned changed[BITS] = { 0 };

		for (uint64_t j = 0; j < TRIES; j++) {
			uint64_t seed = j * 977, epoch = j, x = j * 0x9e3779b97;
			struct instance a = make(UINT64_C(1) << BITS, seed,
						 epoch),
					b;
			uint64_t both;

			if (what >= BITS + 8)
				epoch ^= UINT64_C(1) << (what - BITS - 8) * 9;
			else if (what >= BITS)
				seed ^= UINT64_C(1) << (what - BITS) * 9;
			b = make(UINT64_C(1) << BITS, seed, epoch);
			both = at(&a, x);
			both ^= at(&b,
				   what < BITS ? x ^ UINT64_C(1) << what : x);
			for (unsigned k = 0; k < BITS; k++)
				changed[k] += both >> k & 1;
		}
		/* Five standard deviations of ten. */
		for (unsigned k = 0; k < BITS; k++)
			assert_in_range(changed[k], TRIES / 2 - 50,
					TRIES / 2 + 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_comes_once),
		cmocka_unit_test(it_can_be_undone_at_any_size),
		cmocka_unit_test(runs_have_what_their_numbers_have),
		cmocka_unit_test(every_level_gives_the_numbers_of_plain_c),
		cmocka_unit_test(numbers_and_pairs_go_everywhere_alike),
		cmocka_unit_test(all_orders_of_three_are_alike),
		cmocka_unit_test(every_bit_changes_half_of_the_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
