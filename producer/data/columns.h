/* SPDX-License-Identifier: MIT */
/*
 * columns.h - the fields that a data set has beside images and classes: a value
 * for each row, of numbers or text.
 *
 * The values lie in memory that the columns own.  The label is one of them, of
 * any dtype and shape.
 */
#ifndef TSI_DATA_COLUMNS_H
#define TSI_DATA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tsock/common.h"

#define TSI_COLUMNS 8 /* beside the label */

struct tsi_column {
	struct tsock_field field; /* what consumers see */
	size_t bytes;             /* of a row there */
	const uint8_t *data;      /* the rows, or their text */
	/* Of text: where each row's begins, and the last one's end; else NULL. */
	const uint64_t *start;
};

struct tsi_columns {
	struct tsi_column label; /* bytes 0: there are no labels */
	bool classes;            /* labels are numbers of classes */
	struct tsi_column column[TSI_COLUMNS];
	unsigned n;
	uint64_t *row; /* whose values row i has; NULL: its own */
	void *mem;     /* where they lie: free() */
	uint64_t hash; /* of all values, and of where the samples are */
};

/* NULL is allowed. */
void tsi_columns_destroy(struct tsi_columns *c);

/* Row k has from now on what row rows[k] had.  Fails with ENOMEM. */
int tsi_columns_choose(struct tsi_columns *c, const uint64_t *rows, uint64_t n);

/* Which of the file's rows row i is. */
uint64_t tsi_columns_row(const struct tsi_columns *c, uint64_t i);

/* A number for the values of n rows, which goes on from h. */
uint64_t tsi_columns_fingerprint(const struct tsi_columns *c, uint64_t n,
				 uint64_t h);

/* The fields beside the label, and the label's; NULL: there are no labels. */
unsigned tsi_columns_count(const struct tsi_columns *c);
const struct tsock_field *tsi_columns_field(const struct tsi_columns *c,
					    unsigned k);
const struct tsock_field *tsi_columns_label(const struct tsi_columns *c);

/* Are the labels numbers of classes, and is there nothing beside them? */
bool tsi_columns_plain(const struct tsi_columns *c);

/* Write row i's value of field k, or its label, to a slot. */
void tsi_columns_put(const struct tsi_columns *c, unsigned k, uint64_t i,
		     void *to);
void tsi_columns_put_label(const struct tsi_columns *c, uint64_t i, void *to);

#endif
