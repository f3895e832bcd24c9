/* SPDX-License-Identifier: MIT */
/*
 * array.h - a field of .npy files, one beside each sample: arrays of one dtype
 * and shape, which are those of the first that is read.
 */
#ifndef TSI_DATA_LABELS_ARRAY_H
#define TSI_DATA_LABELS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/columns.h"

struct tsi_labels_array;

/* Files NAME.npy and NAME.x.npy end so. */
bool tsi_labels_array_is(const char *ending);

/*
 * The field's name in an ending: emb of ".emb.npy", npy of ".npy".  *len bytes
 * of it.
 */
const char *tsi_labels_array_name(const char *ending, size_t *len);

/* Of so many rows, which have nothing yet.  Fails with ENOMEM. */
int tsi_labels_array_create(uint64_t rows, struct tsi_labels_array **out);

/* NULL is allowed. */
void tsi_labels_array_destroy(struct tsi_labels_array *a);

/*
 * Row i's file, len bytes; name is what messages call it.  Several threads may
 * call, for different rows.  Fails with EDATA (it is no array, damaged, of
 * another dtype or shape than the others), ENOMEM.
 */
int tsi_labels_array_take(struct tsi_labels_array *a, uint64_t i,
			  const char *name, const void *bytes, size_t len);

/* Has row i a file? */
bool tsi_labels_array_has(const struct tsi_labels_array *a, uint64_t i);

/*
 * All rows, and one more of zeros, are the column's from now on, whose name is
 * left as it is.
 */
void tsi_labels_array_give(struct tsi_labels_array *a, struct tsi_column *to);

#endif
