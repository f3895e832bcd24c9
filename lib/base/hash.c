/* SPDX-License-Identifier: MIT */
/*
 * hash.c - the one file that includes xxhash.h.
 */
#include "base/hash.h"

#define XXH_INLINE_ALL /* nothing to link, nothing exported */
#include <xxhash.h>

uint64_t tsi_hash(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
