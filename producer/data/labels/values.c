/* SPDX-License-Identifier: MIT */
/*
 * values.c - a list's labels and fields as columns: first how large each is,
 * then its values, in one block of memory.
 */
#include "data/labels/values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/labels/array.h"
#include "data/labels/json.h"

#define LONGEST 16384 /* values of a vector, and bytes of a text, at most */

/* A column to make. */
struct making {
	struct tsi_labels_list
		by;               /* the list, with the separator of this one */
	unsigned column, columns; /* of the list's */
	enum tsi_labels_kind kind;
	const struct tsi_labels_classes *classes;
	struct tsi_labels_array *array; /* NULL: cells of text */
	struct tsi_column *to;
	uint64_t n;     /* of what lies in the block, beside starts */
	size_t item;    /* bytes of one of them */
	uint64_t bytes; /* of the block */
};

static const char *cell_of(const struct making *m, uint64_t i, unsigned k)
{
	return tsi_labels_list_cell(&m->by, i, m->column + k);
}

static bool has_starts(const struct making *m)
{
	return m->kind == TSI_LABELS_TEXT || m->kind == TSI_LABELS_CLASSES;
}

/* ---- sizes ---- */

static uint64_t count_items(const struct making *m, uint64_t i, unsigned k)
{
	struct tsi_labels_item it = tsi_labels_list_items(cell_of(m, i, k));
	uint64_t n = 0;

	while (tsi_labels_list_next(&m->by, &it))
		n++;
	return n;
}

/* The length of a vector, which all cells have; 0: nothing says it. */
static int measure_vector(const struct making *m, uint64_t *len)
{
	*len = m->columns > 1 ? m->columns : 0;
	for (uint64_t i = 0; i < m->by.rows; i++) {
		uint64_t n = m->columns > 1 ? m->columns : count_items(m, i, 0);

		if (!n)
			continue;
		if (!*len)
			*len = n;
		if (n != *len)
			return tsi_labels_list_bad(
				&m->by, i,
				"it has %" PRIu64 " values, and others %" PRIu64
				"; several classes of a sample are as=classes",
				n, *len);
	}
	if (*len > LONGEST)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s: a vector has more than %d values",
			       m->by.file.path, LONGEST);
	return 0;
}

static int measure_text(struct making *m)
{
	size_t most = 0;

	m->n = 1; /* that of the row behind all */
	for (uint64_t i = 0; i < m->by.rows; i++) {
		const char *cell = cell_of(m, i, 0);
		size_t len = cell ? strlen(cell) : 0;

		if (cell && *cell == TSI_LABELS_LIST)
			return tsi_labels_list_bad(
				&m->by, i,
				"it has a list where text is wanted");
		if (len >= LONGEST)
			return tsi_labels_list_bad(
				&m->by, i, "a text has more than %d bytes",
				LONGEST - 1);
		most = len > most ? len : most;
		m->n += len + 1;
	}
	m->to->bytes = (most + 8) / 8 * 8;
	m->to->field.flags = TSOCK_FIELD_TEXT;
	m->to->field.dtype = TSOCK_U8;
	m->to->field.ndim = 1;
	m->to->field.shape[0] = m->to->bytes;
	return 0;
}

static int measure_classes(struct making *m)
{
	uint32_t n = m->classes->n;

	if (n > LONGEST)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s names %u classes: where a sample may have "
			       "several, %d are the most",
			       m->by.file.path, n, LONGEST);
	for (uint64_t i = 0; i < m->by.rows; i++)
		m->n += count_items(m, i, 0);
	m->item = sizeof(uint32_t);
	m->to->bytes = n * sizeof(float);
	m->to->field.dtype = TSOCK_F32;
	m->to->field.ndim = 1;
	m->to->field.shape[0] = n;
	return 0;
}

static int measure_numbers(struct making *m)
{
	bool whole = m->kind != TSI_LABELS_FLOAT;
	uint64_t len = 1;
	int err = m->kind == TSI_LABELS_CLASS ? 0 : measure_vector(m, &len);

	m->item = whole ? sizeof(int64_t) : sizeof(float);
	m->to->field.dtype = whole ? TSOCK_I64 : TSOCK_F32;
	if (len > 1) {
		m->to->field.ndim = 1;
		m->to->field.shape[0] = len;
	} else {
		len = 1;
	}
	m->to->bytes = len * m->item;
	m->n = (m->by.rows + 1) * len;
	return err;
}

static int measure(struct making *m)
{
	uint64_t starts =
		has_starts(m) ? (m->by.rows + 2) * sizeof(uint64_t) : 0;
	int err;

	m->n = 0;
	m->item = 1;
	m->bytes = 0;
	if (m->array)
		return 0;
	if (m->kind == TSI_LABELS_TEXT && !strcmp(m->to->field.name, "weight"))
		return tsi_err(TSOCK_EDATA,
			       "%s: the column weight isn't numbers",
			       m->by.file.path);
	if (m->kind == TSI_LABELS_TEXT)
		err = measure_text(m);
	else if (m->kind == TSI_LABELS_CLASSES)
		err = measure_classes(m);
	else
		err = measure_numbers(m);
	m->bytes = starts + (m->n * m->item + 7) / 8 * 8;
	return err;
}

/* ---- values ---- */

static int not_whole(const struct making *m, uint64_t i,
		     const struct tsi_labels_item *it)
{
	return tsi_labels_list_bad(
		&m->by, i, "'%.*s' is no whole number below 2^63",
		(int)(it->len < 60 ? it->len : 60), it->text);
}

static int take_int(const struct making *m, uint64_t i,
		    const struct tsi_labels_item *it, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(it->text, &end, 10);
	if (errno ||
	    tsi_labels_kind_number(it->text, it->len) != TSI_LABELS_WHOLE)
		return not_whole(m, i, it);
	return 0;
}

static int take_float(const struct making *m, uint64_t i,
		      const struct tsi_labels_item *it, float *out)
{
	bool number = tsi_labels_kind_number(it->text, it->len) !=
		      TSI_LABELS_NO_NUMBER;

	*out = number ? (float)strtod(it->text, NULL) : 0;
	if (number && isfinite(*out))
		return 0;
	return tsi_labels_list_bad(&m->by, i, "'%.*s' is no float32",
				   (int)(it->len < 60 ? it->len : 60),
				   it->text);
}

/* The only item of a cell. */
static int take_class(const struct making *m, uint64_t i, int64_t *out)
{
	struct tsi_labels_item it = tsi_labels_list_items(cell_of(m, i, 0));
	struct tsi_labels_item first;

	*out = -1;
	if (!tsi_labels_list_next(&m->by, &it))
		return 0;
	first = it;
	if (tsi_labels_list_next(&m->by, &it))
		return tsi_labels_list_bad(&m->by, i,
					   "it has several labels: they are "
					   "as=classes, as=float or as=int");
	*out = tsi_labels_classes_number(m->classes, &first);
	return 0;
}

static int put_classes(const struct making *m, int64_t *to)
{
	int err = 0;

	for (uint64_t i = 0; i < m->by.rows && !err; i++)
		err = take_class(m, i, &to[i]);
	to[m->by.rows] = -1;
	return err;
}

/* Value at of a block; it NULL: the list says nothing, which is NaN or -1. */
static int put_number(const struct making *m, uint64_t i,
		      const struct tsi_labels_item *it, void *block,
		      uint64_t at)
{
	if (m->kind == TSI_LABELS_INT) {
		int64_t *to = (int64_t *)block + at;

		*to = -1;
		return it ? take_int(m, i, it, to) : 0;
	}
	*((float *)block + at) = NAN;
	return it ? take_float(m, i, it, (float *)block + at) : 0;
}

/* A row's n values, which are one number mostly. */
static int put_vector(const struct making *m, uint64_t i, void *block,
		      uint64_t n)
{
	uint64_t at = i * n, end = at + n;
	int err = 0;

	for (unsigned k = 0; k < m->columns && !err; k++) {
		struct tsi_labels_item it =
			tsi_labels_list_items(cell_of(m, i, k));
		bool any = false;

		while (!err && at < end && tsi_labels_list_next(&m->by, &it)) {
			if (any && m->columns > 1)
				return tsi_labels_list_bad(
					&m->by, i,
					"a column of a vector has several "
					"values");
			err = put_number(m, i, &it, block, at++);
			any = true;
		}
		if (!any && at < end)
			err = put_number(m, i, NULL, block, at++);
	}
	while (at < end && !err)
		err = put_number(m, i, NULL, block, at++);
	return err;
}

static int put_numbers(const struct making *m, void *block)
{
	uint64_t n = m->to->bytes / m->item;
	int err = 0;

	for (uint64_t i = 0; i < m->by.rows && !err; i++)
		err = put_vector(m, i, block, n);
	for (uint64_t k = 0; k < n && !err; k++)
		err = put_number(m, 0, NULL, block, m->by.rows * n + k);
	return err;
}

static void put_texts(const struct making *m, uint64_t *start, char *to)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i <= m->by.rows; i++) {
		const char *cell = i < m->by.rows ? cell_of(m, i, 0) : NULL;
		size_t len = cell ? strlen(cell) : 0;

		start[i] = at;
		memcpy(to + at, cell ? cell : "", len);
		to[at + len] = '\0';
		at += len + 1;
	}
	start[m->by.rows + 1] = at;
}

static void put_hot(const struct making *m, uint64_t *start, uint32_t *to)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < m->by.rows; i++) {
		struct tsi_labels_item it =
			tsi_labels_list_items(cell_of(m, i, 0));

		start[i] = at;
		while (tsi_labels_list_next(&m->by, &it))
			to[at++] = tsi_labels_classes_number(m->classes, &it);
	}
	start[m->by.rows] = start[m->by.rows + 1] = at;
}

static int put_values(const struct making *m, void *block)
{
	uint64_t *start = block;
	void *values = has_starts(m) ? start + m->by.rows + 2 : block;

	if (m->array) {
		tsi_labels_array_give(m->array, m->to);
		return 0;
	}
	m->to->data = values;
	if (has_starts(m))
		m->to->start = start;
	if (m->kind == TSI_LABELS_TEXT) {
		put_texts(m, start, values);
		return 0;
	}
	if (m->kind == TSI_LABELS_CLASSES) {
		m->to->hot = true;
		put_hot(m, start, values);
		return 0;
	}
	return m->kind == TSI_LABELS_CLASS ? put_classes(m, values)
					   : put_numbers(m, values);
}

/* ---- all columns ---- */

static void plan(const struct tsi_labels_list *l, enum tsi_labels_kind kind,
		 const struct tsi_labels_classes *classes,
		 struct tsi_columns *c, struct making *m, unsigned *n)
{
	*n = 0;
	if (l->labels) {
		strcpy(c->label.field.name, "label");
		c->classes = kind == TSI_LABELS_CLASS;
		m[(*n)++] = (struct making){ .by = *l,
					     .column = 1,
					     .columns = l->labels,
					     .kind = kind,
					     .classes = classes,
					     .to = &c->label };
	}
	for (unsigned k = 0; k < l->fields; k++) {
		struct making *one = &m[(*n)++];

		*one = (struct making){ .by = *l,
					.column = 1 + l->labels + k,
					.columns = 1,
					.array = l->array[k],
					.to = &c->column[c->n++] };
		one->by.first_word = false;
		strcpy(one->to->field.name, l->field[k]);
		if (!one->array)
			one->kind = tsi_labels_kind_field(l, one->column,
							  &one->by.separator);
	}
}

int tsi_labels_values_make(const struct tsi_labels_list *l,
			   enum tsi_labels_kind kind,
			   const struct tsi_labels_classes *classes,
			   struct tsi_columns **out)
{
	struct making m[1 + TSI_COLUMNS];
	struct tsi_columns *c = calloc(1, sizeof(*c));
	uint64_t bytes = 0;
	unsigned n;
	int err = 0;

	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	plan(l, kind, classes, c, m, &n);
	for (unsigned k = 0; k < n && !err; k++) {
		err = measure(&m[k]);
		bytes += m[k].bytes;
	}
	c->mem = err ? NULL : malloc(bytes + 1);
	if (!err && !c->mem)
		err = tsi_err(TSOCK_ENOMEM, "no memory for labels");
	bytes = 0;
	for (unsigned k = 0; k < n && !err; k++) {
		err = put_values(&m[k], (char *)c->mem + bytes);
		bytes += m[k].bytes;
	}
	if (err) {
		tsi_columns_destroy(c);
		return err;
	}
	*out = c;
	return 0;
}
