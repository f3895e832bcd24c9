/* SPDX-License-Identifier: MIT */
/*
 * pages.h - memory of a ring that is reserved piece by piece, by the threads
 * that write the ring for the first time.
 *
 * To reserve and clear a gigabyte takes a third of a second, and the first
 * batch needs a few megabytes of it.
 */
#ifndef TSI_RING_PAGES_H
#define TSI_RING_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memfd.h"

#define TSI_PAGES_PIECE ((uint64_t)8 << 20) /* whole huge pages */

struct tsi_pages {
	_Atomic uint8_t *there; /* by piece; NULL: all of it is there */
	uint64_t bytes;
	_Atomic uint64_t missing; /* bytes that are promised (memfd.h) */
};

/* Is memory of that length worth it?  Its makers and readers agree on that. */
static inline bool tsi_pages_come_later(uint64_t bytes)
{
	return bytes >= 2 * TSI_PAGES_PIECE;
}

/* For memory of that many bytes, made with TSI_MEM_LATER.  ENOMEM. */
int tsi_pages_init(struct tsi_pages *p, uint64_t bytes);
void tsi_pages_fini(struct tsi_pages *p);

/* Any thread; it can't change back. */
static inline bool tsi_pages_are_there(const struct tsi_pages *p)
{
	/* Relaxed: what hangs on it is the kernel's. */
	return !p->there ||
	       !atomic_load_explicit(&p->missing, memory_order_relaxed);
}

/*
 * Reserve n bytes from at on, whose pages are there then for good.  Any thread.
 * Fails as tsi_memfd_reserve() does; the message has the field's name.
 */
int tsi_pages_need(struct tsi_pages *p, const struct tsi_memfd *m,
		   const char *name, uint64_t at, uint64_t n);

#endif
