/* SPDX-License-Identifier: MIT */
/*
 * window.h - windows: private mappings of a ring, in which batches lie.
 *
 * For mapping.c alone, which decides whether a batch is placed in one.  clear
 * may be called by any thread; all others are the handle's thread's.
 */
#ifndef TSI_CONSUMER_WINDOW_H
#define TSI_CONSUMER_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/mapping.h"

/*
 * A mapping of half of a field, made twice in a row where it has no margin;
 * before it lies one of the lead bytes of the file mark.
 */
int tsi_window_map_field(const struct tsi_mapping_field *f, unsigned half,
			 int prot, int flags, int mark, size_t lead,
			 uint8_t **out);

/* Make the first one; -1 with errno where that is refused. */
int tsi_window_init(struct tsi_mapping *m);

/* Unmap all of them, those in which batches lie included. */
void tsi_window_fini(struct tsi_mapping *m);

/*
 * A window in which no other live batch touches a page of the samples from
 * first on, a new one if need be; NULL with errno.
 */
struct tsi_window *tsi_window_find(struct tsi_mapping *m, uint64_t first,
				   uint64_t count);

/* Place the batch from first on in it, which was found for it. */
int tsi_window_place(struct tsi_mapping *m, struct tsi_window *win,
		     uint64_t first, struct tsi_placement *s);

/* Nobody looks at these pages of its window any more. */
void tsi_window_clear(struct tsi_mapping *m, struct tsi_placement *s);

/* Where field i of the ring begins in it. */
uint8_t *tsi_window_base(const struct tsi_window *win, unsigned i);

/* Pages lo..hi-1 of field i's mapping that a batch touches. */
void tsi_window_pages_of(const struct tsi_mapping *m, unsigned i, uint64_t slot,
			 uint64_t count, size_t *lo, size_t *hi);

#endif
