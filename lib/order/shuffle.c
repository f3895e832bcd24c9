/* SPDX-License-Identifier: MIT */
/*
 * shuffle.c - the two shuffles: from philox words, and from torch's generator.
 */
#include "order/shuffle.h"

#include "base/philox.h"

#define AHEAD 32 /* places that are drawn before they are used */
#define BLOCKS 8 /* of four words, which are made together */

/* Successive 32-bit words of one philox stream. */
struct words {
	uint64_t key;
	struct tsi_philox_ctr ctr;
	struct tsi_philox_ctr block[BLOCKS];
	unsigned used;
};

uint64_t tsi_shuffle_key(uint64_t seed, enum tsi_shuffle_use use)
{
	/*
	 * The seed is a key elsewhere too (augmentation): a key drawn from it
	 * keeps the streams apart whatever the counters are.
	 */
	struct tsi_philox_ctr tag = { { 0x6f726472u, (uint32_t)use, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);

	return (uint64_t)k.v[1] << 32 | k.v[0];
}

static struct tsi_philox_ctr first_of(uint64_t epoch, uint32_t segment)
{
	return (struct tsi_philox_ctr){ { 0, segment, (uint32_t)epoch,
					  (uint32_t)(epoch >> 32) } };
}

void tsi_shuffle_words(uint64_t key, uint64_t epoch, uint32_t segment,
		       uint32_t word[4])
{
	struct tsi_philox_ctr r = tsi_philox(key, first_of(epoch, segment));

	for (unsigned i = 0; i < 4; i++)
		word[i] = r.v[i];
}

static uint32_t words_next(struct words *w)
{
	unsigned at;

	if (w->used == 4 * BLOCKS) {
		tsi_philox_run(w->key, w->ctr, BLOCKS, w->block);
		w->ctr.v[0] += BLOCKS;
		w->used = 0;
	}
	at = w->used++;
	return w->block[at / 4].v[at % 4];
}

/*
 * Uniform in [0, n), n >= 1: Lemire, "Fast random integer generation in an
 * interval", ACM TOMACS 29, 2019.  Rejects what would favour low results.
 */
static uint32_t words_below(struct words *w, uint32_t n)
{
	uint64_t m = (uint64_t)words_next(w) * n;

	if ((uint32_t)m < n) {
		uint32_t floor = (0u - n) % n;

		while ((uint32_t)m < floor)
			m = (uint64_t)words_next(w) * n;
	}
	return (uint32_t)(m >> 32);
}

static void swap(uint32_t *v, uint64_t i, uint64_t j)
{
	uint32_t t = v[i];

	v[i] = v[j];
	v[j] = t;
}

/*
 * Fisher and Yates from the end: place i-1 changes with one below i.  Places are
 * drawn a block ahead, so that the memory of all of them is fetched at once.
 */
void tsi_shuffle_philox(uint32_t *v, uint64_t n, uint64_t key, uint64_t epoch,
			uint32_t segment)
{
	uint32_t other[AHEAD];
	struct words w = { .key = key,
			   .ctr = first_of(epoch, segment),
			   .used = 4 * BLOCKS };

	while (n > 1) {
		unsigned some = n - 1 < AHEAD ? (unsigned)(n - 1) : AHEAD;

		for (unsigned k = 0; k < some; k++) {
			other[k] = words_below(&w, (uint32_t)(n - k));
			__builtin_prefetch(&v[other[k]], 1);
		}
		for (unsigned k = 0; k < some; k++)
			swap(v, n - 1 - k, other[k]);
		n -= some;
	}
}

void tsi_shuffle_torch(uint32_t *v, uint64_t n, struct tsi_mt19937 *mt)
{
	for (uint64_t i = 0; i < n; i++)
		v[i] = (uint32_t)i;
	for (uint64_t i = 0; i + 1 < n; i++)
		swap(v, i, i + tsi_mt19937_next(mt) % (uint32_t)(n - i));
}
