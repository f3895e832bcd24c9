/* SPDX-License-Identifier: MIT */
/*
 * weights.c - the weights of samples.
 */
#include "data/weights.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"

float tsi_weights_at(const struct tsi_weights *w, uint64_t i)
{
	if (w->own)
		return w->own[i];
	return w->column ? tsi_columns_number(w->columns, w->column, i) : 1;
}

bool tsi_weights_any(const struct tsi_weights *w)
{
	if (!w->own)
		return w->column != NULL;
	for (uint64_t i = 0; i < w->n; i++)
		if (w->own[i] != 1)
			return true;
	return false;
}

int tsi_weights_find(struct tsi_weights *w, const struct tsi_table *t,
		     float *own)
{
	w->own = own;
	w->columns = tsi_table_columns(t);
	if (w->columns)
		w->column = tsi_columns_numbers(w->columns, "weight");
	if (own || w->column)
		w->n = tsi_table_count(t);
	if (!own || !w->column)
		return 0;
	if (tsi_weights_any(w))
		return tsi_err(
			TSOCK_EARG,
			"the file of --select gives weights, and so does "
			"the data set's field weight: leave out one of "
			"them");
	free(w->own);
	w->own = NULL;
	return 0;
}

void tsi_weights_clear(struct tsi_weights *w)
{
	free(w->own);
	w->own = NULL;
}

bool tsi_weights_own(const struct tsi_weights *w)
{
	return w->own != NULL;
}

uint64_t tsi_weights_fingerprint(const struct tsi_weights *w)
{
	return w->own ? tsi_hash(w->own, w->n * sizeof(*w->own), 0) : 0;
}
