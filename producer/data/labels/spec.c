/* SPDX-License-Identifier: MIT */
/*
 * spec.c - what --labels says: a file, and how to read it.
 */
#include "data/labels/spec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

#define KEYS "path, label, fields, as and classes"

static const char *const kinds[] = {
	[TSI_LABELS_AUTO] = "auto",       [TSI_LABELS_CLASS] = "class",
	[TSI_LABELS_CLASSES] = "classes", [TSI_LABELS_INT] = "int",
	[TSI_LABELS_FLOAT] = "float",     [TSI_LABELS_TEXT] = "text",
};

/* The value of "key=value"; NULL: it is another key. */
static char *value_of(char *word, const char *key)
{
	size_t len = strlen(key);

	return strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1
								: NULL;
}

/* Does a text begin with one of the keys? */
static bool begins(char *text)
{
	static const char *const keys[] = { "path", "label", "fields", "as",
					    "classes" };

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (value_of(text, keys[i]))
			return true;
	return false;
}

/* Columns with '+' between them. */
static int take_columns(char *text, const char *what, const char **to,
			unsigned most, unsigned *n)
{
	char *rest = NULL;

	*n = 0;
	for (char *w = strtok_r(text, "+", &rest); w;
	     w = strtok_r(NULL, "+", &rest)) {
		if (*n == most)
			return tsi_err(TSOCK_EARG,
				       "--labels: %s= has more than %u columns",
				       what, most);
		to[(*n)++] = w;
	}
	if (!*n)
		return tsi_err(TSOCK_EARG, "--labels: %s= names no column",
			       what);
	return 0;
}

static int take_kind(const char *word, enum tsi_labels_kind *out)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(word, kinds[i])) {
			*out = (enum tsi_labels_kind)i;
			return 0;
		}
	return tsi_err(TSOCK_EARG,
		       "--labels: as=%s: choose one of " TSI_LABELS_KINDS,
		       word);
}

static int take_word(char *word, struct tsi_labels_spec *s)
{
	char *value;

	if ((value = value_of(word, "label")))
		return take_columns(value, "label", s->label, TSI_LABELS_PARTS,
				    &s->labels);
	if ((value = value_of(word, "fields")))
		return take_columns(value, "fields", s->field, TSI_COLUMNS,
				    &s->fields);
	if ((value = value_of(word, "as")))
		return take_kind(value, &s->as);
	if ((value = value_of(word, "path")))
		s->path = value;
	else if ((value = value_of(word, "classes")))
		s->classes = value;
	else
		return tsi_err(TSOCK_EARG,
			       "--labels: %s is none of " KEYS
			       ", each with '=' and a value",
			       word);
	if (!*value)
		return tsi_err(TSOCK_EARG, "--labels: %s has no value", word);
	return 0;
}

/* Where the file's name ends; NULL: there is nothing behind it. */
static char *colon_of(char *text)
{
	char *colon;

	if (access(text, F_OK) == 0)
		return NULL;
	for (colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':'))
		if (begins(colon + 1))
			return colon;
	return NULL;
}

int tsi_labels_spec_parse(const char *text, struct tsi_labels_spec *out)
{
	struct tsi_labels_spec s = { .mem = strdup(text) };
	char *colon, *rest = NULL;
	int err = 0;

	if (!s.mem)
		return tsi_err(TSOCK_ENOMEM, "no memory for the options");
	s.file = s.mem;
	colon = colon_of(s.mem);
	if (colon)
		*colon++ = '\0';
	for (char *w = colon ? strtok_r(colon, ",", &rest) : NULL; w && !err;
	     w = strtok_r(NULL, ",", &rest))
		err = take_word(w, &s);
	if (!err && !*s.file)
		err = tsi_err(TSOCK_EARG, "--labels names no file");
	if (err) {
		tsi_labels_spec_free(&s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_labels_spec_free(struct tsi_labels_spec *s)
{
	free(s->mem);
	*s = (struct tsi_labels_spec){ .mem = NULL };
}
