/* SPDX-License-Identifier: MIT */
/*
 * table_file.h - a table in a file: what the cache keeps of a scan, and the
 * index of a pack.
 *
 * A file with a checksum.  Nothing in one is trusted: every offset of a table
 * that was read leads into its column, every string ends in it, and no path
 * leads out of the data set's root.
 */
#ifndef TSI_DATA_TABLE_FILE_H
#define TSI_DATA_TABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/table.h"

/* What kind of file: others are refused. */
struct tsi_table_kind {
	const char *magic; /* 8 bytes */
	uint32_t version;
	/* Which probe calls the bad rows bad; 0: there was none. */
	uint32_t probe;
};

/*
 * Fill the empty table t.  False, and t is empty still, if the file is of
 * another kind, damaged, can't be read, or (root not NULL) its table is that of
 * another root.  *bad gets the rows that were bad, *nbad of them, in order:
 * free().
 */
bool tsi_table_file_read(int fd, const struct tsi_table_kind *kind,
			 const char *root, struct tsi_table *t, uint64_t **bad,
			 uint64_t *nbad);

/* False: it can't be written; errno says why. */
bool tsi_table_file_write(int fd, const struct tsi_table_kind *kind,
			  const struct tsi_table *t);

#endif
