/* SPDX-License-Identifier: MIT */
/*
 * head.c - what a GIF file says before its first image: sizes, the palette,
 * what is transparent.
 *
 * A palette that is the scale of greys is none, as to Pillow: an image with
 * such a palette of its own has the file's.
 */
#include "gif/gif.h"

#include <string.h>

#include "base/err.h"

#define SCREEN 13u
#define IMAGE 9u

enum { EXTENSION = '!', IMAGE_BEGINS = ',', END = ';' };
enum { CONTROL = 249, COMMENT = 254, APPLICATION = 255 };

/* Bytes that are read one after the other. */
struct reader {
	const uint8_t *data;
	size_t len, at;
};

static int bad(const char *why)
{
	return tsi_err(TSOCK_EDATA, "bad GIF: %s", why);
}

static uint32_t le16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

/* The next n bytes; NULL: they aren't there. */
static const uint8_t *take(struct reader *r, size_t n)
{
	const uint8_t *p = r->data + r->at;

	if (n > r->len - r->at)
		return NULL;
	r->at += n;
	return p;
}

/* A block, of *n bytes; the one of none ends a row of blocks. */
static int take_block(struct reader *r, const uint8_t **block, unsigned *n)
{
	const uint8_t *size = take(r, 1);

	*block = size ? take(r, *size) : NULL;
	if (!*block)
		return TSOCK_EAGAIN;
	*n = *size;
	return 0;
}

static int skip_blocks(struct reader *r)
{
	const uint8_t *block;
	unsigned n;
	int err;

	do
		err = take_block(r, &block, &n);
	while (!err && n);
	return err;
}

/* A block that says what is transparent. */
static int read_control(const uint8_t *block, unsigned n,
			struct tsi_gif_layout *y)
{
	bool clear = block[0] & 1;

	if (n < (clear ? 4 : 3))
		return bad("an extension of it is too short");
	if (clear)
		y->clear = block[3];
	return 0;
}

/*
 * Extensions end where Pillow sees their end: those but comments have a block
 * behind the first one even where that is the last, and NETSCAPE's two.
 */
static int read_extension(struct reader *r, struct tsi_gif_layout *y)
{
	const uint8_t *kind = take(r, 1), *block;
	unsigned n;
	int err = kind ? take_block(r, &block, &n) : TSOCK_EAGAIN;

	if (err)
		return err;
	if (*kind == COMMENT)
		return n ? skip_blocks(r) : 0;
	if (*kind == CONTROL && n)
		err = read_control(block, n, y);
	else if (*kind == APPLICATION && n >= 11 &&
		 !memcmp(block, "NETSCAPE2.0", 11))
		err = take_block(r, &block, &n);
	return err ? err : skip_blocks(r);
}

/* A palette of 2 to the power of bits colours, if it isn't the greys'. */
static int read_palette(struct reader *r, unsigned bits,
			struct tsi_gif_layout *y)
{
	size_t at = r->at;
	const uint8_t *p = take(r, (size_t)3 << bits);

	if (!p)
		return TSOCK_EAGAIN;
	for (unsigned i = 0; i < 1u << bits; i++)
		if (p[3 * i] != i || p[3 * i + 1] != i || p[3 * i + 2] != i) {
			y->palette = at;
			y->colours = 1u << bits;
			return 0;
		}
	return 0;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int read_image(struct reader *r, struct tsi_gif_layout *y)
{
	const uint8_t *p = take(r, IMAGE), *bits;
	int err = 0;

	if (!p)
		return TSOCK_EAGAIN;
	y->image = (struct tsi_rect){
		.left = le16(p),
		.top = le16(p + 2),
		.width = le16(p + 4),
		.height = le16(p + 6),
	};
	if (!y->image.width || !y->image.height)
		return bad("its first image is empty");
	y->width = most(y->width, y->image.left + y->image.width);
	y->height = most(y->height, y->image.top + y->image.height);
	y->interlaced = p[8] & 64;
	if (p[8] & 128)
		err = read_palette(r, (p[8] & 7u) + 1, y);
	bits = err ? NULL : take(r, 1);
	if (!bits)
		return TSOCK_EAGAIN;
	if (*bits > 8)
		return bad("its pixels have more than 8 bits");
	y->bits = *bits;
	y->codes = r->at;
	return 0;
}

/* The screen's size, and the palette of images that have none. */
static int read_screen(struct reader *r, struct tsi_gif_layout *y)
{
	const uint8_t *p = take(r, SCREEN);

	if (!p)
		return TSOCK_EAGAIN;
	*y = (struct tsi_gif_layout){
		.width = le16(p + 6),
		.height = le16(p + 8),
		.clear = -1,
	};
	return p[10] & 128 ? read_palette(r, (p[10] & 7u) + 1, y) : 0;
}

int tsi_gif_parse(const uint8_t *data, size_t len, struct tsi_gif_layout *out)
{
	struct reader r = { data, len, 0 };
	struct tsi_gif_layout y;
	int err = read_screen(&r, &y);

	while (!err) {
		const uint8_t *what = take(&r, 1);

		if (!what)
			return TSOCK_EAGAIN;
		if (*what == END)
			return bad("there is no image in it");
		if (*what == EXTENSION)
			err = read_extension(&r, &y);
		if (*what != IMAGE_BEGINS)
			continue;
		err = read_image(&r, &y);
		if (!err)
			*out = y;
		return err;
	}
	return err;
}
