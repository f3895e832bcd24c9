/* SPDX-License-Identifier: MIT */
/*
 * head.c - the first markers of a JPEG file: how large is the image, and
 * is it of a kind that can be decoded?
 *
 * Walks the markers by hand, in time linear in the bytes given, and never
 * looks behind the frame header.
 */
#include "jpeg/jpeg.h"

#include <string.h>

#include "base/err.h"

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static int check_process(unsigned marker)
{
	switch (marker) {
	case 0xc0: /* baseline */
	case 0xc1: /* extended */
	case 0xc2: /* progressive */
	case 0xc9: /* extended, arithmetic */
	case 0xca: /* progressive, arithmetic */
		return 0;
	case 0xc3:
	case 0xcb:
		return tsi_err(TSOCK_EDATA, "lossless JPEG is not supported");
	default:
		return tsi_err(TSOCK_EDATA,
			       "JPEG process 0x%02x is not supported", marker);
	}
}

/* The frame header at p, of which there are len bytes. */
static int frame(const uint8_t *p, size_t len, unsigned marker, uint32_t *width,
		 uint32_t *height)
{
	int err = check_process(marker);
	unsigned parts;

	if (err)
		return err;
	if (len < 6 || len != 6 + 3 * (size_t)p[5])
		return tsi_err(TSOCK_EDATA,
			       "bad JPEG: frame header of %zu "
			       "bytes",
			       len);
	if (p[0] != 8)
		return tsi_err(TSOCK_EDATA,
			       "JPEG with %u bits per sample is not supported",
			       p[0]);
	parts = p[5];
	if (parts != 1 && parts != 3 && parts != 4)
		return tsi_err(TSOCK_EDATA,
			       "JPEG with %u components is not supported",
			       parts);
	*height = be16(p + 1);
	*width = be16(p + 3);
	return 0;
}

static bool is_frame(unsigned marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
	       marker != 0xcc;
}

static bool is_bare(unsigned marker)
{
	return marker >= 0xd0 && marker <= 0xd7;
}

/* A comment's length may be wrong: nothing is behind it then. */
static bool is_comment(unsigned marker)
{
	return marker == 0xdc || marker == 0xfe ||
	       (marker >= 0xe0 && marker <= 0xef);
}

/* Pillow reads what these are to have behind their names, and must find it. */
static bool is_short(unsigned marker, const uint8_t *p, size_t n)
{
	return n < 7 && ((marker == 0xe0 && n >= 4 && !memcmp(p, "JFIF", 4)) ||
			 (marker == 0xee && n >= 5 && !memcmp(p, "Adobe", 5)));
}

bool tsi_jpeg_claims(const uint8_t *data, size_t len)
{
	return len >= 3 && !memcmp(data, "\xff\xd8\xff", 3);
}

int tsi_jpeg_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height)
{
	size_t at = 2;

	for (;;) {
		unsigned marker;
		size_t n;

		/* Junk before a marker is skipped, as decoders do. */
		while (at < len && data[at] != 0xff)
			at++;
		while (at < len && data[at] == 0xff)
			at++;
		if (at >= len)
			return TSOCK_EAGAIN;
		marker = data[at++];
		if (!marker || is_bare(marker))
			continue;
		if (marker == 0xd9 || marker == 0xda)
			return tsi_err(TSOCK_EDATA, "bad JPEG: no frame header "
						    "before the data");
		if (marker == 0xd8)
			return tsi_err(TSOCK_EDATA, "bad JPEG: starts twice");
		if (marker < 0xc0)
			return tsi_err(TSOCK_EDATA,
				       "bad JPEG: marker 0x%02x in its header",
				       marker);
		if (len - at < 2)
			return TSOCK_EAGAIN;
		n = be16(data + at);
		if (n < 2 && is_comment(marker))
			n = 2;
		if (n < 2)
			return tsi_err(TSOCK_EDATA,
				       "bad JPEG: marker 0x%02x "
				       "of length %zu",
				       marker, n);
		if (len - at < n)
			return TSOCK_EAGAIN;
		if (is_frame(marker))
			return frame(data + at + 2, n - 2, marker, width,
				     height);
		if (is_short(marker, data + at + 2, n - 2))
			return tsi_err(TSOCK_EDATA,
				       "bad JPEG: marker 0x%02x of length %zu",
				       marker, n);
		at += n;
	}
}
