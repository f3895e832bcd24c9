/* SPDX-License-Identifier: MIT */
/*
 * pickle_built.c - asking for what a pickle holds.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/rows/pickle_impl.h"

#define NAMES_MAX 65536

static int find(const struct tsi_pickle *p, const char *key, struct value *out)
{
	const struct list *d = &p->list[p->top.a];
	char text[TSI_PICKLE_NAME];

	for (uint64_t k = 0; k + 1 < d->n; k += 2) {
		if (d->item[k].kind != STRING ||
		    tsi_pickle_text(p, &d->item[k], text) ||
		    strcmp(text, key) != 0)
			continue;
		*out = d->item[k + 1];
		return 0;
	}
	return tsi_err(TSOCK_EDATA, "%s: the batch has no '%s'",
		       tsi_rows_path(p->rows, p->file), key);
}

int tsi_pickle_array(const struct tsi_pickle *p, const char *key,
		     struct tsi_pickle_array *out)
{
	struct value v;
	int err = find(p, key, &v);

	if (err)
		return err;
	if (v.kind != ARRAY || !p->array[v.a].dtype)
		return tsi_err(TSOCK_EDATA,
			       "%s: '%s' is not an array of numbers",
			       tsi_rows_path(p->rows, p->file), key);
	*out = p->array[v.a];
	return 0;
}

/* An array's integers, of any width. */
static int read_integers(const struct tsi_pickle *p,
			 const struct tsi_pickle_array *a, int64_t *to)
{
	size_t size = tsock_dtype_size(a->dtype);
	bool is_signed = a->dtype == TSOCK_I8 || a->dtype == TSOCK_I16 ||
			 a->dtype == TSOCK_I32 || a->dtype == TSOCK_I64;

	for (uint64_t i = 0; i < a->len / size; i++) {
		uint8_t raw[8];
		uint64_t v = 0;
		int err = tsi_rows_read(p->rows, p->file, a->at + i * size, raw,
					size, "labels");

		if (err)
			return err;
		for (size_t k = size; k-- > 0;)
			v = v << 8 | raw[k];
		if (is_signed && size < 8 && v >> (8 * size - 1))
			v |= ~(uint64_t)0 << (8 * size);
		to[i] = (int64_t)v;
	}
	return 0;
}

int tsi_pickle_numbers(const struct tsi_pickle *p, const char *key,
		       int64_t **out, uint64_t *n)
{
	const struct tsi_pickle_array *a = NULL;
	const struct list *l = NULL;
	struct value v;
	int err = find(p, key, &v);

	*out = NULL;
	if (err)
		return err;
	if (v.kind == ARRAY && p->array[v.a].dtype &&
	    p->array[v.a].dtype != TSOCK_F32 &&
	    p->array[v.a].dtype != TSOCK_F64 &&
	    p->array[v.a].dtype != TSOCK_F16)
		a = &p->array[v.a];
	else if (v.kind == LIST)
		l = &p->list[v.a];
	else
		return tsi_err(TSOCK_EDATA, "%s: '%s' is no list of integers",
			       tsi_rows_path(p->rows, p->file), key);
	*n = a ? a->len / tsock_dtype_size(a->dtype) : l->n;
	*out = calloc(*n + 1, sizeof(**out));
	if (!*out)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	if (a)
		err = read_integers(p, a, *out);
	for (uint64_t i = 0; l && i < l->n && !err; i++) {
		if (l->item[i].kind != NUMBER)
			err = tsi_err(TSOCK_EDATA, "%s: a label isn't a number",
				      tsi_rows_path(p->rows, p->file));
		(*out)[i] = (int64_t)l->item[i].a;
	}
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

int tsi_pickle_strings(const struct tsi_pickle *p, const char *key, char **out,
		       uint32_t *n)
{
	struct value v;
	char text[TSI_PICKLE_NAME], *to;
	int err = find(p, key, &v);

	*out = NULL;
	if (!err && v.kind != LIST)
		err = tsi_err(TSOCK_EDATA, "%s: '%s' is no list of names",
			      tsi_rows_path(p->rows, p->file), key);
	if (!err && p->list[v.a].n > NAMES_MAX)
		err = tsi_err(TSOCK_EDATA, "%s: '%s' are too many",
			      tsi_rows_path(p->rows, p->file), key);
	if (err)
		return err;
	to = *out = calloc(p->list[v.a].n + 1, TSI_PICKLE_NAME);
	if (!to)
		return tsi_err(TSOCK_ENOMEM, "no memory for names of classes");
	*n = (uint32_t)p->list[v.a].n;
	for (uint64_t k = 0; k < *n && !err; k++) {
		err = tsi_pickle_text(p, &p->list[v.a].item[k], text);
		memcpy(to, text, strlen(text) + 1);
		to += strlen(text) + 1;
	}
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
