/* SPDX-License-Identifier: MIT */
/*
 * check.h - one look at all bytes of a table, by several threads: whether each
 * row is one, how long the longest is, and a hash.
 *
 * The file may change while it is looked at, so that what is found out holds
 * for sure of copies alone.
 */
#ifndef TSI_DATA_COLUMNAR_CHECK_H
#define TSI_DATA_COLUMNAR_CHECK_H

#include "data/columnar/file.h"

/* What rows may say of other columns. */
struct tsi_columnar_limits {
	uint64_t files; /* of ranges */
	const struct tsi_columnar_entry
		*label; /* numbers of classes, or NULL */
	uint64_t classes;
	uint32_t *labels; /* where these go, one for each row */
};

/*
 * Look at all columns, which tsi_columnar_open() found.  *hash is a number for
 * all of their bytes.  Fails with EDATA and ENOMEM.
 */
int tsi_columnar_check(struct tsi_columnar *c,
		       const struct tsi_columnar_limits *l, unsigned threads,
		       uint64_t *hash);

/*
 * A copy of a column of texts, checked after it was made: free().  The texts
 * begin behind e->count + 1 numbers.  Fails with EDATA and ENOMEM.
 */
int tsi_columnar_load(const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *e, unsigned threads,
		      uint64_t **out);

#endif
