/* SPDX-License-Identifier: MIT */
/*
 * csv.c - labels in lines of columns: CSV as in RFC 4180, also with tabs or
 * semicolons; a name, a blank and a label; or a number alone.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "data/folder.h"
#include "data/labels/list.h"
#include "data/text.h"

#define CELLS 4096 /* in a line, at most */

struct csv {
	struct tsi_labels_list *l;
	char *at, *end;
	char between;    /* cells; '\0': there is one in a line */
	uint64_t number; /* of the line at at, from 1 */
	uint64_t begun;  /* where the record began */
	char *cell[CELLS];
	unsigned n;
	/* Which columns a row takes. */
	unsigned column[1 + TSI_LABELS_PARTS + TSI_COLUMNS];
};

/* ---- records ---- */

static bool ends_cell(const struct csv *c, const char *p)
{
	return p == c->end || *p == '\n' || (c->between && *p == c->between);
}

static char *trim(char *begin, char *end)
{
	while (begin < end && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	*end = '\0';
	return begin + strspn(begin, " ");
}

/* At a quote: the text to where it began. */
static int take_quoted(struct csv *c, char **out)
{
	char *from = c->at + 1, *to = c->at;

	*out = to;
	for (;; from++) {
		if (from == c->end)
			return tsi_labels_list_wrong(c->l, c->begun,
						     "a quote has no end");
		if (*from == '"' && *++from != '"')
			break;
		c->number += *from == '\n';
		*to++ = *from;
	}
	while (from < c->end && (*from == ' ' || *from == '\r'))
		from++;
	if (!ends_cell(c, from))
		return tsi_labels_list_wrong(
			c->l, c->number,
			"text follows the quote that ends a cell; a quote in a "
			"cell is written twice");
	c->at = from;
	*to = '\0';
	return 0;
}

static void take_bare(struct csv *c, char **out)
{
	char *begin = c->at, *p = begin;

	while (!ends_cell(c, p))
		p++;
	c->at = p;
	*out = trim(begin, p);
}

static int take_cells(struct csv *c)
{
	bool more;
	int err = 0;

	do {
		char *p = c->at;

		if (c->n == CELLS)
			return tsi_labels_list_wrong(
				c->l, c->number, "it has more than %u columns",
				CELLS);
		while (p < c->end && *p == ' ')
			p++;
		/* take_bare() writes a zero where the cell ends. */
		if (p < c->end && *p == '"' && c->between) {
			c->at = p;
			err = take_quoted(c, &c->cell[c->n++]);
			more = !err && c->at < c->end && *c->at == c->between;
		} else {
			while (!ends_cell(c, p))
				p++;
			more = p < c->end && *p != '\n';
			take_bare(c, &c->cell[c->n++]);
		}
		c->at++;
	} while (more);
	c->number++;
	return err;
}

/* The last blank is between a name and its label. */
static int split_at_blank(struct csv *c)
{
	char *label = strrchr(c->cell[0], ' ');

	if (!label)
		return tsi_labels_list_wrong(c->l, c->begun,
					     "it is no name, blank and label");
	c->cell[1] = label + 1;
	trim(c->cell[0], label);
	c->n = 2;
	return 0;
}

/* The next line that isn't empty; at the end c->n is 0. */
static int next_record(struct csv *c)
{
	int err;

	c->n = 0;
	while (c->at < c->end && (*c->at == '\n' || *c->at == '\r')) {
		c->number += *c->at == '\n';
		c->at++;
	}
	if (c->at >= c->end)
		return 0;
	c->begun = c->number;
	if (c->between != ' ')
		return take_cells(c);
	c->between = '\0';
	err = take_cells(c);
	c->between = ' ';
	return err ? err : split_at_blank(c);
}

/* What stands between the cells of the first line. */
static char between(const struct csv *c)
{
	const char *p = c->at + strspn(c->at, "\r\n");
	size_t len = strcspn(p, "\n");

	for (const char *b = "\t,; "; *b; b++) {
		const char *there = memchr(p, *b, len);

		/* A blank at a line's end is none. */
		if (there && (*b != ' ' ||
			      (unsigned char)there[strspn(there, " \r")] > ' '))
			return *b;
	}
	return '\0';
}

/* ---- columns ---- */

/* The columns of the first line, for a message. */
static const char *list_cells(const struct csv *c, char *to, size_t len)
{
	size_t at = 0;

	*to = '\0';
	for (unsigned i = 0; i < c->n && at < len; i++)
		at += (size_t)snprintf(to + at, len - at, "%s%s", i ? ", " : "",
				       c->cell[i]);
	return to;
}

static int no_column(const struct csv *c, const char *key)
{
	char all[200];

	return tsi_labels_list_wrong(
		c->l, c->begun,
		"which column has the %ss? There are %s: add :%s=NAME behind "
		"the file (path= and label=, or their numbers path=1,label=2 "
		"where no line names the columns)",
		key, list_cells(c, all, sizeof(all)), key);
}

/* A column by its name, or where nothing names them by its number. */
static int find_column(const struct csv *c, const char *name, bool header)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	if (!header)
		return isdigit((unsigned char)*name) && !*end && n && n <= c->n
			       ? (int)n - 1
			       : -1;
	for (unsigned i = 0; i < c->n; i++)
		if (!strcmp(c->cell[i], name))
			return (int)i;
	for (unsigned i = 0; i < c->n; i++)
		if (!strcasecmp(c->cell[i], name))
			return (int)i;
	return -1;
}

static bool is_image(const char *cell)
{
	const char *slash = strrchr(cell, '/');

	return tsi_folder_is_image(slash ? slash + 1 : cell);
}

/* Does the first line name the columns? */
static bool has_header(const struct csv *c, const struct tsi_labels_spec *s)
{
	if (c->between == ' ' || is_image(c->cell[0]))
		return false;
	for (unsigned i = 0; i < s->labels; i++)
		if (find_column(c, s->label[i], true) >= 0)
			return true;
	if (s->path)
		return find_column(c, s->path, true) >= 0;
	return tsi_labels_list_name_column(c->cell, c->n) >= 0 ||
	       tsi_labels_list_label_column(c->cell, c->n) >= 0;
}

static int take_column(struct csv *c, int at, const char *name)
{
	char all[200];

	if (at < 0)
		return tsi_labels_list_wrong(
			c->l, c->begun, "there is no column %s, but %s", name,
			list_cells(c, all, sizeof(all)));
	c->column[c->l->columns++] = (unsigned)at;
	return 0;
}

/* label=*: all columns but that of the names. */
static int take_all(struct csv *c)
{
	if (c->n - 1 > TSI_LABELS_PARTS)
		return tsi_labels_list_wrong(c->l, c->begun,
					     "label=*: there are more than %u "
					     "columns",
					     TSI_LABELS_PARTS);
	for (unsigned i = 0; i < c->n; i++)
		if (i != c->column[0])
			c->column[c->l->columns++] = i;
	return 0;
}

static int take_labels(struct csv *c, const struct tsi_labels_spec *s,
		       bool header)
{
	int at, err = 0;

	if (s->labels == 1 && !strcmp(s->label[0], "*"))
		return take_all(c);
	for (unsigned i = 0; i < s->labels && !err; i++)
		err = take_column(c, find_column(c, s->label[i], header),
				  s->label[i]);
	if (s->labels)
		return err;
	if (header)
		at = tsi_labels_list_label_column(c->cell, c->n);
	else
		at = c->n > 1 ? c->column[0] == 0 : -1;
	if (at >= 0 && (unsigned)at != c->column[0])
		c->column[c->l->columns++] = (unsigned)at;
	return 0;
}

static int take_fields(struct csv *c, const struct tsi_labels_spec *s,
		       bool header)
{
	const char *name[TSI_COLUMNS];
	unsigned n = s->fields;
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		name[i] = s->field[i];
		err = take_column(c, find_column(c, s->field[i], header),
				  s->field[i]);
	}
	if (!n && !c->l->labels && header) {
		int at = tsi_labels_list_text_column(c->cell, c->n);

		if (at >= 0)
			err = take_column(c, at, name[n++] = c->cell[at]);
	}
	if (!err && c->l->columns == 1)
		err = no_column(c, "label");
	return err ? err : tsi_labels_list_fields(c->l, name, n);
}

static int find_columns(struct csv *c, const struct tsi_labels_spec *s,
			bool *header)
{
	struct tsi_labels_list *l = c->l;
	int at, err;

	*header = has_header(c, s);
	if (s->path)
		at = find_column(c, s->path, *header);
	else if (*header)
		at = tsi_labels_list_name_column(c->cell, c->n);
	else
		at = c->between == ' ' || is_image(c->cell[0]) ? 0 : -1;
	if (at < 0 && s->path)
		return take_column(c, at, s->path);
	if (at < 0)
		return no_column(c, "path");
	c->column[0] = (unsigned)at;
	l->columns = 1;
	err = take_labels(c, s, *header);
	if (err)
		return err;
	l->labels = l->columns - 1;
	if (l->labels == 1 && *header)
		tsi_labels_list_note(l, c->cell[c->column[1]]);
	return take_fields(c, s, *header);
}

/* ---- rows ---- */

static int add_row(struct csv *c)
{
	char **cell;
	int err = tsi_labels_list_add(c->l, c->begun, &cell);

	for (unsigned i = 0; i < c->l->columns && !err; i++)
		cell[i] = c->cell[c->column[i]];
	if (!err && !*cell[0])
		err = tsi_labels_list_wrong(c->l, c->begun, "it has no name");
	return err;
}

static int check_cells(const struct csv *c, unsigned n)
{
	if (c->n == n)
		return 0;
	return tsi_labels_list_wrong(c->l, c->begun,
				     "it has %u column%s, and the first line "
				     "%u",
				     c->n, c->n == 1 ? "" : "s", n);
}

/* A number a line, in the order of the samples' names. */
static int read_numbers(struct csv *c)
{
	struct tsi_labels_list *l = c->l;
	static char none[1];
	int err = 0;

	l->in_order = true;
	l->columns = 2;
	l->labels = 1;
	while (!err && c->n) {
		char *end, **cell;

		strtod(c->cell[0], &end);
		if (end == c->cell[0] || *end)
			err = tsi_labels_list_wrong(
				l, c->begun,
				"'%.80s' is no number; a name and a label, or "
				"numbers alone, are wanted",
				c->cell[0]);
		if (!err)
			err = tsi_labels_list_add(l, c->begun, &cell);
		if (err)
			break;
		cell[0] = none;
		cell[1] = c->cell[0];
		err = next_record(c);
	}
	return err;
}

static int read_rows(struct csv *c, const struct tsi_labels_spec *s)
{
	unsigned n = c->n;
	bool header;
	int err = find_columns(c, s, &header);

	if (!err && header)
		err = next_record(c);
	while (!err && c->n) {
		err = check_cells(c, n);
		if (!err)
			err = add_row(c);
		if (!err)
			err = next_record(c);
	}
	return err;
}

int tsi_labels_csv_read(const struct tsi_labels_spec *spec, char *text,
			struct tsi_labels_list *l)
{
	struct csv *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	c->l = l;
	c->at = text;
	c->end = l->file.text + l->file.len;
	c->number = 1;
	c->between = between(c);
	err = next_record(c);
	if (!err && c->n)
		err = c->between ? read_rows(c, spec) : read_numbers(c);
	free(c);
	return err;
}
