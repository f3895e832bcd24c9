/* SPDX-License-Identifier: MIT */
/*
 * hash.c - XXH3, by AVX2 where it pays and the processor has it.
 */
#include "base/hash.h"

#include "base/hash_impl.h"

/* Bytes from which on AVX2 is asked for; XXH3 has its vectors from 241 on. */
#define LONG 1024

uint64_t tsi_hash(const void *data, size_t len, uint64_t seed)
{
	uint64_t hash;

	if (len >= LONG && tsi_hash_avx2(data, len, seed, &hash))
		return hash;
	return XXH3_64bits_withSeed(data, len, seed);
}
