/* SPDX-License-Identifier: MIT */
/*
 * avx_none.c - stands for the hash by AVX2 in a build without it: it is never
 * chosen.  xxhash.h has code for SSE2 and NEON, where the compiler may use them.
 */
#include "base/hash_impl.h"

bool tsi_hash_avx2(const void *data, size_t len, uint64_t seed, uint64_t *hash)
{
	(void)data;
	(void)len;
	(void)seed;
	(void)hash;
	return false;
}
