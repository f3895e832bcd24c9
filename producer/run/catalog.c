/* SPDX-License-Identifier: MIT */
/*
 * catalog.c - labels, files and keys of all samples, as tables.
 */
#include "run/catalog.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/field.h"
#include "data/format.h"

static const struct tsock_field class_number = { .name = "label",
						 .dtype = TSOCK_I32 };

static void hand_out(struct tsock_serve_table *t,
		     const struct tsi_table_shared *s)
{
	t->fd = s->fd;
	t->length = s->length;
	if (t->text) {
		t->start_at = s->at;
		t->data_at = s->texts_at;
		t->bytes = s->texts_len;
		t->folders_at = s->folders_at;
		t->folders = s->folders;
	} else {
		t->data_at = s->at;
	}
}

/* ------------------------------------------------------------------------
 * Labels
 */

static void put_numbers(const struct tsi_index *x, int32_t *to, uint64_t count)
{
	bool none = tsi_index_unlabelled(x);
	int64_t label[TSI_INDEX_RUN];

	for (uint64_t i = 0; i < count;) {
		unsigned n = tsi_index_label_run(x, i, label);

		for (unsigned k = 0; k < n; k++)
			to[i + k] = none ? -1 : (int32_t)label[k];
		i += n;
	}
}

/* Labels of any kind, of a file or a format of its own. */
static int put_column(const struct tsi_columns *c, uint64_t count, char *to,
		      uint64_t row_bytes)
{
	void *field[TSI_COLUMNS + 1] = { NULL };
	uint64_t row[TSI_COLUMNS_RUN];
	int err = 0;

	for (uint64_t i = 0; i < count && !err; i += TSI_COLUMNS_RUN) {
		unsigned n = 0;

		for (; n < TSI_COLUMNS_RUN && i + n < count; n++)
			row[n] = i + n;
		field[TSI_COLUMNS] = to + i * row_bytes;
		err = tsi_columns_put_rows(c, row, n, field);
	}
	return err;
}

static int make_labels(const struct tsi_index *x, struct tsock_serve_table *t)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	const struct tsock_field *column = c ? tsi_columns_label(c) : NULL;
	struct tsi_table_shared shared;

	/* Where they have images, their label is -1. */
	if (c && !column && tsi_columns_imageless(c))
		return tsi_err(TSOCK_ENOTSUP, "the samples have no labels");
	t->field = column ? *column : class_number;
	if (t->data && column)
		return put_column(c, t->count, t->data, t->bytes / t->count);
	if (t->data) {
		put_numbers(x, t->data, t->count);
		return 0;
	}
	t->bytes = t->count * tsi_field_bytes(&t->field);
	if (tsi_index_share_labels(x, &shared))
		hand_out(t, &shared);
	return 0;
}

/* ------------------------------------------------------------------------
 * Texts
 */

/* A text of sample i, of *len bytes, in x or in buf. */
typedef const char *text_of(const struct tsi_index *x, uint64_t i,
			    char buf[TSI_PATH], size_t *len);

static const char *file_of(const struct tsi_index *x, uint64_t i,
			   char buf[TSI_PATH], size_t *len)
{
	const char *path = tsi_index_path(x, i, buf);

	*len = strlen(path);
	return path;
}

/* Samples of one file have one text: those of the sample before are seen. */
static bool is_again(const char *text, size_t len, const char *before,
		     size_t before_len)
{
	return text == before && len == before_len;
}

static uint64_t measure(const struct tsi_index *x, uint64_t count, text_of *f)
{
	const char *before = NULL;
	size_t before_len = 0, len;
	char buf[TSI_PATH];
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < count; i++) {
		const char *text = f(x, i, buf, &len);

		if (!is_again(text, len, before, before_len))
			bytes += len + 1;
		before = text == buf ? NULL : text;
		before_len = len;
	}
	return bytes;
}

static int put_texts(const struct tsi_index *x, struct tsock_serve_table *t,
		     text_of *f)
{
	char *to = t->data, buf[TSI_PATH];
	const char *before = NULL;
	size_t before_len = 0, len;
	uint64_t at = 0;

	for (uint64_t i = 0; i < t->count; i++) {
		const char *text = f(x, i, buf, &len);

		if (is_again(text, len, before, before_len)) {
			t->start[i] = t->start[i - 1];
			continue;
		}
		/* They may lie in a file that somebody writes over. */
		if (len >= t->bytes - at)
			return tsi_err(TSOCK_EDATA,
				       "the names of the samples have changed "
				       "while they were read");
		t->start[i] = at;
		memcpy(to + at, text, len);
		to[at + len] = 0;
		at += len + 1;
		before = text == buf ? NULL : text;
		before_len = len;
	}
	return 0;
}

static int make_texts(const struct tsi_index *x, struct tsock_serve_table *t,
		      text_of *f,
		      bool (*share)(const struct tsi_index *x,
				    struct tsi_table_shared *out))
{
	struct tsi_table_shared shared;

	t->text = 1;
	if (t->data)
		return put_texts(x, t, f);
	if (share(x, &shared))
		hand_out(t, &shared);
	else
		t->bytes = measure(x, t->count, f);
	return 0;
}

int tsi_catalog_table(void *arg, struct tsock_serve_table *t)
{
	const struct tsi_index *x = arg;

	t->count = tsi_index_count(x);
	switch (t->kind) {
	case TSOCK_TABLE_LABELS:
		return make_labels(x, t);
	case TSOCK_TABLE_FILES:
		return make_texts(x, t, file_of, tsi_index_share_files);
	case TSOCK_TABLE_KEYS:
		if (tsi_format_nameless(tsi_index_format(x)))
			return tsi_err(TSOCK_ENOTSUP,
				       "the samples have no names");
		return make_texts(x, t, tsi_index_key, tsi_index_share_keys);
	default:
		return tsi_err(TSOCK_ENOTSUP, "there is no such table");
	}
}
