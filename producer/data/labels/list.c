/* SPDX-License-Identifier: MIT */
/*
 * list.c - a file of labels: which kind it is, and what its columns are called.
 */
#include "data/labels/list.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "data/labels/array.h"
#include "data/labels/json.h"

/* In the order in which they are looked for. */
static const char *const names_of[] = {
	"path",     "file",     "file_name", "filename", "image_path",
	"img_path", "filepath", "image",     "img",      "image_id",
	"ImageId",  "id",       "name",      "key",
};
static const char *const labels_of[] = {
	"label",      "class",
	"class_name", "target",
	"category",   "labels",
	"classes",    "categories",
	"tags",       "class_id",
	"label_id",   "category_id",
	"breed",      "PredictionString",
	"y",
};
static const char *const texts_of[] = { "caption", "text", "description",
					"prompt", "sentence" };
static const char *const several_of[] = { "labels", "classes", "categories",
					  "tags" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int find(char *const *names, unsigned n, const char *const *usual,
		size_t count)
{
	for (size_t u = 0; u < count; u++)
		for (unsigned i = 0; i < n; i++)
			if (names[i] && !strcasecmp(names[i], usual[u]))
				return (int)i;
	return -1;
}

int tsi_labels_list_name_column(char *const *names, unsigned n)
{
	return find(names, n, names_of, COUNT(names_of));
}

int tsi_labels_list_label_column(char *const *names, unsigned n)
{
	return find(names, n, labels_of, COUNT(labels_of));
}

int tsi_labels_list_text_column(char *const *names, unsigned n)
{
	return find(names, n, texts_of, COUNT(texts_of));
}

unsigned tsi_labels_list_usual(const char **to, unsigned *names,
			       unsigned *labels)
{
	_Static_assert(COUNT(names_of) + COUNT(labels_of) <= TSI_LABELS_USUAL,
		       "there are more");
	*names = COUNT(names_of);
	*labels = COUNT(labels_of);
	memcpy(to, names_of, sizeof(names_of));
	memcpy(to + *names, labels_of, sizeof(labels_of));
	return *names + *labels;
}

void tsi_labels_list_note(struct tsi_labels_list *l, const char *label)
{
	char *const is[] = { (char *)label };

	l->first_word = !strcasecmp(label, "PredictionString");
	l->several = find(is, 1, several_of, COUNT(several_of)) == 0;
}

int tsi_labels_list_fields(struct tsi_labels_list *l, const char *const *names,
			   unsigned n)
{
	static const char *const taken[] = { "image", "label", "index", "box",
					     "draws", "key",   "mask" };

	for (unsigned i = 0; i < n; i++) {
		char *const is[] = { (char *)names[i] };
		int len = snprintf(l->names[i], sizeof(l->names[i]), "%s",
				   names[i]);

		if (find(is, 1, taken, COUNT(taken)) == 0)
			return tsi_err(TSOCK_EDATA,
				       "--labels: a field can't be called %s, "
				       "which is a field of every stream; "
				       "rename the column",
				       names[i]);
		if ((size_t)len >= sizeof(l->names[i]))
			return tsi_err(TSOCK_EDATA,
				       "--labels: the name %s is too long for "
				       "a field: 31 bytes are the most",
				       names[i]);
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(l->names[k], l->names[i]))
				return tsi_err(TSOCK_EARG,
					       "--labels: fields= names the "
					       "column %s twice",
					       names[i]);
		l->field[i] = l->names[i];
	}
	l->fields = n;
	return 0;
}

int tsi_labels_list_add(struct tsi_labels_list *l, uint64_t line, char ***cell)
{
	/* Arrays grow when their length is a power of two. */
	bool full = !(l->rows & (l->rows - 1));
	uint64_t cap = l->rows ? 2 * l->rows : 1;
	void *cells, *lines;

	if (full) {
		cells = realloc(l->cell, cap * l->columns * sizeof(*l->cell));
		if (cells)
			l->cell = cells;
		lines = realloc(l->line, cap * sizeof(*l->line));
		if (lines)
			l->line = lines;
		if (!cells || !lines)
			return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	}
	l->line[l->rows] = line;
	*cell = &l->cell[l->rows++ * l->columns];
	return 0;
}

int tsi_labels_list_wrong(const struct tsi_labels_list *l, uint64_t line,
			  const char *format, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	return tsi_err(TSOCK_EDATA, "%s, line %" PRIu64 ": %s", l->file.path,
		       line, what);
}

int tsi_labels_list_bad(const struct tsi_labels_list *l, uint64_t i,
			const char *format, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (l->side)
		return tsi_err(TSOCK_EDATA, "the label of %s in %s: %s",
			       tsi_labels_list_cell(l, i, 0), l->file.path,
			       what);
	return tsi_labels_list_wrong(l, l->line[i], "%s", what);
}

struct tsi_labels_item tsi_labels_list_items(const char *cell)
{
	bool list = cell && *cell == TSI_LABELS_LIST;

	return (struct tsi_labels_item){ .list = list,
					 .rest = cell ? cell + list : NULL };
}

/* Of a text with separators: blanks around an item aren't of it. */
static bool next_between(struct tsi_labels_item *it, char separator)
{
	const char skipped[] = { separator, ' ', '\0' };
	const char end[] = { separator, '\0' };

	it->text = it->rest + strspn(it->rest, skipped);
	it->len = strcspn(it->text, end);
	it->rest = it->text + it->len;
	while (it->len && it->text[it->len - 1] == ' ')
		it->len--;
	return it->len > 0;
}

bool tsi_labels_list_next(const struct tsi_labels_list *l,
			  struct tsi_labels_item *it)
{
	static const char item[] = { TSI_LABELS_ITEM, '\0' };

	if (!it->rest || !*it->rest)
		return false;
	if (!it->list && l->separator)
		return next_between(it, l->separator);
	it->text = it->rest;
	if (it->list) {
		it->len = strcspn(it->text, item);
		it->rest += it->len + (it->text[it->len] != '\0');
		return true;
	}
	it->len = l->first_word ? strcspn(it->text, " ") : strlen(it->text);
	it->rest = NULL;
	return true;
}

bool tsi_labels_list_walk(struct tsi_labels_walk *w)
{
	for (; w->row < w->l->rows; w->row++, w->begun = false) {
		if (!w->begun)
			w->it = tsi_labels_list_items(
				tsi_labels_list_cell(w->l, w->row, 1));
		w->begun = true;
		if (tsi_labels_list_next(w->l, &w->it))
			return true;
	}
	return false;
}

void tsi_labels_list_free(struct tsi_labels_list *l)
{
	/* Other cells lie in the file's text. */
	for (uint64_t i = 0; l->side && i < l->columns * l->rows; i++)
		free(l->cell[i]);
	for (unsigned k = 0; k < TSI_COLUMNS; k++)
		tsi_labels_array_destroy(l->array[k]);
	free(l->cell);
	free(l->line);
	tsi_textfile_free(&l->file);
	*l = (struct tsi_labels_list){ .rows = 0 };
}
