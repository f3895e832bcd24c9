/* SPDX-License-Identifier: MIT */
/*
 * text.c - text of unknown origin: its characters, and what of it is safe for a
 * terminal and a log.
 */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

unsigned tsi_text_utf8(const unsigned char *s, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned n = s[0] < 0x80   ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;

	*c = n > 1 ? s[0] & (0xffu >> (n + 1)) : s[0];
	/* The text's final NUL is no continuation byte, so this ends there. */
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3fu);
	}
	if (n &&
	    (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000)))
		return 0;
	return n;
}

static bool is_plain(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	/* Line and paragraph separators, and changes of direction. */
	return !((c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
		 c == 0x200e || c == 0x200f || c == 0x061c);
}

/* Write one byte as an escape; returns the escape's length. */
static unsigned escape(unsigned char byte, char out[4])
{
	static const char hex[] = "0123456789abcdef";
	char letter = byte == '\n'   ? 'n'
		      : byte == '\t' ? 't'
		      : byte == '\r' ? 'r'
				     : 'x';

	out[0] = '\\';
	out[1] = letter;
	if (letter != 'x')
		return 2;
	out[2] = hex[byte >> 4];
	out[3] = hex[byte & 15];
	return 4;
}

size_t tsi_text_printable(char *to, size_t size, const char *from)
{
	const unsigned char *s = (const unsigned char *)from;
	size_t len = 0;

	while (*s) {
		uint32_t c;
		unsigned n = tsi_text_utf8(s, &c);
		char text[4 * 4];
		unsigned m = 0;

		if (n && is_plain(c)) {
			memcpy(text, s, n);
			m = n;
		} else {
			n += !n;
			for (unsigned i = 0; i < n; i++)
				m += escape(s[i], text + m);
		}
		if (len + m >= size)
			break;
		memcpy(to + len, text, m);
		len += m;
		s += n;
	}
	if (size)
		to[len] = '\0';
	return len;
}

/* ---- typing errors ---- */

#define WORD_MAX 32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to put in, leave out, change, or swap with the next. */
static size_t distance(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t d[3][WORD_MAX + 1] = { { 0 } };

	for (size_t j = 0; j <= blen; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= alen; i++) {
		size_t *now = d[i % 3];
		size_t *last = d[(i + 2) % 3];
		size_t *before = d[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= blen; j++) {
			now[j] = least(last[j], now[j - 1]) + 1;
			now[j] = least(now[j],
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return d[alen % 3][blen];
}

bool tsi_text_near(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t longer = alen > blen ? alen : blen;

	if (longer > WORD_MAX || longer < 2)
		return false;
	return distance(a, alen, b, blen) <= (longer < 6 ? 1u : 2u);
}

const char *tsi_text_nearest(const char *word, const char *list, size_t *len)
{
	for (;;) {
		size_t n = strcspn(list, "|");

		if (tsi_text_near(word, strlen(word), list, n)) {
			*len = n;
			return list;
		}
		if (!list[n])
			return NULL;
		list += n + 1;
	}
}
