/* SPDX-License-Identifier: MIT */
/*
 * columns.h - the fields of a pack's samples beside image and class.
 */
#ifndef TSI_DATA_PACKED_COLUMNS_H
#define TSI_DATA_PACKED_COLUMNS_H

#include "data/root.h"
#include "data/table.h"

/*
 * Give t, which was read from the pack's index, the columns of the file beside
 * it.  Fails with EDATA (it is damaged, or another pack's), ESYS, ENOMEM.
 */
int tsi_pack_columns_read(const struct tsi_root *r, struct tsi_table *t);

#endif
