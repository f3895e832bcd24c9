/* SPDX-License-Identifier: MIT */
/*
 * bmp.c - BMP without compression: 24 and 32 bits, and 8 with a palette.
 *
 * What the header means is Pillow's choice: the fourth byte of 32 bits is
 * nobody's, and a palette that is the scale of greys is none, so that numbers
 * beyond it are levels; beyond other palettes is black.
 */
#include "plain/plain.h"

#include <string.h>

#include "base/err.h"

#define FILE_HEADER 14u
#define MOST_COLOURS 256u

enum { RGB = 0, BIT_FIELDS = 3 };

struct header {
	uint32_t bytes; /* of itself, behind the file's */
	uint32_t width, height;
	bool top_down;
	unsigned bits;
	uint32_t compression;
	uint32_t colours;
	unsigned entry; /* bytes of a palette's colour */
};

static uint32_t le16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le32(const uint8_t *p)
{
	return le16(p) | le16(p + 2) << 16;
}

static bool is_known(uint32_t bytes)
{
	static const uint8_t known[] = { 12, 40, 52, 56, 64, 108, 124 };

	return bytes < 256 && memchr(known, (int)bytes, sizeof(known));
}

static bool claims(const uint8_t *data, size_t len)
{
	return len >= 16 && data[0] == 'B' && data[1] == 'M' &&
	       is_known(le16(data + FILE_HEADER));
}

/* The old header, of OS/2. */
static void read_short(const uint8_t *p, struct header *h)
{
	*h = (struct header){
		.bytes = 12,
		.width = le16(p + 4),
		.height = le16(p + 6),
		.bits = le16(p + 10),
		.entry = 3,
	};
}

static void read_long(const uint8_t *p, struct header *h)
{
	*h = (struct header){
		.bytes = le32(p),
		.width = le32(p + 4),
		.height = le32(p + 8),
		.bits = le16(p + 14),
		.compression = le32(p + 16),
		.colours = le32(p + 32),
		.entry = 4,
	};
	h->top_down = p[11] == 0xff;
	if (h->top_down)
		h->height = 0 - h->height;
}

/* Bit fields that are the bytes that there are without, blue to red. */
static bool are_bytes(const uint8_t *data, const struct header *h)
{
	const uint8_t *mask = data + FILE_HEADER + 40;
	uint32_t alpha = h->bytes >= 56 ? le32(mask + 12) : 0;

	return le32(mask) == 0xff0000 && le32(mask + 4) == 0xff00 &&
	       le32(mask + 8) == 0xff && (!alpha || alpha == 0xff000000);
}

static int check_compression(const uint8_t *data, size_t len,
			     const struct header *h)
{
	if (h->compression == RGB)
		return 0;
	if (h->compression != BIT_FIELDS || h->bits != 32)
		return tsi_err(
			TSOCK_EDATA,
			"BMP with compression (%u, of %u bits per pixel) "
			"is not supported",
			h->compression, h->bits);
	if (len < FILE_HEADER + 56)
		return TSOCK_EAGAIN;
	if (!are_bytes(data, h))
		return tsi_err(TSOCK_EDATA,
			       "BMP with these masks of colours is not "
			       "supported");
	return 0;
}

static int read_header(const uint8_t *data, size_t len, struct header *h)
{
	const uint8_t *p = data + FILE_HEADER;

	if (len < FILE_HEADER + 4)
		return TSOCK_EAGAIN;
	if (!is_known(le32(p)))
		return tsi_err(TSOCK_EDATA, "bad BMP: its header is unknown");
	if (len < FILE_HEADER + le32(p))
		return TSOCK_EAGAIN;
	if (le32(p) == 12)
		read_short(p, h);
	else
		read_long(p, h);
	if (h->bits != 8 && h->bits != 24 && h->bits != 32)
		return tsi_err(TSOCK_EDATA,
			       "BMP of %u bits per pixel is not supported",
			       h->bits);
	if (!h->colours)
		h->colours = h->bits == 8 ? MOST_COLOURS : 0;
	return check_compression(data, len, h);
}

static bool are_greys(const uint8_t *palette, const struct header *h)
{
	for (uint32_t i = 0; i < h->colours; i++) {
		uint32_t level = h->colours == 2 ? i * 255 : i;

		for (unsigned c = 0; c < 3; c++)
			if (palette[i * h->entry + c] != level)
				return false;
	}
	return true;
}

static int read_palette(const uint8_t *data, size_t len, const struct header *h,
			struct tsi_plain_layout *y)
{
	const uint8_t *p = data + FILE_HEADER + h->bytes;
	bool greys;

	if (h->colours > MOST_COLOURS)
		return tsi_err(
			TSOCK_EDATA,
			"bad BMP: its palette has more than 256 colours");
	if (len - FILE_HEADER - h->bytes < (size_t)h->colours * h->entry)
		return TSOCK_EAGAIN;
	greys = are_greys(p, h);
	if (greys && h->colours <= 2)
		return tsi_err(
			TSOCK_EDATA,
			"BMP of 8 bits per pixel with a palette of black "
			"and white alone is not supported");
	for (uint32_t i = 0; greys && i < MOST_COLOURS; i++)
		memset(y->table[i], (int)i, 3);
	for (uint32_t i = 0; !greys && i < h->colours; i++, p += h->entry)
		for (unsigned c = 0; c < 3; c++)
			y->table[i][c] = p[2 - c];
	return 0;
}

/* Where the pixels are, of a file with a palette of so many bytes. */
static uint64_t pixels_at(const uint8_t *data, const struct header *h,
			  uint64_t palette)
{
	uint64_t at = le32(data + 10), head = FILE_HEADER + h->bytes;

	if (at && (at != head || !palette))
		return at;
	/* Masks of a header that has no place for them. */
	if (!at && h->compression == BIT_FIELDS && h->bytes < 52)
		return head + 12;
	return head + palette;
}

static int parse(const uint8_t *data, size_t len, struct tsi_plain_layout *y)
{
	struct header h;
	uint64_t palette = 0;
	int err = read_header(data, len, &h);

	if (err)
		return err;
	*y = (struct tsi_plain_layout){
		.width = h.width,
		.height = h.height,
		.stride = ((uint64_t)h.width * h.bits + 31) / 32 * 4,
		.bottom_up = !h.top_down,
		.bytes = h.bits / 8,
		.red = 2,
		.green = 1,
	};
	if (h.bits == 8) {
		palette = (uint64_t)h.colours * h.entry;
		err = read_palette(data, len, &h, y);
	}
	y->at = pixels_at(data, &h, palette);
	return err;
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	struct header h;
	int err = read_header(data, len, &h);

	if (err)
		return err;
	*width = h.width;
	*height = h.height;
	return 0;
}

static int create(struct tsi_decoder **out)
{
	return tsi_plain_create(&tsi_bmp_ops, parse, out);
}

const struct tsi_decoder_ops tsi_bmp_ops = {
	.name = "BMP",
	.claims = claims,
	.head = head,
	.create = create,
	.destroy = tsi_plain_destroy,
	.open = tsi_plain_open,
	.need = tsi_plain_need,
	.begin = tsi_plain_begin,
	.read = tsi_plain_read,
	.rows = tsi_plain_rows,
	.close = tsi_plain_close,
};
