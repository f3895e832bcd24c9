/* SPDX-License-Identifier: MIT */
/*
 * shuffle.h - the two shuffles: from philox words, and from torch's generator.
 *
 * Pure arithmetic: no memory is allocated, no state is kept, no lock taken.
 */
#ifndef TSI_ORDER_SHUFFLE_H
#define TSI_ORDER_SHUFFLE_H

#include <stdint.h>

#include "order/mt19937.h"

/* What a philox shuffle is for: each is a family of streams of its own. */
enum tsi_shuffle_use {
	TSI_SHUFFLE_EPOCH = 1, /* the order within a segment of an epoch */
	TSI_SHUFFLE_DEAL = 2,  /* which items belong to which segment */
};

/* The key of all shuffles of a seed that are for this. */
uint64_t tsi_shuffle_key(uint64_t seed, enum tsi_shuffle_use use);

/* Shuffle v[0 .. n-1] by (key, epoch, segment); n < 2^32. */
void tsi_shuffle_philox(uint32_t *v, uint64_t n, uint64_t key, uint64_t epoch,
			uint32_t segment);

/* The first four words of those that such a shuffle draws. */
void tsi_shuffle_words(uint64_t key, uint64_t epoch, uint32_t segment,
		       uint32_t word[4]);

/* torch.randperm(n, generator=mt), for n < TSI_TORCH_MAX. */
void tsi_shuffle_torch(uint32_t *v, uint64_t n, struct tsi_mt19937 *mt);

/* From this n on randperm draws 64-bit words: another sequence. */
#define TSI_TORCH_MAX (UINT64_C(0xffffffff) / 20)

#endif
