/* SPDX-License-Identifier: MIT */
/*
 * hash_impl.h - XXH3 for the instructions of the file that includes this; the
 * one file that includes xxhash.h.
 */
#ifndef TSI_BASE_HASH_IMPL_H
#define TSI_BASE_HASH_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL /* nothing to link, nothing exported */
#include <xxhash.h>

/* XXH3 by AVX2; false, and *hash stays as it is: there is no AVX2 here. */
bool tsi_hash_avx2(const void *data, size_t len, uint64_t seed, uint64_t *hash);

#endif
