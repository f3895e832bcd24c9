/* SPDX-License-Identifier: MIT */
/*
 * columns.c - the fields that a data set has beside images and classes.
 */
#include "data/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/documents.h"
#include "data/mapped.h"

void tsi_columns_destroy(struct tsi_columns *c)
{
	if (!c)
		return;
	for (unsigned k = 0; k < c->n; k++)
		free(c->column[k].part);
	free(c->label.part);
	free(c->pixels.part);
	for (unsigned k = 0; k < c->maps; k++)
		tsi_mapped_close(&c->map[k]);
	free(c->map);
	tsi_documents_destroy(c->documents);
	free(c->mem);
	free(c->texts[0]);
	free(c->texts[1]);
	free(c->row);
	free(c);
}

void tsi_columns_set_rows(struct tsi_columns *c, uint64_t *row, uint64_t hash)
{
	c->row = row;
	c->hash = hash;
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

bool tsi_columns_classes(const struct tsi_columns *c)
{
	return c->classes;
}

bool tsi_columns_classed(const struct tsi_columns *c)
{
	return c->classes || c->label.hot;
}

uint32_t tsi_columns_class(const struct tsi_columns *c, uint64_t i)
{
	uint64_t row = tsi_columns_row(c, i);
	const struct tsi_column *k = &c->label;

	if (k->narrow)
		return ((const uint32_t *)(const void *)k->data)[row];
	if (!k->hot)
		return (uint32_t)((const int64_t *)(const void *)k->data)[row];
	if (k->start[row] == k->start[row + 1])
		return 0;
	return ((const uint32_t *)(const void *)k->data)[k->start[row]];
}

bool tsi_columns_plain(const struct tsi_columns *c)
{
	return !c->n && c->classes;
}

bool tsi_columns_imageless(const struct tsi_columns *c)
{
	return c->imageless;
}

bool tsi_columns_other_at(const struct tsi_columns *c, unsigned k, uint64_t i,
			  struct tsi_columns_mask *out)
{
	if (!c->other_at[k])
		return false;
	*out = c->other_at[k][tsi_columns_row(c, i)];
	return true;
}

bool tsi_columns_mask(const struct tsi_columns *c, uint64_t i,
		      struct tsi_columns_mask *out)
{
	if (!c->mask)
		return false;
	*out = c->mask[tsi_columns_row(c, i)];
	return true;
}

unsigned tsi_columns_others(const struct tsi_columns *c)
{
	return c ? c->others : 0;
}

const char *tsi_columns_other(const struct tsi_columns *c, unsigned k)
{
	return c->other[k];
}

size_t tsi_columns_pixels(const struct tsi_columns *c)
{
	return c->pixels.bytes;
}

bool tsi_columns_image(const struct tsi_columns *c, uint32_t shape[3])
{
	for (unsigned k = 0; k < 3; k++)
		shape[k] = (uint32_t)c->pixels.field.shape[k];
	return c->planar;
}

/* The address says which file it is. */
static int fail_cut(const struct tsi_columns *c, const uint8_t *from)
{
	unsigned k = 0;

	while (k + 1 < c->maps &&
	       (from < c->map[k].mem || from >= c->map[k].mem + c->map[k].len))
		k++;
	return tsi_err(TSOCK_EDATA,
		       "%s was cut short while it was served: write it whole, "
		       "and start the stream again",
		       c->map[k].path);
}

/* A row of one of several parts, or of the only one; without a branch that would
 * be guessed wrong. */
static const uint8_t *find_row(const struct tsi_column *k, uint64_t row)
{
	const struct tsi_column_part *part = k->part;

	for (unsigned n = k->parts; n > 1; n -= n / 2)
		part += part[n / 2].first <= row ? n / 2 : 0;
	return part->data + (row - part->first) * k->stride;
}

static const uint8_t *place_of(const struct tsi_column *k, uint64_t row)
{
	return k->parts ? find_row(k, row) : k->data + row * k->bytes;
}

static void put_hot(const struct tsi_column *k, uint64_t row, void *to)
{
	const uint32_t *hot = (const uint32_t *)(const void *)k->data;
	float *is = to;

	memset(to, 0, k->bytes);
	for (uint64_t i = k->start[row]; i < k->start[row + 1]; i++)
		is[hot[i]] = 1;
}

static int fail_overwritten(const struct tsi_columns *c)
{
	return tsi_err(TSOCK_EDATA,
		       "%s was written over while it was served: write another "
		       "file, rename() it to this one, and start the stream "
		       "again",
		       c->map[0].path);
}

/* Where a row's items begin and end. */
static int find_items(const struct tsi_columns *c, const struct tsi_column *k,
		      uint64_t row, uint64_t at[2])
{
	const uint64_t *from = &k->start[row];

	if (!k->mapped) {
		memcpy(at, from, 2 * sizeof(*at));
		return 0;
	}
	if (!tsi_mapped_copy(at, from, 2 * sizeof(*at)))
		return fail_cut(c, (const uint8_t *)from);
	if (at[0] > at[1] || at[1] > k->end || at[1] - at[0] > k->most)
		return fail_overwritten(c);
	return 0;
}

void tsi_column_fill(const struct tsi_column *k, void *place, size_t from)
{
	static const uint8_t zero[sizeof(k->pad)];
	size_t size = tsock_dtype_size(k->field.dtype);
	uint8_t *to = place;

	if (!memcmp(k->pad, zero, sizeof(zero))) {
		memset(to + from, 0, k->bytes - from);
		return;
	}
	for (; from < k->bytes; from += size)
		memcpy(to + from, k->pad, size);
}

/* The pad's values behind it, zeros mostly: a text has one at least. */
static int put_ragged(const struct tsi_columns *c, const struct tsi_column *k,
		      const uint64_t at[2], uint8_t *to)
{
	size_t item = k->item ? k->item : 1;
	size_t len = (size_t)(at[1] - at[0]) * item;
	const uint8_t *from = k->data + at[0] * item;

	if (!k->mapped)
		memcpy(to, from, len);
	else if (!tsi_mapped_copy(to, from, len))
		return fail_cut(c, from);
	tsi_column_fill(k, to, len);
	if (k->field.flags & TSOCK_FIELD_TEXT && (!len || to[len - 1]))
		return fail_overwritten(c);
	return 0;
}

static void put_length(const uint64_t at[2], void *to)
{
	*(int32_t *)to = (int32_t)(at[1] - at[0]);
}

static int put_items(const struct tsi_columns *c, const struct tsi_column *k,
		     uint64_t row, void *to)
{
	uint64_t at[2];
	int err;

	if (k->hot) {
		put_hot(k, row, to);
		return 0;
	}
	err = find_items(c, k, row, at);
	if (err)
		return err;
	if (!k->length)
		return put_ragged(c, k, at, to);
	put_length(at, to);
	return 0;
}

static int put_run(const struct tsi_columns *c, const struct tsi_column *k,
		   uint64_t row, uint8_t *to)
{
	struct tsi_documents_run r;
	size_t len;

	tsi_documents_find(c->documents, row, &r);
	if (k->run == TSI_COLUMNS_MARKS) {
		tsi_documents_mark(c->documents, &r, (int32_t *)(void *)to);
		return 0;
	}
	if (k->run == TSI_COLUMNS_LENGTH) {
		*(int32_t *)(void *)to = (int32_t)r.tokens;
		return 0;
	}
	len = r.tokens * tsock_dtype_size(k->field.dtype);
	if (!tsi_mapped_copy(to, r.data, len))
		return fail_cut(c, r.data);
	memset(to + len, 0, k->bytes - len);
	return 0;
}

static int put(const struct tsi_columns *c, const struct tsi_column *k,
	       uint64_t i, void *to)
{
	uint64_t row = tsi_columns_row(c, i);
	const uint8_t *from;

	if (k->start)
		return put_items(c, k, row, to);
	if (k->run)
		return put_run(c, k, row, to);
	if (k->narrow) {
		int64_t value = ((const uint32_t *)(const void *)k->data)[row];

		memcpy(to, &value, sizeof(value));
		return 0;
	}
	from = place_of(k, row);
	if (!k->parts && !k->mapped)
		memcpy(to, from, k->bytes);
	else if (!tsi_mapped_copy(to, from, k->bytes))
		return fail_cut(c, from);
	return 0;
}

static int take_run(const struct tsi_columns *c, const struct tsi_column *k,
		    uint64_t i, void *to, size_t room, size_t *len)
{
	struct tsi_documents_run r;

	tsi_documents_find(c->documents, tsi_columns_row(c, i), &r);
	*len = r.tokens * tsock_dtype_size(k->field.dtype);
	return *len > room || tsi_mapped_copy(to, r.data, *len)
		       ? 0
		       : fail_cut(c, r.data);
}

int tsi_columns_take(const struct tsi_columns *c, const struct tsi_column *k,
		     uint64_t i, void *to, size_t room, size_t *len)
{
	size_t item = k->hot ? sizeof(uint32_t) : k->item ? k->item : 1;
	const uint8_t *from;
	uint64_t at[2];
	int err;

	if (k->run == TSI_COLUMNS_TOKENS && k->field.flags & TSOCK_FIELD_RAGGED)
		return take_run(c, k, i, to, room, len);
	if (!k->start) {
		*len = k->bytes;
		return *len <= room ? put(c, k, i, to) : 0;
	}
	err = find_items(c, k, tsi_columns_row(c, i), at);
	if (err)
		return err;
	*len = (size_t)(at[1] - at[0]) * item;
	from = k->data + at[0] * item;
	if (!*len || *len > room || tsi_mapped_copy(to, from, *len))
		return 0;
	return fail_cut(c, from);
}

/* ---- rows of all fields ---- */

#define LABEL TSI_COLUMNS /* its number */

static const struct tsi_column *field_of(const struct tsi_columns *c,
					 unsigned k)
{
	return k == LABEL ? &c->label : &c->column[k];
}

/* Do b's rows lie behind a's in the same records?  *at: so many bytes. */
static bool lies_behind(const struct tsi_column *a, const struct tsi_column *b,
			size_t *at)
{
	if (!a->parts || a->parts != b->parts || a->stride != b->stride)
		return false;
	*at = (uintptr_t)b->part[0].data - (uintptr_t)a->part[0].data;
	for (unsigned p = 0; p < a->parts; p++)
		if (a->part[p].first != b->part[p].first ||
		    (uintptr_t)b->part[p].data - (uintptr_t)a->part[p].data !=
			    *at)
			return false;
	return *at && *at < a->stride;
}

/* Is field k the first of its records? */
static bool leads(const struct tsi_columns *c, unsigned k)
{
	size_t at;

	for (unsigned j = 0; j <= LABEL; j++)
		if (lies_behind(field_of(c, j), field_of(c, k), &at))
			return false;
	return true;
}

void tsi_columns_join(struct tsi_columns *c)
{
	for (unsigned j = 0; j <= LABEL; j++) {
		if (!leads(c, j))
			continue;
		for (unsigned k = 0; k <= LABEL; k++) {
			struct tsi_column *f =
				k == LABEL ? &c->label : &c->column[k];
			size_t at;

			if (!lies_behind(field_of(c, j), f, &at))
				continue;
			f->behind = j + 1;
			f->at = at;
		}
	}
}

/* Field k, and those that lie behind it in the same records: what is wanted. */
static unsigned list_pieces(const struct tsi_columns *c, unsigned k,
			    void *const *to, struct tsi_mapped_piece *piece)
{
	unsigned n = 0;

	for (unsigned j = 0; j <= LABEL; j++) {
		const struct tsi_column *f = field_of(c, j);

		if (to[j] && (j == k || f->behind == k + 1))
			piece[n++] = (struct tsi_mapped_piece){
				.to = to[j], .at = f->at, .len = f->bytes
			};
	}
	return n;
}

/* Rows of these. */
static int gather(const struct tsi_columns *c, unsigned k, const uint64_t *rows,
		  unsigned n, void *const *to)
{
	struct tsi_mapped_piece piece[TSI_COLUMNS + 1];
	const uint8_t *from[TSI_COLUMNS_RUN];
	unsigned pieces = list_pieces(c, k, to, piece), bad;

	if (!pieces)
		return 0;
	for (unsigned i = 0; i < n; i++)
		from[i] = place_of(field_of(c, k), tsi_columns_row(c, rows[i]));
	if (tsi_mapped_gather(from, n, piece, pieces, &bad))
		return 0;
	return fail_cut(c, from[bad]);
}

/* Rows of field k, one by one. */
static int put_each(const struct tsi_columns *c, unsigned k,
		    const uint64_t *rows, unsigned n, uint8_t *to)
{
	const struct tsi_column *f = field_of(c, k);
	int err = 0;

	for (unsigned i = 0; to && i < n && !err; i++)
		err = put(c, f, rows[i], to + i * f->bytes);
	return err;
}

int tsi_columns_put_rows(const struct tsi_columns *c, const uint64_t *rows,
			 unsigned n, void *const to[TSI_COLUMNS + 1])
{
	int err = 0;

	for (unsigned k = 0; k <= LABEL && !err; k++) {
		const struct tsi_column *f = field_of(c, k);

		if (f->behind)
			continue;
		err = !f->start && !f->narrow && (f->parts || f->mapped)
			      ? gather(c, k, rows, n, to)
			      : put_each(c, k, rows, n, to[k]);
	}
	return err;
}

int tsi_columns_put(const struct tsi_columns *c, unsigned k, uint64_t i,
		    void *to)
{
	return put(c, &c->column[k], i, to);
}

int tsi_columns_put_label(const struct tsi_columns *c, uint64_t i, void *to)
{
	return put(c, &c->label, i, to);
}

int tsi_columns_put_pixels(const struct tsi_columns *c, uint64_t i, void *to)
{
	return put(c, &c->pixels, i, to);
}

const struct tsi_column *tsi_columns_numbers(const struct tsi_columns *c,
					     const char *name)
{
	for (unsigned k = 0; k < c->n; k++) {
		const struct tsock_field *f = &c->column[k].field;

		if (!strcmp(f->name, name))
			return !f->ndim && (f->dtype == TSOCK_F32 ||
					    f->dtype == TSOCK_F64 ||
					    f->dtype == TSOCK_I64)
				       ? &c->column[k]
				       : NULL;
	}
	return NULL;
}

float tsi_columns_number(const struct tsi_columns *c,
			 const struct tsi_column *k, uint64_t i)
{
	union {
		float f;
		double d;
		int64_t n;
	} u = { .n = 0 };

	if (put(c, k, i, &u))
		return NAN;
	return k->field.dtype == TSOCK_F32   ? u.f
	       : k->field.dtype == TSOCK_F64 ? (float)u.d
					     : (float)u.n;
}
