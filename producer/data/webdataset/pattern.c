/* SPDX-License-Identifier: MIT */
/*
 * pattern.c - the names that a pattern with braces stands for.
 */
#include "data/webdataset/pattern.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct expansion {
	const char *pattern;
	struct tsi_text *text;
	uint64_t **at;
	uint64_t *n;
	uint64_t *cap;
	char name[TSI_PATTERN_NAME];
};

static int expand(struct expansion *e, const char *rest, size_t len);

static int odd(const struct expansion *e, const char *why)
{
	return tsi_err(TSOCK_EARG,
		       "%s: %s; a pattern is like shard-{0000..0146}.tar or "
		       "{a,b}.tar",
		       e->pattern, why);
}

/* The name so far has len bytes: append n more, and go on with the rest. */
static int expand_with(struct expansion *e, const char *more, size_t n,
		       const char *rest, size_t len)
{
	if (n >= sizeof(e->name) - len)
		return odd(e, "the names are too long");
	memcpy(e->name + len, more, n);
	return expand(e, rest, len + n);
}

static int add_expanded(struct expansion *e, size_t len)
{
	int err;

	if (*e->n >= TSI_PATTERN_NAMES)
		return odd(e, "it stands for more than a million names");
	e->name[len] = '\0';
	err = tsi_text_grow(e->at, *e->n, e->cap, sizeof(**e->at));
	if (!err)
		err = tsi_text_add(e->text, NULL, e->name, &(*e->at)[*e->n]);
	*e->n += !err;
	return err;
}

/* "0000..0146" of len bytes. */
static bool is_range(const char *p, size_t len, unsigned long long *low,
		     unsigned long long *high, int *digits)
{
	const char *dots = memmem(p, len, "..", 2);
	size_t a, b;

	if (!dots)
		return false;
	a = (size_t)(dots - p);
	b = len - a - 2;
	if (a == 0 || b == 0 || a > 18 || b > 18 ||
	    strspn(p, "0123456789") != a || strspn(dots + 2, "0123456789") != b)
		return false;
	*low = strtoull(p, NULL, 10);
	*high = strtoull(dots + 2, NULL, 10);
	/* Digits count where one of the two is written with a zero in front. */
	*digits = 1;
	if ((p[0] == '0' && a > 1) || (dots[2] == '0' && b > 1))
		*digits = (int)(a > b ? a : b);
	return true;
}

static int expand_range(struct expansion *e, unsigned long long low,
			unsigned long long high, int digits, const char *rest,
			size_t len)
{
	bool down = high < low;
	unsigned long long steps = down ? low - high : high - low;
	int err = 0;

	if (steps >= TSI_PATTERN_NAMES)
		return odd(e, "it stands for more than a million names");
	for (unsigned long long i = 0; i <= steps && !err; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "%0*llu", digits,
				 down ? low - i : low + i);

		err = expand_with(e, text, (size_t)n, rest, len);
	}
	return err;
}

static int expand_list(struct expansion *e, const char *p, size_t n,
		       const char *rest, size_t len)
{
	const char *end = p + n;

	if (!memchr(p, ',', n))
		return odd(e, "its braces hold neither a range nor a list");
	for (;;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *to = comma ? comma : end;
		int err = expand_with(e, p, (size_t)(to - p), rest, len);

		if (err || !comma)
			return err;
		p = comma + 1;
	}
}

static int expand(struct expansion *e, const char *rest, size_t len)
{
	size_t n = strcspn(rest, "{}");
	unsigned long long low, high;
	const char *open, *close;
	int digits;

	if (n >= sizeof(e->name) - len)
		return odd(e, "the names are too long");
	memcpy(e->name + len, rest, n);
	len += n;
	open = rest + n;
	if (!*open)
		return add_expanded(e, len);
	close = open + 1 + strcspn(open + 1, "{}");
	if (*open == '}' || *close != '}')
		return odd(e, "its braces don't match");
	n = (size_t)(close - open - 1);
	if (is_range(open + 1, n, &low, &high, &digits))
		return expand_range(e, low, high, digits, close + 1, len);
	return expand_list(e, open + 1, n, close + 1, len);
}

int tsi_pattern_expand(const char *pattern, struct tsi_text *t, uint64_t **at,
		       uint64_t *n, uint64_t *cap)
{
	struct expansion e = {
		.pattern = pattern, .text = t, .at = at, .n = n, .cap = cap
	};

	return expand(&e, pattern, 0);
}
