/* SPDX-License-Identifier: MIT */
/*
 * name.c - the order in which Python sorts file names.
 */
#include "data/name.h"

#include <stdint.h>

/* One code point of valid UTF-8 at *p, else U+DC00 plus one byte. */
static uint32_t code_point(const unsigned char **p)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = *p;
	unsigned more = s[0] < 0x80   ? 0
			: s[0] < 0xc2 ? 4
			: s[0] < 0xe0 ? 1
			: s[0] < 0xf0 ? 2
			: s[0] < 0xf5 ? 3
				      : 4;
	uint32_t c = more ? s[0] & (0x3fu >> more) : s[0];

	(*p)++;
	if (more == 0)
		return c;
	for (unsigned i = 1; more < 4 && i <= more; i++) {
		/* The NUL at the end is no continuation byte and stops this. */
		if ((s[i] & 0xc0) != 0x80)
			return 0xdc00 + s[0];
		c = c << 6 | (s[i] & 0x3f);
	}
	if (more == 4 || c < least[more] || c > 0x10ffff ||
	    (c >= 0xd800 && c < 0xe000))
		return 0xdc00 + s[0];
	*p += more;
	return c;
}

int tsi_name_cmp(const char *a, const char *b)
{
	const unsigned char *p = (const unsigned char *)a;
	const unsigned char *q = (const unsigned char *)b;

	/* Nearly all names are ASCII, and begin alike. */
	for (; *p == *q && *p && *p < 0x80; p++)
		q++;
	for (;;) {
		uint32_t c = code_point(&p);
		uint32_t d = code_point(&q);

		if (c != d)
			return c < d ? -1 : 1;
		if (c == 0)
			return 0;
	}
}
