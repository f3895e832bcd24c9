/* SPDX-License-Identifier: MIT */
/*
 * gif.c - the decoder of GIF images: all of an image's numbers first, then
 * rows of colours.
 */
#include "gif/gif.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "gif/lzw.h"

struct gif {
	struct tsi_decoder base;
	struct tsi_gif_layout y;
	const uint8_t *data;
	size_t len;
	struct tsi_rect rect;
	uint32_t next; /* row of rect to give */
	uint8_t table[256][4];
	uint8_t *numbers; /* the image's, row by row as they are in the file */
	size_t numbers_len;
	uint8_t *strip;
	size_t strip_len;
	struct tsi_lzw lzw;
};

static struct gif *gif_of(struct tsi_decoder *d)
{
	return (struct gif *)d;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static bool claims(const uint8_t *data, size_t len)
{
	return len >= 6 &&
	       (!memcmp(data, "GIF87a", 6) || !memcmp(data, "GIF89a", 6));
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	struct tsi_gif_layout y;
	int err = tsi_gif_parse(data, len, &y);

	if (err)
		return err;
	*width = y.width;
	*height = y.height;
	return 0;
}

static int decoder_create(struct tsi_decoder **out)
{
	struct gif *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a GIF decoder");
	p->base.ops = &tsi_gif_ops;
	*out = &p->base;
	return 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	if (!d)
		return;
	free(gif_of(d)->numbers);
	free(gif_of(d)->strip);
	free(d);
}

static void set_table(struct gif *p)
{
	memset(p->table, 0, sizeof(p->table));
	for (unsigned i = 0; i < p->y.colours; i++)
		memcpy(p->table[i], p->data + p->y.palette + (size_t)3 * i, 3);
	for (unsigned i = 0; i < 256 && !p->y.colours; i++)
		memset(p->table[i], (int)i, 3);
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct gif *p = gif_of(d);
	int err = tsi_gif_parse(data, len, &p->y);

	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_EDATA,
			       "bad GIF: truncated before its first image");
	if (err)
		return err;
	p->data = data;
	p->len = len;
	set_table(p);
	*width = p->y.width;
	*height = p->y.height;
	return 0;
}

static uint64_t numbers_bytes(const struct gif *p)
{
	return (uint64_t)p->y.image.width * p->y.image.height;
}

static uint64_t strip_bytes(uint32_t width)
{
	return (uint64_t)TSI_STRIP_ROWS * width * 4 + TSI_ROW_SLACK;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	const struct gif *p = gif_of(d);

	return numbers_bytes(p) + strip_bytes(p->y.width);
}

static int reserve(uint8_t **p, size_t *have, uint64_t len)
{
	if (len <= *have)
		return 0;
	free(*p);
	*have = 0;
	*p = malloc(len);
	if (!*p)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a GIF");
	*have = len;
	return 0;
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct gif *p = gif_of(d);
	int err = reserve(&p->numbers, &p->numbers_len, numbers_bytes(p));

	if (!err)
		err = reserve(&p->strip, &p->strip_len,
			      strip_bytes(rect->width));
	if (err)
		return err;
	p->rect = *rect;
	p->next = 0;
	return tsi_lzw_decode(&p->lzw, p->data + p->y.codes,
			      p->len - p->y.codes, p->y.bits, p->numbers,
			      numbers_bytes(p));
}

/* Where row y of an interlaced image of so many rows is in the file. */
static uint32_t interlaced_row(uint32_t y, uint32_t rows)
{
	uint32_t eighths = (rows + 7) / 8, fourths = (rows + 3) / 8;

	if (y % 8 == 0)
		return y / 8;
	if (y % 8 == 4)
		return eighths + y / 8;
	if (y % 4 == 2)
		return eighths + fourths + y / 4;
	return (rows + 1) / 2 + y / 2;
}

/* Row y of the screen, of which the rectangle has a part. */
static void put_row(const struct gif *p, uint32_t y, uint8_t *to)
{
	const struct tsi_rect *image = &p->y.image, *r = &p->rect;
	uint32_t from = most(r->left, image->left);
	uint32_t end = least(r->left + r->width, image->left + image->width);
	uint32_t row = y - image->top;
	const uint8_t *numbers, *ground;

	ground = p->table[p->y.clear < 0 ? 0 : p->y.clear];
	for (uint32_t x = 0; x < r->width; x++)
		memcpy(to + (size_t)x * 4, ground, 4);
	if (y < image->top || row >= image->height)
		return;
	if (p->y.interlaced)
		row = interlaced_row(row, image->height);
	numbers = p->numbers + (size_t)row * image->width;
	for (uint32_t x = from; x < end; x++)
		memcpy(to + (size_t)(x - r->left) * 4,
		       p->table[numbers[x - image->left]], 4);
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct gif *p = gif_of(d);
	uint32_t n = least(TSI_STRIP_ROWS, p->rect.height - p->next);
	size_t stride = (size_t)p->rect.width * 4;

	for (uint32_t i = 0; i < n; i++)
		put_row(p, p->rect.top + p->next + i, p->strip + i * stride);
	p->next += n;
	*strip = (struct tsi_strip){
		.pixels = p->strip,
		.stride = stride,
		.rows = n,
	};
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	return ((const struct gif *)d)->next;
}

static void decoder_close(struct tsi_decoder *d)
{
	struct gif *p = gif_of(d);

	p->data = NULL;
	if (p->numbers_len + p->strip_len <= TSI_SCRATCH_KEEP)
		return;
	free(p->numbers);
	free(p->strip);
	p->numbers = NULL;
	p->strip = NULL;
	p->numbers_len = 0;
	p->strip_len = 0;
}

const struct tsi_decoder_ops tsi_gif_ops = {
	.name = "GIF",
	.claims = claims,
	.head = head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};
