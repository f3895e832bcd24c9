/* SPDX-License-Identifier: MIT */
/*
 * hash.c - XXH3 with AVX2, in half the time of SSE2.
 *
 * What xxhash.h needs is included first, so that it is compiled for all
 * processors; all functions behind the pragma are for those with AVX2 alone.
 */
#include <immintrin.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The pragma of GCC defines __AVX2__ and that of clang doesn't. */
#define XXH_VECTOR XXH_AVX2

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), \
			     apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#include "base/hash_impl.h"

/*
 * A compiler may leave out the last call, and the upper halves of registers
 * slow down what follows then.
 */
static uint64_t hash_all(const void *data, size_t len, uint64_t seed)
{
	uint64_t hash = XXH3_64bits_withSeed(data, len, seed);

	_mm256_zeroupper();
	return hash;
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

void tsi_hash_kernel_init_x86(struct tsi_hash_kernel *k, enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		k->all = hash_all;
}
