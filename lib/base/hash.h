/* SPDX-License-Identifier: MIT */
/*
 * hash.h - XXH3 of some bytes: cache keys, checksums, states of files, records.
 *
 * Not a cryptographic hash: it finds damage, not malice.
 */
#ifndef TSI_BASE_HASH_H
#define TSI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Chain several pieces by giving one's hash as the next one's seed. */
uint64_t tsi_hash(const void *data, size_t len, uint64_t seed);

#endif
