/*
 * sniff.c - what kind of file, how large, and is it one that can be decoded?
 *
 * Walks the markers by hand, in time linear in the bytes given, and never
 * looks behind the header.
 */
#include <string.h>

#include "base/err.h"
#include "image/image.h"

struct cursor {
	const uint8_t *p;
	size_t at;
	size_t len;
	bool whole;
};

static const uint8_t png_magic[8] = { 0x89, 'P',  'N',  'G',
				      '\r', '\n', 0x1a, '\n' };

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
	return be16(p) << 16 | be16(p + 2);
}

static int ends(const struct cursor *c, const char *kind)
{
	if (!c->whole)
		return TSOCK_EAGAIN;
	return tsi_err(TSOCK_EDATA,
		       "%s is truncated: it ends after %zu bytes, "
		       "within its header",
		       kind, c->len);
}

static int check_size(uint32_t width, uint32_t height, const char *kind)
{
	if (!width || !height)
		return tsi_err(TSOCK_EDATA, "%s is empty: %u x %u pixels", kind,
			       width, height);
	if ((uint64_t)width * height > TSI_IMAGE_PIXELS_MAX)
		return tsi_err(TSOCK_EDATA,
			       "%s is too large: %u x %u pixels, the limit is "
			       "%u in all",
			       kind, width, height, TSI_IMAGE_PIXELS_MAX);
	return 0;
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
static int frame(const uint8_t *p, size_t len, unsigned marker,
		 struct tsi_image_head *out)
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
	out->kind = TSI_JPEG;
	out->height = be16(p + 1);
	out->width = be16(p + 3);
	return check_size(out->width, out->height, "JPEG");
}

static bool is_frame(unsigned marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
	       marker != 0xcc;
}

static bool is_bare(unsigned marker)
{
	return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7);
}

static int sniff_jpeg(struct cursor *c, struct tsi_image_head *out)
{
	c->at = 2;
	for (;;) {
		unsigned marker;
		size_t len;

		/* Junk before a marker is skipped, as decoders do. */
		while (c->at < c->len && c->p[c->at] != 0xff)
			c->at++;
		while (c->at < c->len && c->p[c->at] == 0xff)
			c->at++;
		if (c->at >= c->len)
			return ends(c, "JPEG");
		marker = c->p[c->at++];
		if (!marker || is_bare(marker))
			continue;
		if (marker == 0xd9 || marker == 0xda)
			return tsi_err(TSOCK_EDATA, "bad JPEG: no frame header "
						    "before the data");
		if (marker == 0xd8)
			return tsi_err(TSOCK_EDATA, "bad JPEG: starts twice");
		if (c->len - c->at < 2)
			return ends(c, "JPEG");
		len = be16(c->p + c->at);
		if (len < 2)
			return tsi_err(TSOCK_EDATA,
				       "bad JPEG: marker 0x%02x "
				       "of length %zu",
				       marker, len);
		if (c->len - c->at < len)
			return ends(c, "JPEG");
		if (is_frame(marker))
			return frame(c->p + c->at + 2, len - 2, marker, out);
		c->at += len;
	}
}

static bool depth_fits(unsigned type, unsigned depth)
{
	switch (type) {
	case 0:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case 3:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case 2:
	case 4:
	case 6:
		return depth == 8;
	default:
		return false;
	}
}

static int sniff_png(const struct cursor *c, struct tsi_image_head *out)
{
	const uint8_t *p = c->p + 16;

	if (c->len < 33)
		return ends(c, "PNG");
	if (be32(c->p + 8) < 13 || memcmp(c->p + 12, "IHDR", 4) != 0)
		return tsi_err(TSOCK_EDATA, "bad PNG: no header chunk");
	if (p[8] == 16)
		return tsi_err(TSOCK_EDATA,
			       "PNG with 16 bits per channel is not supported");
	/* As Pillow: any compression is zlib's, any interlacing Adam's. */
	if (!depth_fits(p[9], p[8]) || p[11])
		return tsi_err(TSOCK_EDATA,
			       "bad PNG: colour type %u, depth %u, methods %u, "
			       "%u, %u",
			       p[9], p[8], p[10], p[11], p[12]);
	out->kind = TSI_PNG;
	out->width = be32(p);
	out->height = be32(p + 4);
	if (out->width > TSI_IMAGE_EDGE_MAX || out->height > TSI_IMAGE_EDGE_MAX)
		return tsi_err(TSOCK_EDATA,
			       "PNG is too large: %u x %u pixels, an edge may "
			       "have %u",
			       out->width, out->height, TSI_IMAGE_EDGE_MAX);
	return check_size(out->width, out->height, "PNG");
}

/* The names of what people leave among their photos. */
static const char *guess(const uint8_t *p, size_t len)
{
	if (len >= 6 && !memcmp(p, "GIF8", 4))
		return "a GIF image";
	if (len >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4))
		return "a WebP image";
	if (len >= 2 && !memcmp(p, "BM", 2))
		return "a BMP image";
	if (len >= 4 && (!memcmp(p, "II*\0", 4) || !memcmp(p, "MM\0*", 4)))
		return "a TIFF image";
	for (size_t i = 0; i < len && i < 64; i++)
		if (p[i] < 9 || p[i] > 126 || (p[i] > 13 && p[i] < 32))
			return "something else";
	return "text";
}

int tsi_image_sniff(const void *data, size_t len, bool whole,
		    struct tsi_image_head *out)
{
	struct cursor c = { .p = data, .len = len, .whole = whole };
	struct tsi_image_head head = { 0 };
	int err;

	if (!len)
		return whole ? tsi_err(TSOCK_EDATA, "the file is empty")
			     : TSOCK_EAGAIN;
	if (len >= 3 && !memcmp(c.p, "\xff\xd8\xff", 3))
		err = sniff_jpeg(&c, &head);
	else if (len >= 8 && !memcmp(c.p, png_magic, 8))
		err = sniff_png(&c, &head);
	else if (len < 16 && !whole)
		err = TSOCK_EAGAIN;
	else
		err = tsi_err(TSOCK_EDATA, "neither JPEG nor PNG but %s",
			      guess(c.p, len));
	if (!err)
		*out = head;
	return err;
}
