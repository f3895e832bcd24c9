/* SPDX-License-Identifier: MIT */
/*
 * ragged.c - columns of a table whose rows have different numbers of values.
 */
#include "data/columnar/ragged.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "tsock/common.h"

#define MOST ((uint64_t)4 << 20) /* bytes of a row, with the zeros behind it */
#define LENGTH "_length"

static int describe_values(const struct tsi_columnar *c,
			   const struct tsi_columnar_entry *e,
			   struct tsi_column *to)
{
	struct tsock_field *f = &to->field;
	const struct tsi_columnar_longest *l = tsi_columnar_longest(c, e);
	size_t item = tsock_dtype_size(e->dtype);

	f->flags = TSOCK_FIELD_RAGGED;
	f->dtype = e->dtype;
	f->ndim = e->ndim + 1;
	f->shape[0] = l->items ? l->items : 1;
	for (uint32_t i = 0; i < e->ndim; i++) {
		f->shape[i + 1] = e->shape[i];
		item *= e->shape[i];
	}
	if (f->shape[0] > MOST / item)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s: row %" PRIu64 " has %" PRIu64
			       " values of %zu bytes in the column %s, and "
			       "every sample has room for the longest row, of "
			       "%" PRIu64 " MiB at most: write shorter rows",
			       tsi_columnar_path(c), l->row, l->items, item,
			       e->name, MOST >> 20);
	to->data = tsi_columnar_items(c, e);
	to->start = tsi_columnar_starts(c, e);
	to->end = tsi_columnar_item_count(e);
	to->mapped = true;
	to->most = l->items;
	to->item = item;
	memcpy(to->pad, e->pad, sizeof(to->pad));
	to->bytes = f->shape[0] * item;
	return 0;
}

int tsi_columnar_ragged(const struct tsi_columnar *c,
			const struct tsi_columnar_entry *e,
			struct tsi_column *values, struct tsi_column *lengths)
{
	struct tsock_field *f = &lengths->field;

	*values = (struct tsi_column){ .data = NULL };
	*lengths =
		(struct tsi_column){ .start = tsi_columnar_starts(c, e),
				     .end = tsi_columnar_item_count(e),
				     .most = tsi_columnar_longest(c, e)->items,
				     .mapped = true,
				     .length = true,
				     .bytes = sizeof(int32_t) };
	if (strlen(e->name) + sizeof(LENGTH) > sizeof(f->name))
		return tsi_err(TSOCK_EDATA,
			       "%s: the name %s is too long for a column of "
			       "rows of different lengths: %zu bytes are the "
			       "most, since " LENGTH " is put behind it",
			       tsi_columnar_path(c), e->name,
			       sizeof(f->name) - sizeof(LENGTH));
	memcpy(values->field.name, e->name, strlen(e->name) + 1);
	snprintf(f->name, sizeof(f->name), "%.24s" LENGTH, e->name);
	f->dtype = TSOCK_I32;
	if (tsi_columnar_find(c, f->name))
		return tsi_err(TSOCK_EDATA,
			       "%s: a column can't be called %s, which says "
			       "how long the rows of the column %s are",
			       tsi_columnar_path(c), f->name, e->name);
	return describe_values(c, e, values);
}
