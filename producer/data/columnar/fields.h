/* SPDX-License-Identifier: MIT */
/*
 * fields.h - the columns of a table that are fields of its samples.
 */
#ifndef TSI_DATA_COLUMNAR_FIELDS_H
#define TSI_DATA_COLUMNAR_FIELDS_H

#include "data/columnar/file.h"
#include "data/columns.h"

/*
 * Describe the label and all columns that don't say where samples are.  Fails
 * with EDATA (a column has no name for a field, or not a value for each row)
 * and ENOTSUP (there are too many, or one is of a kind that is no field).
 */
int tsi_columnar_fields(const struct tsi_columnar *c, struct tsi_columns *to);

#endif
