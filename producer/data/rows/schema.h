/* SPDX-License-Identifier: MIT */
/*
 * schema.h - how a sample lies in its file, as --schema says it.
 *
 * Fields with commas between them, each "NAME:DTYPE" or "NAME:DTYPE[N, ...]" of
 * up to four dimensions; a name "_" is for bytes that are passed over.  DTYPE is
 * NumPy's or torch's name: uint8, int32, float16, bfloat16, ...  One field needs
 * no name.
 */
#ifndef TSI_DATA_ROWS_SCHEMA_H
#define TSI_DATA_ROWS_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "tsock/common.h"

#define TSI_ROWS_FIELDS 32

struct tsi_rows_schema {
	struct tsock_field field[TSI_ROWS_FIELDS]; /* name "": has none */
	size_t at[TSI_ROWS_FIELDS];                /* in the sample's bytes */
	unsigned n;
	size_t bytes; /* of a sample */
};

/* Fails with EARG, which says what is wrong where. */
int tsi_rows_schema_read(const char *text, struct tsi_rows_schema *out);

/* What a schema calls it. */
const char *tsi_rows_dtype_name(uint32_t dtype);

#endif
