/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

unsigned tsi_utf8_read(const unsigned char *s, uint32_t *c)
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
