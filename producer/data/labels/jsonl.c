/* SPDX-License-Identifier: MIT */
/*
 * jsonl.c - labels in JSON objects, one a line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/labels/json.h"
#include "data/labels/list.h"

/* Columns by their numbers in a row. */
struct columns {
	const char *path[TSI_LABELS_WANTED];
	unsigned n;
};

static int unknown(const struct tsi_labels_list *l, uint64_t line,
		   const char *what, const char *key)
{
	return tsi_labels_list_wrong(l, line,
				     "none of its values is called as %s "
				     "usually are: add :%s=NAME behind the "
				     "file",
				     what, key);
}

/* The columns that aren't given, by the names in the first object. */
static int find_columns(const struct tsi_labels_spec *s,
			struct tsi_labels_list *l, const char *line, size_t len,
			uint64_t number, struct columns *c)
{
	const char *usual[TSI_LABELS_USUAL], *why;
	char *value[TSI_LABELS_USUAL], *copy = strndup(line, len);
	unsigned names, labels;
	unsigned n = tsi_labels_list_usual(usual, &names, &labels);
	const char *label = NULL;

	if (!copy)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	why = tsi_labels_json(copy, strlen(copy), usual, n, value);
	free(copy);
	if (why)
		return tsi_labels_list_wrong(l, number, "%s", why);
	c->path[0] = s->path;
	for (unsigned i = 0; i < names && !c->path[0]; i++)
		if (value[i])
			c->path[0] = usual[i];
	for (unsigned i = names; i < n && !label; i++)
		if (value[i])
			label = usual[i];
	if (!c->path[0])
		return unknown(l, number, "names", "path");
	c->n = 1;
	for (unsigned i = 0; i < s->labels; i++)
		c->path[c->n++] = s->label[i];
	if (!s->labels && label)
		c->path[c->n++] = label;
	l->labels = c->n - 1;
	if (l->labels == 1)
		tsi_labels_list_note(l, c->path[1]);
	for (unsigned i = 0; i < s->fields; i++)
		c->path[c->n++] = s->field[i];
	if (c->n == 1)
		return unknown(l, number, "labels", "label");
	l->columns = c->n;
	return tsi_labels_list_fields(l, s->field, s->fields);
}

static int read_line(const struct tsi_labels_spec *s, char *line, size_t len,
		     uint64_t number, struct columns *c,
		     struct tsi_labels_list *l)
{
	const char *why;
	char **cell;
	int err = 0;

	if (line[strspn(line, " \t\r\n")] == '\0')
		return 0;
	if (!c->n)
		err = find_columns(s, l, line, len, number, c);
	if (!err)
		err = tsi_labels_list_add(l, number, &cell);
	if (err)
		return err;
	why = tsi_labels_json(line, len, c->path, c->n, cell);
	if (why)
		return tsi_labels_list_wrong(l, number, "%s", why);
	if (!cell[0] || *cell[0] == TSI_LABELS_LIST)
		return tsi_labels_list_wrong(
			l, number, "it has no name, \"%s\"", c->path[0]);
	return 0;
}

int tsi_labels_jsonl_read(const struct tsi_labels_spec *spec, char *text,
			  struct tsi_labels_list *l)
{
	char *end = l->file.text + l->file.len;
	struct columns c = { .n = 0 };
	uint64_t number = 0;
	int err = 0;

	for (char *at = text; at < end && !err;) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			stop = end;
		*stop = '\0';
		err = read_line(spec, at, (size_t)(stop - at), ++number, &c, l);
		at = stop + 1;
	}
	return err;
}
