/* SPDX-License-Identifier: MIT */
/*
 * block.h - the memory of a table, which other processes can map.
 *
 * Jobs look at the rows of a data set, too (run/catalog.h): a large block is a
 * memfd, so that neither they nor the producer need a copy.
 */
#ifndef TSI_DATA_BLOCK_H
#define TSI_DATA_BLOCK_H

#include <stddef.h>

#include "base/memfd.h"

/* A smaller block is private memory: copying it costs nothing. */
#define TSI_BLOCK_SHARED ((size_t)1 << 20)

/* How a block was made; all zeros: by malloc(). */
struct tsi_block {
	struct tsi_memfd shared; /* sealed against all other writers */
};

/* len bytes, which may be zeros or not; NULL: there is no memory. */
void *tsi_block_alloc(size_t len, struct tsi_block *how);

/* The descriptor of its memfd; -1: it is private memory. */
int tsi_block_fd(const struct tsi_block *how);

/* at may be NULL. */
void tsi_block_free(void *at, const struct tsi_block *how);

#endif
