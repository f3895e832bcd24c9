/* SPDX-License-Identifier: MIT */
/*
 * hash.c - XXH3, by AVX2 where it pays and the processor has it.
 */
#include "base/hash.h"

#include <pthread.h>

#include "base/hash_impl.h"

/* Bytes from which on AVX2 is asked for; XXH3 has its vectors from 241 on. */
#define LONG 1024

static struct tsi_hash_kernel kernel;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t all(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

void tsi_hash_kernel_init(struct tsi_hash_kernel *k, enum tsi_simd level)
{
	k->all = all;
	TSI_SIMD_INIT(tsi_hash_kernel_init, k, level);
}

static void fill_kernel(void)
{
	tsi_hash_kernel_init(&kernel, tsi_simd_best());
}

uint64_t tsi_hash(const void *data, size_t len, uint64_t seed)
{
	if (len < LONG)
		return all(data, len, seed);
	pthread_once(&once, fill_kernel);
	return kernel.all(data, len, seed);
}
