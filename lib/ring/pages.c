/* SPDX-License-Identifier: MIT */
/*
 * pages.c - memory of a ring that is reserved piece by piece, by the threads
 * that write the ring for the first time.
 *
 * Two threads may reserve the same piece at once: the second finds the pages of
 * the first.
 */
#include "ring/pages.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/sequence.h"

int tsi_pages_init(struct tsi_pages *p, uint64_t bytes)
{
	uint64_t pieces = (bytes + TSI_PAGES_PIECE - 1) / TSI_PAGES_PIECE;

	p->there = calloc(pieces, sizeof(*p->there));
	if (!p->there)
		return tsi_err(TSOCK_ENOMEM, "no memory for a ring's pages");
	p->bytes = bytes;
	atomic_init(&p->missing, bytes);
	return 0;
}

void tsi_pages_fini(struct tsi_pages *p)
{
	if (!p->there)
		return;
	tsi_memfd_came(atomic_load(&p->missing));
	free((void *)p->there);
	p->there = NULL;
}

static int reserve_piece(struct tsi_pages *p, const struct tsi_memfd *m,
			 const char *name, uint64_t piece)
{
	uint64_t at = piece * TSI_PAGES_PIECE;
	uint64_t n = min64(TSI_PAGES_PIECE, p->bytes - at);
	char label[128];
	int err;

	/* Relaxed: as in tsi_pages_are_there(). */
	if (atomic_load_explicit(&p->there[piece], memory_order_relaxed))
		return 0;
	snprintf(label, sizeof(label),
		 "the ring of field %.40s (%.1f of its %.1f MB are there)",
		 name, (double)(p->bytes - atomic_load(&p->missing)) / 1e6,
		 (double)p->bytes / 1e6);
	err = tsi_memfd_reserve(m, label, at, n);
	if (err)
		return err;
	if (!atomic_exchange(&p->there[piece], 1)) {
		atomic_fetch_sub(&p->missing, n);
		tsi_memfd_came(n);
	}
	return 0;
}

int tsi_pages_need(struct tsi_pages *p, const struct tsi_memfd *m,
		   const char *name, uint64_t at, uint64_t n)
{
	uint64_t end = at + n;
	int err = 0;

	if (tsi_pages_are_there(p))
		return 0;
	for (uint64_t i = at / TSI_PAGES_PIECE;
	     !err && i * TSI_PAGES_PIECE < end; i++)
		err = reserve_piece(p, m, name, i);
	return err;
}
