/* SPDX-License-Identifier: MIT */
/*
 * mt19937.h - the 32-bit Mersenne Twister, as torch's CPU generator uses it.
 *
 * Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally
 * equidistributed uniform pseudorandom number generator", ACM TOMACS 8, 1998.
 * Here for one purpose: to make the order that torch makes.
 */
#ifndef TSI_ORDER_MT19937_H
#define TSI_ORDER_MT19937_H

#include <stdint.h>

#define TSI_MT_WORDS 624

struct tsi_mt19937 {
	uint32_t state[TSI_MT_WORDS];
	uint32_t next; /* TSI_MT_WORDS: all words are used up */
};

void tsi_mt19937_seed(struct tsi_mt19937 *mt, uint32_t seed);
uint32_t tsi_mt19937_next(struct tsi_mt19937 *mt);

/* As count calls of tsi_mt19937_next() would leave it. */
void tsi_mt19937_skip(struct tsi_mt19937 *mt, uint64_t count);

#endif
