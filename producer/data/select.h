/* SPDX-License-Identifier: MIT */
/*
 * select.h - the samples of a data set that a file names, and their weights.
 *
 * A line of the file is the name of a sample and, if wanted, a tab and a
 * weight: a finite number, 0 or more; it is 1 where there is none.  Blanks do
 * for the tab where the line as a whole isn't a sample's name.  Empty lines are
 * passed, and so is "./" before a name.  Names are
 *     the path of a file below the data set's root, also without its extension
 *     where no other file has that path;
 *     in tar files "SHARD.tar: NAME" or, if only one shard has it, NAME, both
 *     also without what stands behind the first dot of the last part;
 *     in a pack what its source had.
 */
#ifndef TSI_DATA_SELECT_H
#define TSI_DATA_SELECT_H

#include <stdbool.h>

#include "data/table.h"

struct tsi_format;
struct tsi_select; /* immutable: any thread may read */

/*
 * Read a file.  Fails with EDATA (it can't be read, or names nothing, or a
 * weight is none), naming the line, and ENOMEM.
 */
int tsi_select_open(const char *path, struct tsi_select **out);

/* NULL is allowed. */
void tsi_select_close(struct tsi_select *s);

/* The file's absolute path. */
const char *tsi_select_path(const struct tsi_select *s);

/*
 * Leave in t, which is of this format and whose list of bad rows is sorted, the
 * rows that the file names, in the file's order.  *weight is from malloc(), one
 * for each row.  Fails with EDATA (a name that no sample or several have, or
 * that comes twice), naming the line, and ENOMEM; t is unchanged then.
 */
int tsi_select_apply(const struct tsi_select *s, const struct tsi_format *f,
		     struct tsi_table *t, float **weight);

#endif
