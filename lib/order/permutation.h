/* SPDX-License-Identifier: MIT */
/*
 * permutation.h - a random permutation of the numbers below n that is evaluated
 * where it is asked for: no memory, and no number before another.
 *
 * It is a Feistel network over a table of `rows` rows and `columns` columns,
 * rows the least number whose square is n or more, columns n / rows rounded up.
 * Number x is in row x / columns, column x % columns.  ROUNDS rounds are made,
 * i from 0 on: an even one adds f(i, column) to the row, modulo rows; an odd one
 * adds f(i, row) to the column, modulo columns.  Each round can be undone, so
 * the network is a permutation of the table.  A number that leaves it at n or
 * above goes through it again, until it is below n ("cycle walking": Black and
 * Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).  Fewer than
 * rows of the table's numbers are, so that is rare.
 *
 * f(i, v) is a 32-bit word w as w * m / 2^32 rounded down, m being rows or
 * columns.  w is v xor key[i % 2], mixed by M0, xor (key[2 + i % 2] + i), mixed by
 * M1 and then by M2, modulo 2^32: to mix is to multiply by the number, and to
 * xor the product with itself shifted right by 15.  The key's words
 * are Philox's (shuffle.h).  Words by five rounds of Philox2x32 gave no better
 * counts and took three times as long.
 *
 * How many rounds: test/unit/test_permutation.c counts where numbers and pairs
 * of numbers go, at the least n.  Networks of 3 and 4 rounds are told from chance
 * by 6.5 million numbers, one of 5 not by 98 million; the theory asks for 5 or 6
 * (Patarin, "Security of random Feistel schemes with 5 or more rounds", CRYPTO
 * 2004).  With 6 rounds, words of one product are told from chance, those of two
 * aren't.
 */
#ifndef TSI_ORDER_PERMUTATION_H
#define TSI_ORDER_PERMUTATION_H

#include <stdint.h>

/*
 * n is from MIN to MAX.  Below it a table has so few rows that a permutation is
 * told from a uniform one by counting; and a shuffle is made in two
 * milliseconds.
 */
#define TSI_PERMUTATION_MIN (UINT64_C(1) << 16)
#define TSI_PERMUTATION_MAX (UINT64_C(1) << 62)

#define TSI_PERMUTATION_KEY 4

struct tsi_permutation {
	uint64_t n;
	uint64_t inverse; /* of columns, times 2^64 */
	uint32_t rows, columns;
};

/* Of n numbers. */
void tsi_permutation_init(struct tsi_permutation *p, uint64_t n);

/* Replace each of the m numbers by what comes in its place. */
void tsi_permutation_run(const struct tsi_permutation *p,
			 const uint32_t key[TSI_PERMUTATION_KEY], uint64_t *x,
			 unsigned m);

#endif
