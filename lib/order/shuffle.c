/* SPDX-License-Identifier: MIT */
/*
 * shuffle.c - the two shuffles: from philox words, and from torch's generator.
 */
#include "order/shuffle.h"

#include "base/philox.h"

/* Successive 32-bit words of one philox stream. */
struct words {
	uint64_t key;
	struct tsi_philox_ctr ctr;
	struct tsi_philox_ctr block;
	unsigned used;
};

static void words_init(struct words *w, uint64_t seed, enum tsi_shuffle_use use,
		       uint64_t epoch, uint32_t segment)
{
	/*
	 * The seed is a key elsewhere too (augmentation): a key drawn from it
	 * keeps the streams apart whatever the counters are.
	 */
	struct tsi_philox_ctr tag = { { 0x6f726472u, (uint32_t)use, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);

	w->key = (uint64_t)k.v[1] << 32 | k.v[0];
	w->ctr.v[0] = 0;
	w->ctr.v[1] = segment;
	w->ctr.v[2] = (uint32_t)epoch;
	w->ctr.v[3] = (uint32_t)(epoch >> 32);
	w->used = 4;
}

static uint32_t words_next(struct words *w)
{
	if (w->used == 4) {
		w->block = tsi_philox(w->key, w->ctr);
		w->ctr.v[0]++;
		w->used = 0;
	}
	return w->block.v[w->used++];
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

void tsi_shuffle_philox(uint32_t *v, uint64_t n, uint64_t seed,
			enum tsi_shuffle_use use, uint64_t epoch,
			uint32_t segment)
{
	struct words w;

	words_init(&w, seed, use, epoch, segment);
	for (uint64_t i = n; i > 1; i--)
		swap(v, i - 1, words_below(&w, (uint32_t)i));
}

void tsi_shuffle_torch(uint32_t *v, uint64_t n, struct tsi_mt19937 *mt)
{
	for (uint64_t i = 0; i < n; i++)
		v[i] = (uint32_t)i;
	for (uint64_t i = 0; i + 1 < n; i++)
		swap(v, i, i + tsi_mt19937_next(mt) % (uint32_t)(n - i));
}
