/* SPDX-License-Identifier: MIT */
/*
 * head.c - the first bytes of a PNG file: how large is the image, and is it
 * of a kind that can be decoded?
 */
#include "png/png.h"

#include <string.h>

#include "base/err.h"
#include "pixel/image.h"

const uint8_t tsi_png_magic[8] = {
	0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'
};

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static bool depth_fits(unsigned type, unsigned depth)
{
	switch (type) {
	case 0:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 ||
		       depth == 16;
	case 3:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case 2:
	case 4:
	case 6:
		return depth == 8 || depth == 16;
	default:
		return false;
	}
}

bool tsi_png_claims(const uint8_t *data, size_t len)
{
	return len >= 8 && !memcmp(data, tsi_png_magic, 8);
}

int tsi_png_head(const uint8_t *data, size_t len, uint32_t *width,
		 uint32_t *height)
{
	const uint8_t *p = data + 16;

	if (len < 33)
		return TSOCK_EAGAIN;
	if (be32(data + 8) < 13 || memcmp(data + 12, "IHDR", 4) != 0)
		return tsi_err(TSOCK_EDATA, "bad PNG: no header chunk");
	/* As Pillow: any compression is zlib's, any interlacing Adam's. */
	if (!depth_fits(p[9], p[8]) || p[11])
		return tsi_err(TSOCK_EDATA,
			       "bad PNG: colour type %u, depth %u, methods %u, "
			       "%u, %u",
			       p[9], p[8], p[10], p[11], p[12]);
	*width = be32(p);
	*height = be32(p + 4);
	if (*width > TSI_IMAGE_EDGE_MAX || *height > TSI_IMAGE_EDGE_MAX)
		return tsi_err(TSOCK_EDATA,
			       "PNG is too large: %u x %u pixels, an edge may "
			       "have %u",
			       *width, *height, TSI_IMAGE_EDGE_MAX);
	return 0;
}

int tsi_png_numbers(unsigned type, unsigned depth)
{
	if (depth == 16)
		return tsi_err(TSOCK_EDATA,
			       "it is a PNG of 16 bits per channel, and not of "
			       "8 or fewer");
	if (type == 0 || type == 3)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "it is a PNG %s, and not of one number a pixel, grey or "
		       "a palette's",
		       type == 4 ? "with transparency" : "of colours");
}
