/* SPDX-License-Identifier: MIT */
/*
 * printable.c - text of unknown origin, made safe for a terminal and a log.
 */
#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

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

size_t tsi_printable(char *to, size_t size, const char *from)
{
	const unsigned char *s = (const unsigned char *)from;
	size_t len = 0;

	while (*s) {
		uint32_t c;
		unsigned n = tsi_utf8_read(s, &c);
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
