/* SPDX-License-Identifier: MIT */
/*
 * select.c - the samples of a data set that a file names: reading the file.
 */
#include "data/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/names.h"
#include "data/text.h"
#include "data/textfile.h"

#define BLANKS " \t\r"

struct line {
	char *text;         /* the name, all of the line if it has no tab */
	const char *weight; /* NULL: it has no tab */
	unsigned long long number;
};

struct tsi_select {
	struct tsi_textfile file; /* each line ended by a NUL */
	struct line *line;        /* those that aren't empty */
	uint64_t n, cap;
};

/* ------------------------------------------------------------------------
 * Reading
 */

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for a selection");
}

static int parse_weight(const struct tsi_select *s, const struct line *l,
			const char *text, float *out)
{
	char *end;
	double v = strtod(text, &end);

	*out = (float)v;
	if (end != text && !end[strspn(end, BLANKS)] && isfinite(*out) &&
	    *out >= 0)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s, line %llu: '%s' is no weight, a number of 0 or "
		       "more, such as 0.5, is wanted",
		       s->file.path, l->number, text);
}

static int add_line(struct tsi_select *s, char *text, size_t len,
		    unsigned long long number)
{
	struct line l = { .text = text, .number = number };
	char *tab;
	float weight;
	int err;

	if (memchr(text, '\0', len))
		return tsi_err(TSOCK_EDATA,
			       "%s, line %llu: it has a zero byte; a text file "
			       "of names is wanted",
			       s->file.path, number);
	text[len] = '\0';
	while (len > 0 && strchr(BLANKS, text[len - 1]))
		text[--len] = '\0';
	if (len == 0)
		return 0;
	while (strncmp(l.text, "./", 2) == 0)
		l.text += 2;
	tab = strchr(l.text, '\t');
	if (tab) {
		*tab = '\0';
		l.weight = tab + 1;
		err = parse_weight(s, &l, l.weight, &weight);
		if (err)
			return err;
	}
	err = tsi_text_grow(&s->line, s->n, &s->cap, sizeof(*s->line));
	if (!err)
		s->line[s->n++] = l;
	return err;
}

static int split_lines(struct tsi_select *s)
{
	char *at = tsi_textfile_begin(&s->file);
	char *end = s->file.text + s->file.len;
	unsigned long long number = 0;
	int err = 0;

	while (at < end && !err) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			stop = end;
		err = add_line(s, at, (size_t)(stop - at), ++number);
		at = stop + 1;
	}
	if (!err && s->n == 0)
		err = tsi_err(TSOCK_EDATA,
			      "--select %s names no sample: one name a line is "
			      "wanted",
			      s->file.path);
	return err;
}

int tsi_select_open(const char *path, struct tsi_select **out)
{
	struct tsi_select *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return no_memory();
	err = tsi_textfile_read("--select", path, NULL, &s->file);
	if (!err)
		err = split_lines(s);
	if (err) {
		tsi_select_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_select_close(struct tsi_select *s)
{
	if (!s)
		return;
	free(s->line);
	tsi_textfile_free(&s->file);
	free(s);
}

const char *tsi_select_path(const struct tsi_select *s)
{
	return s->file.path;
}

/* ------------------------------------------------------------------------
 * Rows
 */

struct choice {
	const struct tsi_select *s;
	const struct tsi_names *names;
	uint64_t *row;   /* of each line */
	uint64_t *taken; /* by row: the line that has it, from 1 */
	float *weight;
};

/* The line's name with the weight behind its last blank cut off, if so. */
static enum tsi_names_found find_cut(const struct choice *c,
				     const struct line *l, uint64_t *row,
				     const char **weight)
{
	char *blank = strrchr(l->text, ' ');
	enum tsi_names_found found;
	char *end = blank;

	if (!blank || l->weight)
		return TSI_NAMES_NONE;
	while (end > l->text && end[-1] == ' ')
		end--;
	found = tsi_names_find(c->names, l->text, (size_t)(end - l->text), row);
	if (found == TSI_NAMES_ONE)
		*weight = blank + 1;
	return found;
}

static int find_row(struct choice *c, uint64_t i)
{
	const struct line *l = &c->s->line[i];
	const char *weight = l->weight;
	enum tsi_names_found found;
	char example[TSI_NAMES_EXAMPLE];
	uint64_t row = 0;

	found = tsi_names_find(c->names, l->text, strlen(l->text), &row);
	if (found == TSI_NAMES_NONE)
		found = find_cut(c, l, &row, &weight);
	if (found != TSI_NAMES_ONE) {
		tsi_names_example(c->names, row, example);
		return tsi_err(TSOCK_EDATA,
			       "%s, line %llu: %s '%s'; a name is written as "
			       "'%s'",
			       c->s->file.path, l->number,
			       found == TSI_NAMES_NONE
				       ? "the data set has no sample"
				       : "several samples are called",
			       l->text, example);
	}
	if (c->taken[row])
		return tsi_err(TSOCK_EDATA,
			       "%s, line %llu: line %llu has the sample '%s' "
			       "already; each may come once",
			       c->s->file.path, l->number,
			       c->s->line[c->taken[row] - 1].number, l->text);
	c->taken[row] = i + 1;
	c->row[i] = row;
	c->weight[i] = 1;
	return weight ? parse_weight(c->s, l, weight, &c->weight[i]) : 0;
}

int tsi_select_apply(const struct tsi_select *s, const struct tsi_format *f,
		     struct tsi_table *t, float **weight)
{
	struct tsi_names *names = NULL;
	struct choice c = {
		.s = s,
		.row = calloc(s->n, sizeof(*c.row)),
		.taken = calloc(tsi_table_count(t), sizeof(*c.taken)),
		.weight = calloc(s->n, sizeof(*c.weight)),
	};
	int err = 0;

	if (!c.row || !c.taken || !c.weight)
		err = no_memory();
	if (!err)
		err = tsi_names_create(f, t, &names);
	c.names = names;
	for (uint64_t i = 0; i < s->n && !err; i++)
		err = find_row(&c, i);
	tsi_names_destroy(names);
	if (!err)
		err = tsi_table_choose(t, c.row, s->n);
	free(c.taken);
	free(c.row);
	if (err) {
		free(c.weight);
		return err;
	}
	*weight = c.weight;
	return 0;
}
