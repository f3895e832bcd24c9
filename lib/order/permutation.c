/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - a random permutation, evaluated where it is asked for.
 */
#include "order/permutation.h"

#include <pthread.h>
#include <stdbool.h>

#include "order/permutation_kernel.h"

#define RUN (4 * TSI_PERMUTATION_STEP) /* numbers that are split up at once */

static struct tsi_permutation_kernel kernel;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ------------------------------------------------------------------------
 * The network
 */

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

/* v below m, and another number below m is added to it. */
static uint32_t add(uint32_t v, uint32_t w, uint32_t m)
{
	v += (uint32_t)((uint64_t)w * m >> 32);
	return v < m ? v : v - m;
}

static void pass(const struct tsi_permutation *p, const uint32_t *key,
		 uint32_t *row, uint32_t *column)
{
	uint32_t r = *row, c = *column;

	for (uint32_t i = 0; i < TSI_PERMUTATION_ROUNDS; i += 2) {
		r = add(r, word(c, key[0], key[2] + i), p->rows);
		c = add(c, word(r, key[1], key[3] + i + 1), p->columns);
	}
	*row = r;
	*column = c;
}

static void run(const struct tsi_permutation *p, const uint32_t *key,
		uint32_t *row, uint32_t *column, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pass(p, key, &row[i], &column[i]);
}

void tsi_permutation_kernel_init(struct tsi_permutation_kernel *k,
				 enum tsi_simd level)
{
	k->run = run;
	TSI_SIMD_INIT(tsi_permutation_kernel_init, k, level);
}

static void fill_kernel(void)
{
	tsi_permutation_kernel_init(&kernel, tsi_simd_best());
}

/* ------------------------------------------------------------------------
 * Numbers
 */

/* The least number whose square is n or more. */
static uint32_t root(uint64_t n)
{
	uint32_t r = 0;

	for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1)
		if ((uint64_t)(r + bit) * (r + bit) <= n - 1)
			r += bit;
	return r + 1;
}

void tsi_permutation_init(struct tsi_permutation *p, uint64_t n)
{
	p->n = n;
	p->rows = root(n);
	p->columns = (uint32_t)(n / p->rows + (n % p->rows > 0));
	p->inverse = UINT64_MAX / p->columns;
}

static void split(const struct tsi_permutation *p, uint64_t x, uint32_t *row,
		  uint32_t *column)
{
	/* At most one less than it is: x is below 2^62. */
	uint64_t r = (uint64_t)((unsigned __int128)x * p->inverse >> 64);
	uint64_t c = x - r * p->columns;
	bool more = c >= p->columns;

	*row = (uint32_t)(r + more);
	*column = (uint32_t)(c - (more ? p->columns : 0));
}

static uint64_t join(const struct tsi_permutation *p, uint32_t row,
		     uint32_t column)
{
	return (uint64_t)row * p->columns + column;
}

static uint64_t walk(const struct tsi_permutation *p, const uint32_t *key,
		     uint32_t row, uint32_t column)
{
	do
		pass(p, key, &row, &column);
	while (join(p, row, column) >= p->n);
	return join(p, row, column);
}

static void run_some(const struct tsi_permutation *p, const uint32_t *key,
		     uint64_t *x, unsigned m)
{
	uint32_t row[RUN], column[RUN];
	unsigned i;

	for (i = 0; i < m; i++)
		split(p, x[i], &row[i], &column[i]);
	for (; i % TSI_PERMUTATION_STEP; i++)
		row[i] = column[i] = 0;
	kernel.run(p, key, row, column, i);
	for (i = 0; i < m; i++) {
		x[i] = join(p, row[i], column[i]);
		if (x[i] >= p->n)
			x[i] = walk(p, key, row[i], column[i]);
	}
}

void tsi_permutation_run(const struct tsi_permutation *p,
			 const uint32_t key[TSI_PERMUTATION_KEY], uint64_t *x,
			 unsigned m)
{
	pthread_once(&once, fill_kernel);
	if (m == 1) {
		uint32_t row, column;

		split(p, *x, &row, &column);
		*x = walk(p, key, row, column);
		return;
	}
	while (m) {
		unsigned some = m < RUN ? m : RUN;

		run_some(p, key, x, some);
		x += some;
		m -= some;
	}
}
