/* SPDX-License-Identifier: MIT */
/*
 * kind.c - what the values of a column are, by what all of them look like.
 */
#include "data/labels/kind.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/labels/json.h"

/* What was seen of a column. */
struct look {
	uint64_t n, empty; /* cells, of which so many say nothing */
	bool list, bar, comma, semicolon, blank; /* in one of them */
	bool whole, number;                      /* each cell is one number */
	bool small; /* and might be the number of a class */
};

/* What the items of a column are. */
struct items {
	bool whole, number; /* all of them */
	bool binary;        /* 0 and 1 */
	bool even;          /* each cell has as many */
	size_t n;           /* that the first has */
};

enum tsi_labels_number tsi_labels_kind_number(const char *text, size_t len)
{
	size_t i = len && (*text == '-' || *text == '+'), digits;
	char *end;

	for (digits = 0; i + digits < len; digits++)
		if (text[i + digits] < '0' || text[i + digits] > '9')
			break;
	if (digits && i + digits == len)
		return TSI_LABELS_WHOLE;
	/* strtod() also takes inf, nan and hexadecimal digits. */
	if (!len || strspn(text, "0123456789+-.eE") < len)
		return TSI_LABELS_NO_NUMBER;
	strtod(text, &end);
	return end == text + len ? TSI_LABELS_FRACTION : TSI_LABELS_NO_NUMBER;
}

uint64_t tsi_labels_kind_class(const struct tsi_labels_item *it)
{
	uint64_t v = 0;
	size_t i = it->len > 1 && *it->text == '+';

	if (!it->len)
		return UINT64_MAX;
	for (; i < it->len; i++) {
		if (it->text[i] < '0' || it->text[i] > '9')
			return UINT64_MAX;
		v = v * 10 + (uint64_t)(it->text[i] - '0');
		if (v >= TSI_LABELS_CLASSES_END)
			return UINT64_MAX;
	}
	return v;
}

static bool is_class_number(const char *text)
{
	struct tsi_labels_item it = { .text = text, .len = strlen(text) };

	return tsi_labels_kind_class(&it) != UINT64_MAX;
}

static void look_at_cell(struct look *k, const char *cell)
{
	enum tsi_labels_number n;

	k->n++;
	if (!cell || !*cell) {
		k->empty++;
		return;
	}
	n = tsi_labels_kind_number(cell, strlen(cell));
	k->whole &= n == TSI_LABELS_WHOLE;
	k->number &= n != TSI_LABELS_NO_NUMBER;
	k->small &= n == TSI_LABELS_WHOLE && is_class_number(cell);
	if (*cell == TSI_LABELS_LIST) {
		k->list = true;
		return;
	}
	k->bar |= strchr(cell, '|') != NULL;
	k->comma |= strchr(cell, ',') != NULL;
	k->semicolon |= strchr(cell, ';') != NULL;
	k->blank |= strchr(cell, ' ') != NULL;
}

static struct look look_at(const struct tsi_labels_list *l, unsigned column)
{
	struct look k = { .whole = true, .number = true, .small = true };

	for (uint64_t i = 0; i < l->rows; i++)
		look_at_cell(&k, tsi_labels_list_cell(l, i, column));
	return k;
}

/* What separates the items, if there are several. */
static char separator_of(const struct look *k)
{
	return k->bar ? '|' : k->comma ? ',' : k->semicolon ? ';' : ' ';
}

/* A number of the column's cells, seen one item at a time. */
static struct items items_of(const struct tsi_labels_list *l, unsigned column,
			     char separator)
{
	struct items s = {
		.whole = true, .number = true, .binary = true, .even = true
	};
	struct tsi_labels_list by = { .separator = separator };
	bool first = true;

	for (uint64_t i = 0; i < l->rows; i++) {
		struct tsi_labels_item it = tsi_labels_list_items(
			tsi_labels_list_cell(l, i, column));
		size_t n = 0;

		for (; tsi_labels_list_next(&by, &it); n++) {
			enum tsi_labels_number k =
				tsi_labels_kind_number(it.text, it.len);

			s.whole &= k == TSI_LABELS_WHOLE;
			s.number &= k != TSI_LABELS_NO_NUMBER;
			s.binary &= it.len == 1 &&
				    (*it.text == '0' || *it.text == '1');
		}
		if (!n && !it.list) /* it says nothing */
			continue;
		s.even &= first || n == s.n;
		s.n = first ? n : s.n;
		first = false;
	}
	return s;
}

/* Lists, or what has several items in a cell. */
static enum tsi_labels_kind several_are(const struct items *s)
{
	bool vector = s->even && s->n > 1 && s->number;

	return vector && (!s->whole || s->binary) ? TSI_LABELS_FLOAT
						  : TSI_LABELS_CLASSES;
}

static enum tsi_labels_kind guess(struct tsi_labels_list *l)
{
	struct look k = look_at(l, 1);
	struct items s;

	if (l->first_word || k.small)
		return TSI_LABELS_CLASS;
	if (k.number && !k.list)
		return k.whole ? TSI_LABELS_INT : TSI_LABELS_FLOAT;
	s = items_of(l, 1, separator_of(&k));
	/* Blanks and commas may be in a class's name. */
	if (k.list || k.bar || s.number || l->several) {
		l->separator = separator_of(&k);
		return several_are(&s);
	}
	return TSI_LABELS_CLASS;
}

static int check_empty(const struct tsi_labels_list *l)
{
	struct look k = look_at(l, 1);

	if (k.empty < k.n)
		return 0;
	return tsi_err(TSOCK_EDATA, "%s has no label in any line",
		       l->file.path);
}

int tsi_labels_kind_find(struct tsi_labels_list *l, enum tsi_labels_kind as,
			 enum tsi_labels_kind *out)
{
	struct look k = look_at(l, 1);
	int err = check_empty(l);

	if (err)
		return err;
	l->separator = '\0';
	if (as == TSI_LABELS_AUTO)
		as = l->labels > 1 ? TSI_LABELS_FLOAT
		     : l->text     ? TSI_LABELS_TEXT
				   : guess(l);
	else if (as != TSI_LABELS_CLASS && as != TSI_LABELS_TEXT)
		l->separator = separator_of(&k);
	if (l->labels > 1 && as != TSI_LABELS_FLOAT && as != TSI_LABELS_INT)
		return tsi_err(TSOCK_EARG,
			       "--labels: several columns as label= are a "
			       "vector of numbers: as=float or as=int");
	*out = as;
	return 0;
}

enum tsi_labels_kind tsi_labels_kind_field(const struct tsi_labels_list *l,
					   unsigned column, char *separator)
{
	struct look k = look_at(l, column);
	struct items s;

	*separator = '\0';
	if (k.empty == k.n)
		return TSI_LABELS_TEXT;
	if (k.number && !k.list)
		return k.whole && !k.empty ? TSI_LABELS_INT : TSI_LABELS_FLOAT;
	s = items_of(l, column, separator_of(&k));
	if (!s.number || !s.even)
		return TSI_LABELS_TEXT;
	*separator = separator_of(&k);
	return s.whole && !s.binary && !k.empty ? TSI_LABELS_INT
						: TSI_LABELS_FLOAT;
}
