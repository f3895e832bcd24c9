/* SPDX-License-Identifier: MIT */
/*
 * reserve.c - address space that takes no memory until it is written.
 *
 * calloc() would do, but the kernel refuses what is more than the memory of the
 * machine, unless it is told that most of it will never be used.
 */
#include "base/reserve.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE (UINT64_C(1) << 20)

void *tsi_reserve(uint64_t n, size_t item)
{
	void *p;

	if (n < LARGE / item)
		return calloc(n + 1, item);
	if (n > SIZE_MAX / 2 / item)
		return NULL;
	p = mmap(NULL, n * item, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void tsi_reserve_free(void *p, uint64_t n, size_t item)
{
	if (p && n >= LARGE / item)
		munmap(p, n * item);
	else
		free(p);
}
