/* SPDX-License-Identifier: MIT */
/*
 * side_take.c - what a file beside a sample says of it.
 */
#include "data/labels/side.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "data/labels/array.h"
#include "data/labels/json.h"

#define TEXT ".txt"

/* It is text, of one line but in a text file. */
static const char *check(const char *text, size_t len, bool lines)
{
	const unsigned char *p = (const unsigned char *)text;
	const unsigned char *end = p + len;

	while (p < end) {
		uint32_t c;
		unsigned n = tsi_text_utf8(p, &c);
		bool line = c == '\n' || c == '\r';

		if (!n || n > (size_t)(end - p))
			return "it isn't UTF-8";
		if (c < 0x20 && c != '\t' && !(line && lines))
			return line ? "one line of text is wanted"
				    : "it has a control character";
		p += n;
	}
	return NULL;
}

/* A value of JSON; NULL where there is none. */
static int find_value(struct tsi_labels_side *s, uint64_t i,
		      const struct tsi_labels_part *p, char *text, size_t len,
		      char **out)
{
	const char *why = check(text, len, true);

	if (!why)
		why = tsi_labels_json(text, len, &p->value, 1, out);
	return why ? tsi_labels_list_bad(s->l, i, "%s: %s", p->ending, why) : 0;
}

int tsi_labels_side_take(struct tsi_labels_side *s, uint64_t i, unsigned k,
			 const char *file, char *text, size_t len)
{
	const struct tsi_labels_part *p = &s->part[k];
	char **cell = &s->l->cell[i * s->l->columns + 1 + k];
	const char *why;
	int err = 0;

	if (p->array)
		return tsi_labels_array_take(p->array, i, file, text, len);
	if (p->value) {
		err = find_value(s, i, p, text, len, &text);
		if (err || !text)
			return err;
	} else {
		while (len && strchr(" \t\r\n", text[len - 1]))
			len--;
		text[len] = '\0';
		why = check(text, len, true);
		text += strspn(text, " \t\r\n");
		if (!why)
			why = check(text, strlen(text),
				    !strcmp(p->ending, TEXT));
		if (why)
			return tsi_labels_list_bad(s->l, i, "%s: %s", p->ending,
						   why);
	}
	free(*cell);
	*cell = strdup(text);
	return *cell ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for labels");
}
