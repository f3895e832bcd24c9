/* SPDX-License-Identifier: MIT */
/*
 * head.c - the first directory of a TIFF file: how large is its image?
 *
 * The directory may lie anywhere in the file, at its end too.
 */
#include "tiff/tiff.h"

#include <string.h>

#include "base/err.h"

enum { WIDTH = 256, HEIGHT = 257, SHORT = 3, LONG = 4 };

#define ENTRY 12u

/* Numbers in a file's order of bytes. */
struct reader {
	const uint8_t *data;
	bool big;
};

static uint32_t get16(const struct reader *r, uint64_t at)
{
	const uint8_t *p = r->data + at;

	return r->big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t get32(const struct reader *r, uint64_t at)
{
	uint32_t a = get16(r, at), b = get16(r, at + 2);

	return r->big ? a << 16 | b : b << 16 | a;
}

bool tsi_tiff_claims(const uint8_t *data, size_t len)
{
	return len >= 4 &&
	       (!memcmp(data, "II*\0", 4) || !memcmp(data, "MM\0*", 4));
}

/* The number of an entry that has one; false: it has not. */
static bool read_entry(const struct reader *r, uint64_t at, uint32_t *value)
{
	uint32_t type = get16(r, at + 2);

	if (type == SHORT)
		*value = get16(r, at + 8);
	else if (type == LONG)
		*value = get32(r, at + 8);
	return (type == SHORT || type == LONG) && get32(r, at + 4) == 1;
}

int tsi_tiff_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height)
{
	const struct reader r = { data, data[0] == 'M' };
	bool wide = false, high = false;
	uint64_t at;
	uint32_t n;

	if (len < 8)
		return TSOCK_EAGAIN;
	at = get32(&r, 4);
	if (at + 2 > len)
		return TSOCK_EAGAIN;
	n = get16(&r, at);
	if (at + 2 + (uint64_t)n * ENTRY > len)
		return TSOCK_EAGAIN;
	for (at += 2; n; n--, at += ENTRY) {
		if (get16(&r, at) == WIDTH && !wide)
			wide = read_entry(&r, at, width);
		if (get16(&r, at) == HEIGHT && !high)
			high = read_entry(&r, at, height);
	}
	if (!wide || !high)
		return tsi_err(TSOCK_EDATA,
			       "bad TIFF: its first directory has no size");
	return 0;
}
