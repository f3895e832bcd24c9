/* SPDX-License-Identifier: MIT */
/*
 * rows.h - data sets whose samples lie in files as arrays of fixed size: which
 * files, and what of a row is which field.
 *
 * A format maps its files, says where the rows of each field are, and finishes:
 * the table then has no copy of what lies in the files.
 */
#ifndef TSI_DATA_ROWS_ROWS_H
#define TSI_DATA_ROWS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/columns.h"
#include "data/root.h"
#include "data/table.h"

struct tsi_rows;

/*
 * Before the folder is listed: what is added to it later is a change.  Fails
 * with ESYS, ENOMEM.
 */
int tsi_rows_create(const struct tsi_root *root, struct tsi_rows **out);

/* NULL is allowed, and one that was finished. */
void tsi_rows_destroy(struct tsi_rows *r);

/* Map a file; its number in *file.  Fails as tsi_mapped_open() does. */
int tsi_rows_map(struct tsi_rows *r, const char *path, unsigned *file);

/* What a file was mapped to; its bytes, and its path below the root. */
const uint8_t *tsi_rows_mem(const struct tsi_rows *r, unsigned file);
uint64_t tsi_rows_len(const struct tsi_rows *r, unsigned file);
const char *tsi_rows_path(const struct tsi_rows *r, unsigned file);

/*
 * Copy n bytes from offset at on; EDATA: the file has no such bytes, which are
 * its "what".
 */
int tsi_rows_read(const struct tsi_rows *r, unsigned file, uint64_t at,
		  void *to, size_t n, const char *what);

/*
 * A field whose rows begin every stride bytes.  One that is called label is
 * that.  Its number in *column.  Fails with ENOTSUP (too many).
 */
int tsi_rows_field(struct tsi_rows *r, const struct tsock_field *f,
		   size_t stride, unsigned *column);

/*
 * Samples are runs of tokens; documents are r's from now on.  A field, of which
 * there are no parts, has this of each run.
 */
void tsi_rows_documents(struct tsi_rows *r, struct tsi_documents *documents);
int tsi_rows_run(struct tsi_rows *r, const struct tsock_field *f,
		 enum tsi_columns_run run);

/* The images' pixels, u8 [height, width, channels], likewise. */
int tsi_rows_pixels(struct tsi_rows *r, const uint32_t shape[3], bool planar,
		    size_t stride, unsigned *column);

/*
 * The next count rows of a field lie from offset at of a file on.  Fails with
 * EDATA (the file ends before), ENOMEM.
 */
int tsi_rows_part(struct tsi_rows *r, unsigned column, unsigned file,
		  uint64_t at, uint64_t count);

/* Rows that a field has so far. */
uint64_t tsi_rows_count(const struct tsi_rows *r, unsigned column);

/*
 * Labels that are numbers of classes, and other numbers for each row if more
 * isn't NULL (a field of that name).  values has count int64 of the labels and
 * as many of the others, and is r's from now on, also after a failure.
 */
int tsi_rows_labels(struct tsi_rows *r, int64_t *values, uint64_t count,
		    const char *more);

/* What classes are called: n names, each ended by a NUL, one by one. */
int tsi_rows_classes(struct tsi_rows *r, const char *names, uint32_t n);

/*
 * Fill the empty table: with rows that every field has.  r can only be
 * destroyed then.  Fails with EDATA (fields of different lengths, no rows, a
 * label of no class), ENOMEM.
 */
int tsi_rows_finish(struct tsi_rows *r, struct tsi_table *t);

/* The operations of a format. */
void tsi_rows_locate(const struct tsi_table *t, uint64_t i,
		     struct tsi_location *out);
int64_t tsi_rows_label(const struct tsi_table *t, uint64_t i);

#endif
