/* SPDX-License-Identifier: MIT */
/*
 * columns.c - the fields that a data set has beside images and classes.
 */
#include "data/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"

void tsi_columns_destroy(struct tsi_columns *c)
{
	if (!c)
		return;
	free(c->mem);
	free(c->row);
	free(c);
}

uint64_t tsi_columns_row(const struct tsi_columns *c, uint64_t i)
{
	return c->row ? c->row[i] : i;
}

int tsi_columns_choose(struct tsi_columns *c, const uint64_t *rows, uint64_t n)
{
	uint64_t *row = malloc(n * sizeof(*row) + 1);

	if (!row)
		return tsi_err(TSOCK_ENOMEM, "no memory for a selection");
	for (uint64_t k = 0; k < n; k++)
		row[k] = tsi_columns_row(c, rows[k]);
	free(c->row);
	c->row = row;
	return 0;
}

uint64_t tsi_columns_fingerprint(const struct tsi_columns *c, uint64_t n,
				 uint64_t h)
{
	h = tsi_hash(&c->hash, sizeof(c->hash), h);
	return c->row ? tsi_hash(c->row, n * sizeof(*c->row), h) : h;
}

unsigned tsi_columns_count(const struct tsi_columns *c)
{
	return c->n;
}

const struct tsock_field *tsi_columns_field(const struct tsi_columns *c,
					    unsigned k)
{
	return &c->column[k].field;
}

const struct tsock_field *tsi_columns_label(const struct tsi_columns *c)
{
	return c->label.bytes ? &c->label.field : NULL;
}

bool tsi_columns_plain(const struct tsi_columns *c)
{
	return !c->n && c->classes;
}

static void put(const struct tsi_columns *c, const struct tsi_column *k,
		uint64_t i, void *to)
{
	uint64_t row = tsi_columns_row(c, i);
	size_t len;

	if (!k->start) {
		memcpy(to, k->data + row * k->bytes, k->bytes);
		return;
	}
	/* With the zero that ends it; the field is longer by one at least. */
	len = (size_t)(k->start[row + 1] - k->start[row]);
	memcpy(to, k->data + k->start[row], len);
	memset((uint8_t *)to + len, 0, k->bytes - len);
}

void tsi_columns_put(const struct tsi_columns *c, unsigned k, uint64_t i,
		     void *to)
{
	put(c, &c->column[k], i, to);
}

void tsi_columns_put_label(const struct tsi_columns *c, uint64_t i, void *to)
{
	put(c, &c->label, i, to);
}
