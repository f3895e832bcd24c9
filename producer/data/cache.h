/* SPDX-License-Identifier: MIT */
/*
 * cache.h - a scan kept on disk, so that a start needs a look at each folder
 * and not at each file.
 */
#ifndef TSI_DATA_CACHE_H
#define TSI_DATA_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/root.h"
#include "data/table.h"

struct tsi_cache_opts {
	const char *layout; /* the format's: root and layout name a scan */
	const char *dir;    /* NULL: the user's own; "": no cache */
	uint32_t probe;     /* which one calls rows bad; 0: none */
	unsigned threads;   /* that look what has changed */
};

/*
 * Fill the empty table t from the cache.  False when there is no cache for
 * this root as it is now; then t is still empty.  *bad gets the rows that were
 * bad, *nbad of them, in order: free().
 */
bool tsi_cache_load(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts, struct tsi_table *t,
		    uint64_t **bad, uint64_t *nbad);

/*
 * Has nothing that the scan of this table read changed since?  If it has, *now
 * is a number for what is there now.
 */
bool tsi_cache_look(const struct tsi_root *root, const struct tsi_table *t,
		    uint64_t *now);

/* Write the cache; what goes wrong is logged and is no error. */
void tsi_cache_save(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts,
		    const struct tsi_table *t);

#endif
