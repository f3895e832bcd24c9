/*
 * scan.h - walk an ImageFolder tree, in the order in which torchvision does.
 */
#ifndef TSI_DATA_SCAN_H
#define TSI_DATA_SCAN_H

#include "data/table.h"

/*
 * Fill the empty table t from the tree, all sizes 0.  Fails with EDATA (no
 * classes, classes without files), ENOTSUP (too many), ESYS (a folder can't be
 * read), ENOMEM; tsi_table_clear() t then.
 */
int tsi_scan(const struct tsi_root *root, unsigned threads,
	     struct tsi_table *t);

#endif
