/* SPDX-License-Identifier: MIT */
/*
 * files.h - the files of a data set of arrays: one that was named, or those of
 * a folder.
 */
#ifndef TSI_DATA_ROWS_FILES_H
#define TSI_DATA_ROWS_FILES_H

#include <stdbool.h>

#include "data/root.h"

/* What a name says by "train", or by "val", "test" and the like. */
enum tsi_rows_kind { TSI_ROWS_ANY, TSI_ROWS_TRAINING, TSI_ROWS_EVALUATION };

enum tsi_rows_kind tsi_rows_kind_of(const char *name);

struct tsi_rows_files {
	char **name; /* below the root; natural order: x2 before x10 */
	unsigned n;
	unsigned room;
};

/*
 * Open the folder root, or the folder of the file root.  Fails with EARG, which
 * says that there is no such data set, of which kind.
 */
int tsi_rows_open_root(const char *root, const char *kind, struct tsi_root *r);

/*
 * The file that the root names, or those of its folder whose names end in one of
 * these endings (each with a '|' behind it; "" is any file's).  Where the names
 * of some say that they are for training, and those of others that they are for
 * evaluation (train; val, valid, validation, test, eval), either these or those.
 * Fails with EARG (there are none), ESYS, ENOMEM; l is empty then.
 */
int tsi_rows_list(const struct tsi_root *r, const char *endings, bool held_out,
		  struct tsi_rows_files *l);

/* An empty list is allowed. */
void tsi_rows_files_free(struct tsi_rows_files *l);

#endif
