/* SPDX-License-Identifier: MIT */
/*
 * fields.c - the columns of a table that are fields of its samples.
 */
#include "data/columnar/fields.h"

#include <string.h>

#include "base/err.h"
#include "data/columnar/ragged.h"
#include "tsock/common.h"

static void describe_text(const struct tsi_columnar *c,
			  const struct tsi_columnar_entry *e,
			  struct tsi_column *to)
{
	struct tsock_field *f = &to->field;

	to->data = tsi_columnar_items(c, e);
	to->start = tsi_columnar_starts(c, e);
	to->end = tsi_columnar_item_count(e);
	to->most = tsi_columnar_longest(c, e)->items;
	to->mapped = true;
	/* The longest text with its zero, as a multiple of 8. */
	to->bytes = (size_t)(to->most + 7) / 8 * 8;
	f->flags = TSOCK_FIELD_TEXT;
	f->dtype = TSOCK_U8;
	f->ndim = 1;
	f->shape[0] = to->bytes;
}

static void describe_values(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    struct tsi_column *to)
{
	struct tsock_field *f = &to->field;

	to->data = tsi_columnar_data(c, e);
	to->mapped = true;
	to->bytes = tsock_dtype_size(e->dtype);
	f->dtype = e->dtype;
	f->ndim = e->ndim;
	for (uint32_t i = 0; i < e->ndim; i++) {
		f->shape[i] = e->shape[i];
		to->bytes *= e->shape[i];
	}
}

/* What a column's field is called. */
static const char *name_of(const struct tsi_columnar_entry *e)
{
	return e->name + (e->name[0] == TSI_COLUMNAR_ESCAPE);
}

static void describe_column(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    struct tsi_column *to)
{
	*to = (struct tsi_column){ .data = NULL };
	memcpy(to->field.name, name_of(e), strlen(name_of(e)) + 1);
	if (e->kind == TSI_COLUMNAR_TEXT)
		describe_text(c, e, to);
	else
		describe_values(c, e, to);
}

/* Those that say where samples are, or that the stream has anyway. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "image",
					   "files",
					   "files.stamp",
					   "classes",
					   "key",
					   "pack.masks",
					   TSI_COLUMNAR_PIXELS,
					   TSI_COLUMNAR_PLANES,
					   TSI_COLUMNAR_RECIPES };

	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i]))
			return true;
	return false;
}

static int check_field(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	static const char *const taken[] = { "index", "box", "draws" };

	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strcmp(e->name, taken[i]))
			return tsi_err(TSOCK_EDATA,
				       "%s: a column can't be called %s, which "
				       "is a field of every stream",
				       tsi_columnar_path(c), e->name);
	if (strlen(name_of(e)) >= sizeof(((struct tsock_field *)0)->name))
		return tsi_err(TSOCK_EDATA,
			       "%s: the name %s is too long for a field: 31 "
			       "bytes are the most",
			       tsi_columnar_path(c), e->name);
	return tsi_columnar_check_count(c, e);
}

/* An image behind the first. */
static int add_other(const struct tsi_columnar *c,
		     const struct tsi_columnar_entry *e, struct tsi_columns *to)
{
	if (to->imageless)
		return tsi_err(TSOCK_EDATA,
			       "%s has the column %s of images, and no column "
			       "image, which is a sample's first one",
			       tsi_columnar_path(c), e->name);
	if (!strcmp(e->name, "label"))
		return tsi_columnar_fail(c, e, "has images in place of labels");
	if (to->others == TSI_OTHERS)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s has more than %d columns of images: write a "
			       "table with fewer",
			       tsi_columnar_path(c), TSI_OTHERS + 1);
	memcpy(to->other[to->others++], e->name, strlen(e->name) + 1);
	return 0;
}

/* Where the next field goes; NULL: there are too many. */
static struct tsi_column *place_of(struct tsi_columns *to, const char *name)
{
	if (!strcmp(name, "label"))
		return &to->label;
	return to->n < TSI_COLUMNS ? &to->column[to->n++] : NULL;
}

int tsi_columnar_fields(const struct tsi_columnar *c, struct tsi_columns *to)
{
	for (uint32_t i = 0; i < tsi_columnar_count(c); i++) {
		const struct tsi_columnar_entry *e = tsi_columnar_at(c, i);
		bool ragged = e->kind == TSI_COLUMNAR_RAGGED;
		struct tsi_column *place, *lengths;
		int err;

		if (is_own(e->name))
			continue;
		err = check_field(c, e);
		if (!err && e->kind == TSI_COLUMNAR_RANGES) {
			err = add_other(c, e, to);
			if (!err)
				continue;
		}
		if (err)
			return err;
		place = place_of(to, e->name);
		lengths = ragged ? place_of(to, "") : place;
		if (!place || !lengths)
			return tsi_err(TSOCK_ENOTSUP,
				       "%s has more than %d columns beside "
				       "image and label, where those whose "
				       "rows have different lengths count "
				       "twice: write a table with fewer",
				       tsi_columnar_path(c), TSI_COLUMNS);
		if (ragged)
			err = tsi_columnar_ragged(c, e, place, lengths);
		else
			describe_column(c, e, place);
		if (err)
			return err;
	}
	return 0;
}
