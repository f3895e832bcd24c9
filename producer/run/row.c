/* SPDX-License-Identifier: MIT */
/*
 * row.c - what the index says of a sample, in its slots.
 */
#include "run/row.h"

#include <string.h>

#include "data/columns.h"
#include "data/format.h"

/* Zeros behind it, at least one. */
static void put_key(const struct tsi_index *x, uint64_t file,
		    const struct tsi_slots *to)
{
	char text[TSI_PATH];
	size_t len;
	const char *key = tsi_index_key(x, file, text, &len);

	memcpy(to->key, key, len);
	memset(to->key + len, 0, to->key_width - len);
}

/* What the data set has beside images and classes. */
static int put_columns(const struct tsi_columns *c, uint64_t file,
		       const struct tsi_slots *to)
{
	int err = 0;

	if (to->label && tsi_columns_label(c))
		err = tsi_columns_put_label(c, file, to->label);
	else if (to->label)
		*to->label = -1;
	for (unsigned k = 0; !err && k < tsi_columns_count(c); k++)
		err = tsi_columns_put(c, k, file, to->column[k]);
	return err;
}

int tsi_row_put(const struct tsi_index *x, uint64_t file,
		const struct tsi_slots *to)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	int err = 0;

	if (c)
		err = put_columns(c, file, to);
	else
		*to->label =
			tsi_index_unlabelled(x) ? -1 : tsi_index_label(x, file);
	*to->index = (int64_t)file;
	if (to->weight)
		*to->weight = tsi_index_weight(x, file);
	if (to->key)
		put_key(x, file, to);
	return err;
}

int tsi_row_make(struct tsi_sampler *s, uint64_t first, unsigned n,
		 const struct tsi_slots *to)
{
	const struct tsi_index *x = tsi_sampler_index(s);
	const struct tsi_columns *c = tsi_index_columns(x);
	void *field[TSI_COLUMNS + 1] = { NULL };
	uint64_t file[TSI_COLUMNS_RUN];
	struct tsi_slots key = *to;
	int err = tsi_sampler_run(s, first, n, file);

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++)
		to->index[i] = (int64_t)file[i];
	for (unsigned i = 0; to->weight && i < n; i++)
		to->weight[i] = tsi_index_weight(x, file[i]);
	for (unsigned i = 0; to->key && i < n; i++) {
		put_key(x, file[i], &key);
		key.key += key.key_width;
	}
	for (unsigned k = 0; k < tsi_columns_count(c); k++)
		field[k] = to->column[k];
	field[TSI_COLUMNS] = to->label;
	return tsi_columns_put_rows(c, file, n, field);
}
