/* SPDX-License-Identifier: MIT */
/*
 * unstuff.c - the bytes of a JPEG scan without the stuffed zeros.
 *
 * One byte in about 256 is 0xff, so pieces between them are copied whole.
 */
#include "jpeg/unstuff.h"

#include <string.h>

void tsi_unstuff_on(const uint8_t *src, size_t len, uint8_t *dst, size_t cap,
		    struct tsi_unstuffed *r)
{
	while (r->read < len && r->written < cap) {
		const uint8_t *from = src + r->read;
		size_t n = len - r->read;
		const uint8_t *ff;

		n = n < cap - r->written ? n : cap - r->written;
		ff = memchr(from, 0xff, n);
		n = ff ? (size_t)(ff - from) : n;
		memcpy(dst + r->written, from, n);
		r->read += n;
		r->written += n;
		if (ff && !tsi_unstuff_ff(src, len, dst, r))
			return;
	}
}

struct tsi_unstuffed tsi_unstuff_scalar(const uint8_t *src, size_t len,
					uint8_t *dst, size_t cap)
{
	struct tsi_unstuffed r = { 0 };

	tsi_unstuff_on(src, len, dst, cap, &r);
	return r;
}
