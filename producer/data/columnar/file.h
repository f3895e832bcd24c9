/* SPDX-License-Identifier: MIT */
/*
 * file.h - the file of a table, mapped: its columns, each within the file.
 *
 * A row that is never asked for costs no memory then.  The head and the entries
 * are copies; everything else may be cut short or written over at any time, and
 * is read by the functions of mapped.h alone, and judged where it is used.
 *
 * Nothing in one is trusted: an entry that passes leads to bytes of the file.
 * What they say is check.c's to find out.
 */
#ifndef TSI_DATA_COLUMNAR_FILE_H
#define TSI_DATA_COLUMNAR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/columnar/layout.h"

struct tsi_mapped;

/* The longest row of texts or ragged values, and the first one so long. */
struct tsi_columnar_longest {
	uint64_t items;
	uint64_t row;
};

struct tsi_columnar {
	const char *path; /* for messages; the caller's */
	const struct tsi_mapped *map;
	struct tsi_columnar_head head;
	struct tsi_columnar_entry entry[TSI_COLUMNAR_COLUMNS];
	struct tsi_columnar_longest longest[TSI_COLUMNAR_COLUMNS];
};

/* Does a file begin as one does? */
bool tsi_columnar_is_at(const char *path);

/*
 * A column of one; false: it has none of this name.  Reads no more than its
 * entries, and checks nothing.
 */
bool tsi_columnar_peek(const char *path, const char *column,
		       struct tsi_columnar_entry *out);

/* The first bytes of a column, so many at most; how many. */
size_t tsi_columnar_peek_data(const char *path,
			      const struct tsi_columnar_entry *e, void *to,
			      size_t room);

/*
 * Check the head and the entries of a mapped file, and where texts and ragged
 * values begin and end.  Fails with EDATA; there is nothing to close.
 */
int tsi_columnar_open(const struct tsi_mapped *map, const char *path,
		      struct tsi_columnar *out);

/* An error that names the file and the column: it WHAT. */
int tsi_columnar_fail(const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *e, const char *what);

/*
 * Do the rows of texts or ragged values that lie there begin at 0, and end where
 * the column does?  Fails with EDATA.
 */
int tsi_columnar_check_ends(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    const void *data);

/* Its path, for messages. */
const char *tsi_columnar_path(const struct tsi_columnar *c);

/* Columns; the one that comes at this place, and the one of this name or NULL. */
uint32_t tsi_columnar_count(const struct tsi_columnar *c);
const struct tsi_columnar_entry *tsi_columnar_at(const struct tsi_columnar *c,
						 uint32_t i);
const struct tsi_columnar_entry *tsi_columnar_find(const struct tsi_columnar *c,
						   const char *name);

/* Does it have a value for each row?  Fails with EDATA; e may be NULL. */
int tsi_columnar_check_count(const struct tsi_columnar *c,
			     const struct tsi_columnar_entry *e);

/* Bytes of a row of values or ranges, of an item of texts or ragged values. */
size_t tsi_columnar_item(const struct tsi_columnar_entry *e);

/* A number for the head and the entries, from which that of the rows goes on. */
uint64_t tsi_columnar_hash(const struct tsi_columnar *c);

/* The longest rows of all columns: check.c finds them. */
struct tsi_columnar_longest *tsi_columnar_longests(struct tsi_columnar *c);
const struct tsi_columnar_longest *
tsi_columnar_longest(const struct tsi_columnar *c,
		     const struct tsi_columnar_entry *e);

/*
 * A column's bytes in the file; of texts and of ragged values, where the rows
 * begin and the texts or values themselves, and how many items these are.
 */
const void *tsi_columnar_data(const struct tsi_columnar *c,
			      const struct tsi_columnar_entry *e);
const uint64_t *tsi_columnar_starts(const struct tsi_columnar *c,
				    const struct tsi_columnar_entry *e);
const uint8_t *tsi_columnar_items(const struct tsi_columnar *c,
				  const struct tsi_columnar_entry *e);
uint64_t tsi_columnar_item_count(const struct tsi_columnar_entry *e);

#endif
