/* SPDX-License-Identifier: MIT */
/*
 * head.c - the first bytes of a WebP file: how large is the image?
 */
#include "webp/webp.h"

#include <string.h>

#include "base/err.h"

/* The container's header, and that of its first chunk. */
#define CHUNK 20

static uint32_t le16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le24(const uint8_t *p)
{
	return le16(p) | (uint32_t)p[2] << 16;
}

bool tsi_webp_claims(const uint8_t *data, size_t len)
{
	return len >= 12 && !memcmp(data, "RIFF", 4) &&
	       !memcmp(data + 8, "WEBP", 4);
}

/* Animations and whatever has more than pixels: the size of the canvas. */
static int extended(const uint8_t *p, uint32_t *width, uint32_t *height)
{
	*width = le24(p + 4) + 1;
	*height = le24(p + 7) + 1;
	return 0;
}

static int lossless(const uint8_t *p, uint32_t *width, uint32_t *height)
{
	uint32_t bits = le24(p + 1) | (uint32_t)p[4] << 24;

	if (p[0] != 0x2f)
		return tsi_err(TSOCK_EDATA,
			       "bad WebP: its image has no signature");
	*width = (bits & 0x3fff) + 1;
	*height = (bits >> 14 & 0x3fff) + 1;
	return 0;
}

static int lossy(const uint8_t *p, uint32_t *width, uint32_t *height)
{
	if (memcmp(p + 3, "\x9d\x01\x2a", 3) != 0)
		return tsi_err(TSOCK_EDATA,
			       "bad WebP: its image has no signature");
	*width = le16(p + 6) & 0x3fff;
	*height = le16(p + 8) & 0x3fff;
	return 0;
}

int tsi_webp_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height)
{
	static const struct {
		char name[5];
		uint8_t bytes; /* of the chunk, that hold the size */
		int (*size)(const uint8_t *p, uint32_t *width,
			    uint32_t *height);
	} first[] = { { "VP8X", 10, extended },
		      { "VP8L", 5, lossless },
		      { "VP8 ", 10, lossy } };

	if (len < CHUNK)
		return TSOCK_EAGAIN;
	for (unsigned i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		if (memcmp(data + CHUNK - 8, first[i].name, 4) != 0)
			continue;
		if (len < CHUNK + (size_t)first[i].bytes)
			return TSOCK_EAGAIN;
		return first[i].size(data + CHUNK, width, height);
	}
	return tsi_err(TSOCK_EDATA, "bad WebP: it doesn't begin with an image");
}
