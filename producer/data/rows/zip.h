/* SPDX-License-Identifier: MIT */
/*
 * zip.h - where the members of a zip file lie that are stored as they are, as
 * NumPy's savez() writes arrays.
 */
#ifndef TSI_DATA_ROWS_ZIP_H
#define TSI_DATA_ROWS_ZIP_H

#include <stdint.h>

#include "data/rows/rows.h"

struct tsi_zip_member {
	char name[128];
	uint64_t at; /* of its bytes in the file */
	uint64_t len;
};

/*
 * Call each(arg, member) for each member, in the file's order, until it fails.
 * Fails with EDATA (it is no zip file or damaged, a member is compressed), and
 * as each does.
 */
int tsi_zip_each(const struct tsi_rows *rows, unsigned file,
		 int (*each)(void *arg, const struct tsi_zip_member *m),
		 void *arg);

#endif
