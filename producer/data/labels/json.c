/* SPDX-License-Identifier: MIT */
/*
 * json.c - some values of a JSON object, decoded where they lie: a decoded text
 * is never longer than what it was written as.
 */
#include "data/labels/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEEP 24

struct json {
	char *p, *end;
	const char *wrong; /* NULL: nothing */
	unsigned n;
	char **value;
	char **stop; /* where each value ends, for the NUL there */
};

/* What is left of the paths; NULL: this one doesn't lead here. */
struct paths {
	const char *rest[TSI_LABELS_WANTED];
};

static bool fail(struct json *j, const char *what)
{
	if (!j->wrong)
		j->wrong = what;
	return false;
}

static void skip_space(struct json *j)
{
	while (j->p < j->end && memchr(" \t\r\n", *j->p, 4))
		j->p++;
}

static bool take(struct json *j, char c)
{
	skip_space(j);
	if (j->p == j->end || *j->p != c)
		return false;
	j->p++;
	return true;
}

/* ---- strings ---- */

static bool hex4(struct json *j, uint32_t *out)
{
	uint32_t v = 0;

	if (j->end - j->p < 4)
		return fail(j, "a \\u has no four digits");
	for (int i = 0; i < 4; i++) {
		char c = *j->p++;
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			return fail(j, "a \\u has no four digits");
		v = v << 4 | (uint32_t)d;
	}
	*out = v;
	return true;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 63));
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

/* Behind "\u": the character, which may be a pair of surrogates. */
static bool take_unicode(struct json *j, char **to)
{
	uint32_t c, low;

	if (!hex4(j, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (j->end - j->p < 2 || memcmp(j->p, "\\u", 2) != 0)
			return fail(j, "a \\u is half a character");
		j->p += 2;
		if (!hex4(j, &low))
			return false;
		if (low < 0xdc00 || low >= 0xe000)
			return fail(j, "a \\u is half a character");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return fail(j, "a \\u is half a character");
	}
	if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
		return fail(j, "a text has a control character");
	*to = put_utf8(*to, c);
	return true;
}

static bool take_escape(struct json *j, char **to)
{
	static const char from[] = "\"\\/nrtbf", is[] = "\"\\/\n\r\t  ";
	const char *at;
	char c;

	if (j->p == j->end)
		return fail(j, "a text has no end");
	c = *j->p++;
	if (c == 'u')
		return take_unicode(j, to);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return fail(j, "a text has an unknown escape");
	*(*to)++ = is[at - from];
	return true;
}

/* Behind the quote: decode what follows to *to, which isn't behind it. */
static bool take_string(struct json *j, char **to)
{
	while (j->p < j->end) {
		char c = *j->p++;

		if (c == '"')
			return true;
		if (c == '\\') {
			if (!take_escape(j, to))
				return false;
		} else if ((unsigned char)c < 0x20 && c != '\t') {
			return fail(j, "a text has a control character");
		} else {
			*(*to)++ = c;
		}
	}
	return fail(j, "a text has no end");
}

/* ---- values ---- */

/* A number, true, false or null: how long it is. */
static size_t word_len(const struct json *j)
{
	size_t n = 0;

	while (j->p + n < j->end && !memchr(" \t\r\n,]}:\"[{", j->p[n], 11))
		n++;
	return n;
}

static bool is_word(const char *p, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(p, word, len);
}

static bool is_number(const char *p, size_t len)
{
	size_t i = len && *p == '-';

	return i < len && p[i] >= '0' && p[i] <= '9' &&
	       strspn(p + i, "0123456789+-.eE") >= len - i;
}

/* A number or the like: where its text begins and ends; NULL: null. */
static bool take_word(struct json *j, char **begin, char **stop)
{
	size_t len = word_len(j);
	char *p = j->p;

	j->p += len;
	*begin = p;
	*stop = p + len;
	if (is_word(p, len, "true") || is_word(p, len, "false")) {
		*p = *p == 't' ? '1' : '0';
		*stop = p + 1;
		return true;
	}
	if (is_word(p, len, "null")) {
		*begin = NULL;
		return true;
	}
	return is_number(p, len) || fail(j, "a value is none of JSON's");
}

/* Behind '[': its items to where it began. */
static bool take_list(struct json *j, char **begin, char **stop)
{
	char *to = j->p - 1;
	char *from, *end;
	char behind;

	*begin = to;
	*to++ = TSI_LABELS_LIST;
	if (take(j, ']')) {
		*stop = to;
		return true;
	}
	do {
		if (take(j, '"')) {
			if (!take_string(j, &to))
				return false;
		} else if (j->p < j->end && memchr("[{", *j->p, 2)) {
			return fail(j, "a list has more than numbers and texts "
				       "in it");
		} else if (!take_word(j, &from, &end)) {
			return false;
		} else if (!from) {
			return fail(j, "a list has a null in it");
		} else {
			memmove(to, from, (size_t)(end - from));
			to += end - from;
		}
		skip_space(j);
		if (j->p == j->end || (*j->p != ',' && *j->p != ']'))
			return fail(j, "a list has no end");
		behind = *j->p++; /* which may be where it is written to */
		*to++ = TSI_LABELS_ITEM;
	} while (behind == ',');
	*stop = to;
	return true;
}

static bool take_object(struct json *j, const struct paths *paths, int depth);

/* Go behind a value that isn't wanted. */
static bool skip_value(struct json *j, int depth)
{
	char *a, *b;

	skip_space(j);
	if (depth > DEEP)
		return fail(j, "it is nested too deeply");
	if (j->p < j->end && *j->p == '{')
		return take_object(j, NULL, depth + 1);
	if (take(j, '"')) {
		a = j->p;
		return take_string(j, &a);
	}
	if (!take(j, '['))
		return take_word(j, &a, &b);
	if (take(j, ']'))
		return true;
	do
		if (!skip_value(j, depth + 1))
			return false;
	while (take(j, ','));
	return take(j, ']') || fail(j, "a list has no end");
}

/* The value that is wanted as those of a mask of paths. */
static bool take_value(struct json *j, const bool *wanted)
{
	char *begin = NULL, *stop = NULL;
	bool good;

	skip_space(j);
	if (take(j, '"')) {
		begin = stop = j->p;
		good = take_string(j, &stop);
	} else if (take(j, '[')) {
		good = take_list(j, &begin, &stop);
	} else {
		good = take_word(j, &begin, &stop);
	}
	for (unsigned i = 0; good && i < j->n; i++)
		if (wanted[i]) {
			j->value[i] = begin;
			j->stop[i] = stop;
		}
	return good;
}

/*
 * Which paths end at a name, and which lead on into its object.  What was found
 * for them before counts no more.
 */
static void follow(struct json *j, const struct paths *paths, const char *name,
		   size_t len, bool *wanted, bool *any, struct paths *on,
		   bool *leads)
{
	*any = *leads = false;
	for (unsigned i = 0; i < j->n; i++) {
		const char *rest = paths ? paths->rest[i] : NULL;
		bool begins = rest && !strncmp(rest, name, len);

		wanted[i] = begins && !rest[len];
		on->rest[i] =
			begins && rest[len] == '.' ? rest + len + 1 : NULL;
		*any = *any || wanted[i];
		*leads = *leads || on->rest[i];
		if (wanted[i] || on->rest[i])
			j->value[i] = NULL;
	}
}

static bool take_member(struct json *j, const struct paths *paths, int depth)
{
	bool wanted[TSI_LABELS_WANTED], any, leads;
	struct paths on = { { NULL } };
	char *name, *stop;

	if (!take(j, '"'))
		return fail(j, "a name is no text");
	name = stop = j->p;
	if (!take_string(j, &stop))
		return false;
	if (!take(j, ':'))
		return fail(j, "a name has no value");
	follow(j, paths, name, (size_t)(stop - name), wanted, &any, &on,
	       &leads);
	skip_space(j);
	if (j->p < j->end && *j->p == '{') {
		if (any)
			return fail(j, "the value is an object; name what is "
				       "in it as in meta.label");
		return take_object(j, leads ? &on : NULL, depth + 1);
	}
	return any ? take_value(j, wanted) : skip_value(j, depth);
}

static bool take_object(struct json *j, const struct paths *paths, int depth)
{
	if (depth > DEEP)
		return fail(j, "it is nested too deeply");
	if (!take(j, '{'))
		return fail(j, "it is no JSON object");
	if (take(j, '}'))
		return true;
	do
		if (!take_member(j, paths, depth))
			return false;
	while (take(j, ','));
	return take(j, '}') || fail(j, "the object has no end");
}

const char *tsi_labels_json(char *line, size_t len, const char *const *path,
			    unsigned n, char **value)
{
	char *stop[TSI_LABELS_WANTED];
	struct json j = { .p = line,
			  .end = line + len,
			  .n = n,
			  .value = value,
			  .stop = stop };
	struct paths paths = { { NULL } };

	for (unsigned i = 0; i < n; i++) {
		paths.rest[i] = path[i];
		value[i] = NULL;
	}
	if (!take_object(&j, &paths, 0))
		return j.wrong;
	skip_space(&j);
	if (j.p < j.end)
		return "something follows the object";
	for (unsigned i = 0; i < n; i++)
		if (value[i])
			*stop[i] = '\0';
	return NULL;
}
