/* SPDX-License-Identifier: MIT */
/*
 * label.c - the label of a sample: a number as text, or in a JSON object
 * (RFC 8259), of which no more is understood than it takes to find the number.
 * Where a name comes twice, the last one counts, as in Python's json.
 */
#include "data/webdataset/label.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(const char **p, const char *end)
{
	while (*p < end && is_space(**p))
		++*p;
}

/* A whole number below TSI_LABEL_END; "3.0" is none. */
static bool take_number(const char **p, const char *end, uint32_t *out)
{
	uint32_t v = 0;
	bool any = false;

	for (; *p < end && **p >= '0' && **p <= '9'; ++*p) {
		v = v * 10 + (uint32_t)(**p - '0');
		if (v >= TSI_LABEL_END)
			return false;
		any = true;
	}
	*out = v;
	return any;
}

bool tsi_label_text(const char *text, size_t len, uint32_t *out)
{
	const char *end = text + len;
	uint32_t v;

	skip_space(&text, end);
	if (!take_number(&text, end, &v))
		return false;
	skip_space(&text, end);
	if (text != end)
		return false;
	*out = v;
	return true;
}

/* At a quote: go behind the string.  False: it doesn't end. */
static bool skip_string(const char **p, const char *end)
{
	for (++*p; *p < end; ++*p) {
		if (**p == '\\')
			++*p;
		else if (**p == '"') {
			++*p;
			return true;
		}
	}
	return false;
}

/*
 * Go behind a value: to the comma or brace that ends it.  Of what brackets hold
 * only their number counts.
 */
static bool skip_value(const char **p, const char *end)
{
	unsigned depth = 0;

	while (*p < end) {
		char c = **p;

		if (c == '"') {
			if (!skip_string(p, end))
				return false;
			continue;
		}
		if (depth == 0 && (c == ',' || c == '}'))
			return true;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth-- == 0)
			return false;
		++*p;
	}
	return false;
}

/* At the value of "label": its number, which a comma or brace must follow. */
static bool take_label(const char **p, const char *end, uint32_t *out)
{
	const char *at = *p;

	skip_space(&at, end);
	if (!take_number(&at, end, out))
		return false;
	skip_space(&at, end);
	if (at == end || (*at != ',' && *at != '}'))
		return false;
	*p = at;
	return true;
}

/* Behind the object there is nothing. */
static bool ends_there(const char *text, const char *end)
{
	skip_space(&text, end);
	return text == end;
}

enum tsi_label_kind tsi_label_json(const char *text, size_t len, uint32_t *out)
{
	enum tsi_label_kind kind = TSI_LABEL_ABSENT;
	const char *end = text + len;
	uint32_t v = 0;

	skip_space(&text, end);
	if (text == end || *text++ != '{')
		return TSI_LABEL_ABSENT;
	for (;;) {
		const char *key;
		bool found;

		skip_space(&text, end);
		key = text;
		if (text == end || *text != '"' || !skip_string(&text, end))
			return TSI_LABEL_ABSENT;
		found = text - key == 7 && !memcmp(key, "\"label\"", 7);
		skip_space(&text, end);
		if (text == end || *text++ != ':')
			return TSI_LABEL_ABSENT;
		if (found && take_label(&text, end, &v))
			kind = TSI_LABEL_NUMBER;
		else if (found)
			kind = TSI_LABEL_OTHER;
		if (!skip_value(&text, end))
			return TSI_LABEL_ABSENT;
		if (*text++ == '}')
			break;
	}
	if (!ends_there(text, end))
		return TSI_LABEL_ABSENT;
	if (kind == TSI_LABEL_NUMBER)
		*out = v;
	return kind;
}
