/* SPDX-License-Identifier: MIT */
/*
 * split.h - which folder below the root a split is.
 */
#ifndef TSI_CLI_SPLIT_H
#define TSI_CLI_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"

/*
 * The folder of the split, as malloc()ed "ROOT/NAME"; NULL: no memory.  NAME is
 * train or val or, if root has no folder of that name and exactly one of the
 * other usual ones (training; valid, validation or test), that one.  Of
 * TSI_SPLIT_NONE it is the root itself.
 */
char *tsi_split_folder(const char *root, uint64_t split);

/*
 * The folders that root has by the split's usual names, as "valid and test", in
 * to[0..len); how many there are.
 */
unsigned tsi_split_found(const char *root, uint64_t split, char *to,
			 size_t len);

/*
 * Set d's folder, and its format where a pack lies there.  Fails with ENOMEM.
 */
int tsi_split_find(struct tsi_dataset *d);

/*
 * The masks of a data set whose root and folder are known: the folder of masks
 * has the data set's folders, that of the split too.  Fails with ENOMEM.
 */
int tsi_split_masks(struct tsi_dataset *d, const char *masks);

/* Is it a usual name of a split, in any case? */
bool tsi_split_is(const char *name);

#endif
