/* SPDX-License-Identifier: MIT */
/*
 * reserve.h - arrays that are as long as a data set, and of which few pages are
 * ever written.
 */
#ifndef TSI_BASE_RESERVE_H
#define TSI_BASE_RESERVE_H

#include <stddef.h>
#include <stdint.h>

/*
 * n items, all zero.  A large array takes address space; it takes memory page
 * by page, when something is written, and may be larger than the machine's.
 * NULL: there is no room.
 */
void *tsi_reserve(uint64_t n, size_t item);

/* Of the same n and item.  p may be NULL. */
void tsi_reserve_free(void *p, uint64_t n, size_t item);

#endif
