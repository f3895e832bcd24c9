/* SPDX-License-Identifier: MIT */
/*
 * hash_impl.h - XXH3 for the instructions of the file that includes this; the
 * one file that includes xxhash.h.
 */
#ifndef TSI_BASE_HASH_IMPL_H
#define TSI_BASE_HASH_IMPL_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL /* nothing to link, nothing exported */
#include <xxhash.h>

#include "base/simd.h"

struct tsi_hash_kernel {
	/* XXH3 of len bytes. */
	uint64_t (*all)(const void *data, size_t len, uint64_t seed);
};

void tsi_hash_kernel_init(struct tsi_hash_kernel *k, enum tsi_simd level);
/* xxhash.h itself has code for NEON, where the compiler may use it. */
void tsi_hash_kernel_init_x86(struct tsi_hash_kernel *k, enum tsi_simd level);
void tsi_hash_kernel_init_arm(struct tsi_hash_kernel *k, enum tsi_simd level);

#endif
