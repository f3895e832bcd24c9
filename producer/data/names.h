/* SPDX-License-Identifier: MIT */
/*
 * names.h - which row of a data set has a name.
 *
 * How samples are named says select.h.
 */
#ifndef TSI_DATA_NAMES_H
#define TSI_DATA_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/path.h"

struct tsi_format;
struct tsi_table;
struct tsi_names; /* immutable: any thread may ask */

enum tsi_names_found {
	TSI_NAMES_NONE,
	TSI_NAMES_ONE,
	TSI_NAMES_SEVERAL,
};

/* f and t must outlive it, unchanged.  Fails with ENOMEM. */
int tsi_names_create(const struct tsi_format *f, const struct tsi_table *t,
		     struct tsi_names **out);
/* NULL is allowed. */
void tsi_names_destroy(struct tsi_names *n);

/* The row with this name of len bytes, or the first of several. */
enum tsi_names_found tsi_names_find(const struct tsi_names *n, const char *name,
				    size_t len, uint64_t *row);

#define TSI_NAMES_EXAMPLE 200 /* bytes that show most names */

/*
 * A row's key, which a selection may name it by: the path of its file, or in
 * tar files its name there without what stands behind the first dot of the
 * last part; in a pack that of its source.  It has *len bytes, none of them
 * NUL, and lies in t or in text.
 */
const char *tsi_names_key(const struct tsi_format *f, const struct tsi_table *t,
			  uint64_t row, char text[TSI_PATH], size_t *len);

/* How a row is named in full. */
void tsi_names_example(const struct tsi_names *n, uint64_t row,
		       char to[TSI_NAMES_EXAMPLE]);

#endif
