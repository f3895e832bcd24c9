/* SPDX-License-Identifier: MIT */
/*
 * class_file.c - a file of classes, which gives them their numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/labels/classes.h"
#include "data/labels/kind.h"

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for classes");
}

/* "n01440764 1 ...": where the number begins; NULL: it isn't such a line. */
static char *number_behind(char *line)
{
	char *blank = line + strcspn(line, " \t");
	char *number = blank + strspn(blank, " \t");
	size_t len = strcspn(number, " \t");

	return len && tsi_labels_kind_number(number, len) == TSI_LABELS_WHOLE
		       ? number
		       : NULL;
}

/* Lines, and blanks before their ends, end in zeros from now on. */
static void end_lines(struct tsi_labels_classes *c)
{
	char *text = c->file.text;

	for (size_t i = 0; i <= c->file.len; i++) {
		if (text[i] && text[i] != '\n')
			continue;
		text[i] = '\0';
		for (size_t k = i; k && strchr(" \t\r", text[k - 1]); k--)
			text[k - 1] = '\0';
	}
}

/* The next line that isn't empty; NULL: there is no more. */
static char *next_line(const struct tsi_labels_classes *c, char **at)
{
	const char *end = c->file.text + c->file.len;

	while (*at < end) {
		char *line = *at + strspn(*at, " \t");

		*at = line + strlen(line) + 1;
		if (*line)
			return line;
	}
	return NULL;
}

/* Lines of a name and the number that labels have for it. */
static int translate(struct tsi_labels_classes *c, char *line)
{
	char *number = number_behind(line);
	struct tsi_labels_item it = { .text = number,
				      .len = strcspn(number, " \t") };
	uint64_t v = tsi_labels_kind_class(&it), id;
	bool added;
	int err;

	if (v == UINT64_MAX)
		return tsi_err(TSOCK_EDATA,
			       "%s: the number of %.80s is none of a class",
			       c->file.path, line);
	if (v >= c->translations) {
		uint64_t *more =
			realloc(c->translated, (v + 1) * sizeof(*more));

		if (!more)
			return no_memory();
		c->translated = more;
		while (c->translations <= v)
			more[c->translations++] = TSI_WORDS_NONE;
	}
	err = tsi_labels_classes_add(c, line, strcspn(line, " \t"), &id,
				     &added);
	if (!err && (!added || c->translated[v] != TSI_WORDS_NONE))
		err = tsi_err(TSOCK_EDATA,
			      "%s has a class or a number twice: %.80s",
			      c->file.path, line);
	if (!err)
		c->translated[v] = id;
	return err;
}

/* A class a line: by all of the line, or by its first word. */
static int add_class_line(struct tsi_labels_classes *c, char *line, bool whole)
{
	size_t len = whole ? strlen(line) : strcspn(line, " \t");
	uint64_t id;
	bool added;
	int err = tsi_labels_classes_add(c, line, len, &id, &added);

	if (!err && !added)
		err = tsi_err(TSOCK_EDATA, "%s names the class %.*s twice",
			      c->file.path, (int)(len < 80 ? len : 80), line);
	return err;
}

enum lines {
	NAMES,   /* a name a line */
	WORDS,   /* a name and what it means */
	NUMBERED /* a name and a number */
};

static int take_lines(struct tsi_labels_classes *c, enum lines kind)
{
	char *at = tsi_textfile_begin(&c->file);
	char *line;
	int err = 0;

	while (!err && (line = next_line(c, &at)))
		err = kind == NUMBERED ? translate(c, line)
				       : add_class_line(c, line, kind == NAMES);
	return err;
}

/* All lines have a number behind their first word. */
static bool are_numbered(const struct tsi_labels_classes *c)
{
	char *at = tsi_textfile_begin(&c->file);
	char *line;
	bool all = true;

	while (all && (line = next_line(c, &at)))
		all = number_behind(line) != NULL;
	return all;
}

/* Is the first label a name that some line begins with, but not all of it? */
static enum lines kind_of(const struct tsi_labels_classes *c,
			  const struct tsi_labels_list *l)
{
	char *at = tsi_textfile_begin(&c->file);
	char *line;
	struct tsi_labels_walk w = { .l = l };
	enum lines kind = NAMES;

	if (c->numbers)
		return are_numbered(c) ? NUMBERED : NAMES;
	if (!tsi_labels_list_walk(&w))
		return NAMES;
	while ((line = next_line(c, &at))) {
		if (strncmp(line, w.it.text, w.it.len))
			continue;
		if (!line[w.it.len])
			return NAMES;
		if (strchr(" \t", line[w.it.len]))
			kind = WORDS;
	}
	return kind;
}

int tsi_labels_classes_file(const struct tsi_labels_spec *spec,
			    struct tsi_textfile *out)
{
	const char *slash = strrchr(spec->file, '/');
	bool below = slash && *spec->classes != '/';
	char *path;
	int err;

	if (asprintf(&path, "%.*s%s", below ? (int)(slash + 1 - spec->file) : 0,
		     spec->file, spec->classes) < 0)
		return no_memory();
	err = tsi_textfile_read("--labels' classes", path, NULL, out);
	free(path);
	return err;
}

int tsi_labels_classes_read(struct tsi_labels_classes *c,
			    const struct tsi_labels_list *l,
			    const struct tsi_labels_spec *s)
{
	enum lines kind;
	int err = tsi_labels_classes_file(s, &c->file);

	if (err)
		return err;
	c->hash = tsi_hash(c->file.text, c->file.len, 1);
	if (memchr(c->file.text, '\0', c->file.len))
		return tsi_err(TSOCK_EDATA,
			       "%s has a zero byte; a text file of classes is "
			       "wanted",
			       c->file.path);
	end_lines(c);
	kind = kind_of(c, l);
	err = take_lines(c, kind);
	if (!err && !c->words.n)
		err = tsi_err(TSOCK_EDATA, "%s names no class", c->file.path);
	if (err)
		return err;
	return kind == NUMBERED ? tsi_labels_classes_by_name(c)
				: tsi_labels_classes_in_order(c);
}
