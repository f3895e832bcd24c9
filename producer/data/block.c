/* SPDX-License-Identifier: MIT */
/*
 * block.c - the memory of a table, which other processes can map.
 *
 * Where no shared memory can be had, a block is private memory.
 */
#include "data/block.h"

#include <stdlib.h>

#include "base/memfd.h"

void *tsi_block_alloc(size_t len, struct tsi_block *how)
{
	*how = (struct tsi_block){ .shared.fd = -1 };
	if (len < TSI_BLOCK_SHARED ||
	    tsi_memfd_create("table", len, 0, &how->shared))
		return malloc(len);
	return tsi_memfd_base(&how->shared);
}

void tsi_block_free(void *at, const struct tsi_block *how)
{
	struct tsi_memfd shared = how->shared;

	if (tsi_memfd_base(&shared))
		tsi_memfd_close(&shared);
	else
		free(at);
}

int tsi_block_fd(const struct tsi_block *how)
{
	return tsi_memfd_base(&how->shared) ? tsi_memfd_fd(&how->shared) : -1;
}
