/* SPDX-License-Identifier: MIT */
/*
 * file.h - the file of a table, in memory: its columns, each within the file.
 *
 * The file is read, not mapped: one that is cut short or written over while it
 * is served would end the process, or undo what was checked.
 *
 * Nothing in one is trusted: an entry that passes leads to bytes of the file,
 * and texts end where they have to.  Which numbers make sense is the caller's
 * to check.
 */
#ifndef TSI_DATA_COLUMNAR_FILE_H
#define TSI_DATA_COLUMNAR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/columnar/layout.h"

struct tsi_columnar {
	const char *path; /* for messages; the caller's */
	void *mem;        /* free() */
	size_t len;
	const struct tsi_columnar_head *head;
	const struct tsi_columnar_entry *entry; /* [head->columns] */
};

/* Does a file begin as one does? */
bool tsi_columnar_is_at(const char *path);

/*
 * Read the file that fd is open at and check its head and entries.  Fails with
 * EDATA, ESYS, ENOMEM; there is nothing to free then.
 */
int tsi_columnar_read(int fd, const char *path, struct tsi_columnar *out);
void tsi_columnar_free(struct tsi_columnar *c);

/* The column of this name, or NULL. */
const struct tsi_columnar_entry *tsi_columnar_find(const struct tsi_columnar *c,
						   const char *name);

/* A column's bytes; of text, where the texts begin and the texts themselves. */
const void *tsi_columnar_data(const struct tsi_columnar *c,
			      const struct tsi_columnar_entry *e);
const uint64_t *tsi_columnar_starts(const struct tsi_columnar *c,
				    const struct tsi_columnar_entry *e);
const char *tsi_columnar_texts(const struct tsi_columnar *c,
			       const struct tsi_columnar_entry *e);

#endif
