/* SPDX-License-Identifier: MIT */
/*
 * weights.h - the weights of samples: a selection's, or those of a table's
 * column.
 */
#ifndef TSI_DATA_WEIGHTS_H
#define TSI_DATA_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/table.h"

/* All zeros: each weight is 1. */
struct tsi_weights {
	float *own; /* of a selection, [n] */
	uint64_t n;
	const struct tsi_columns *columns;
	const struct tsi_column
		*column; /* called weight; NULL: there is none */
};

/*
 * The weights of t's rows; own is the selection's, from malloc(), which *w owns
 * from then on even if this fails, or NULL.  t must outlive it.  Fails with
 * EARG where both say something.
 */
int tsi_weights_find(struct tsi_weights *w, const struct tsi_table *t,
		     float *own);
void tsi_weights_clear(struct tsi_weights *w);

/* That of row i; are there any: a column, or a selection's number but 1? */
float tsi_weights_at(const struct tsi_weights *w, uint64_t i);
bool tsi_weights_any(const struct tsi_weights *w);

/* They are a selection's, and no column's. */
bool tsi_weights_own(const struct tsi_weights *w);

/* A number for those of a selection. */
uint64_t tsi_weights_fingerprint(const struct tsi_weights *w);

#endif
