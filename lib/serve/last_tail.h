/* SPDX-License-Identifier: MIT */
/*
 * last_tail.h - how far a reader of the producer before is, in the ring of that
 * one.
 *
 * As long as it finds samples there it asks nobody, and nobody hears from it.
 * But it moves its tail, and its process has a descriptor of the page that this
 * is in.  Where the kernel lets this process open that (both are of one user
 * and in one namespace of process ids, and it may be looked into), it is mapped,
 * read-only.
 */
#ifndef TSI_SERVE_LAST_TAIL_H
#define TSI_SERVE_LAST_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/record_file.h"

struct tsi_last_tail {
	void *page; /* NULL: none is known */
};

/* Look for the page of that row's reader; without one nothing is known. */
void tsi_last_tail_find(struct tsi_last_tail *l,
			const struct tsi_reader_row *row);

static inline bool tsi_last_tail_known(const struct tsi_last_tail *l)
{
	return l->page;
}

/* The first sample that it still needs; 0: it hasn't said. */
uint64_t tsi_last_tail_read(const struct tsi_last_tail *l);

void tsi_last_tail_close(struct tsi_last_tail *l);

#endif
