/* SPDX-License-Identifier: MIT */
/*
 * simd_none.c - stands for the hash by vector code in a build without it: it is
 * never chosen.
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
