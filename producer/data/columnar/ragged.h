/* SPDX-License-Identifier: MIT */
/*
 * ragged.h - columns of a table whose rows have different numbers of values.
 */
#ifndef TSI_DATA_COLUMNAR_RAGGED_H
#define TSI_DATA_COLUMNAR_RAGGED_H

#include "data/columnar/file.h"
#include "data/columns.h"

/*
 * The two fields of such a column: its values, with the column's pad behind
 * those of a row that is shorter than the longest one, and NAME_length, how many a row
 * has.  The column has been checked, and its name has fewer than 32 bytes.
 * Fails with EDATA (another column has that name, or it would be too long) and
 * ENOTSUP (a row is too long).
 */
int tsi_columnar_ragged(const struct tsi_columnar *c,
			const struct tsi_columnar_entry *e,
			struct tsi_column *values, struct tsi_column *lengths);

#endif
