/* SPDX-License-Identifier: MIT */
/*
 * name.c - the order in which Python sorts file names.
 */
#include "data/name.h"

#include <stdint.h>

#include "base/text.h"

/* One code point of valid UTF-8 at *p, else U+DC00 plus one byte. */
static uint32_t code_point(const unsigned char **p)
{
	uint32_t c;
	unsigned n = tsi_text_utf8(*p, &c);

	if (!n)
		c = 0xdc00 + **p;
	*p += n ? n : 1;
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
