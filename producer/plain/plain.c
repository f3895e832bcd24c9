/* SPDX-License-Identifier: MIT */
/*
 * plain.c - rows of a file's own pixels to strips.
 */
#include "plain/plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct plain {
	struct tsi_decoder base;
	tsi_plain_parse *parse;
	struct tsi_plain_layout layout;
	const uint8_t *data;
	struct tsi_rect rect;
	uint32_t next; /* row of rect to give */
	uint8_t *strip;
	size_t strip_len;
};

static struct plain *plain_of(struct tsi_decoder *d)
{
	return (struct plain *)d;
}

int tsi_plain_create(const struct tsi_decoder_ops *ops, tsi_plain_parse *parse,
		     struct tsi_decoder **out)
{
	struct plain *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a %s decoder",
			       ops->name);
	p->base.ops = ops;
	p->parse = parse;
	*out = &p->base;
	return 0;
}

void tsi_plain_destroy(struct tsi_decoder *d)
{
	if (!d)
		return;
	free(plain_of(d)->strip);
	free(d);
}

/* Does the file have its last row, but for what pads it? */
static bool is_whole(const struct tsi_plain_layout *y, size_t len)
{
	uint64_t rows = (uint64_t)(y->height - 1) * y->stride;

	return y->at <= len &&
	       rows + (uint64_t)y->width * y->bytes <= len - y->at;
}

int tsi_plain_open(struct tsi_decoder *d, const void *data, size_t len,
		   uint32_t *width, uint32_t *height)
{
	struct plain *p = plain_of(d);
	struct tsi_plain_layout *y = &p->layout;
	int err = p->parse(data, len, y);

	if (!err && y->height && !is_whole(y, len))
		err = TSOCK_EAGAIN;
	if (err == TSOCK_EAGAIN)
		return tsi_err(
			TSOCK_EDATA,
			"bad %s: truncated: it has %zu bytes, fewer than "
			"its pixels",
			d->ops->name, len);
	if (err)
		return err;
	p->data = data;
	*width = y->width;
	*height = y->height;
	return 0;
}

static size_t stride_of(uint32_t width)
{
	return (size_t)width * 4;
}

static size_t strip_bytes(uint32_t width)
{
	return TSI_STRIP_ROWS * stride_of(width) + TSI_ROW_SLACK;
}

uint64_t tsi_plain_need(struct tsi_decoder *d)
{
	return strip_bytes(plain_of(d)->layout.width);
}

int tsi_plain_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct plain *p = plain_of(d);
	size_t len = strip_bytes(rect->width);

	p->rect = *rect;
	p->next = 0;
	if (len <= p->strip_len)
		return 0;
	free(p->strip);
	p->strip_len = 0;
	p->strip = malloc(len);
	if (!p->strip)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a %s",
			       d->ops->name);
	p->strip_len = len;
	return 0;
}

static void put(uint8_t *to, uint8_t red, uint8_t green, uint8_t blue)
{
	to[0] = red;
	to[1] = green;
	to[2] = blue;
	to[3] = 255;
}

static void look_up_row(const struct tsi_plain_layout *y, const uint8_t *from,
			uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++, to += 4) {
		const uint8_t *c = y->table[from[x]];

		put(to, c[0], c[1], c[2]);
	}
}

static void copy_row(const struct tsi_plain_layout *y, const uint8_t *from,
		     uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++, from += y->bytes, to += 4)
		put(to, from[y->red], from[y->green], from[y->blue]);
}

static void scale_row(const struct tsi_plain_layout *y, const uint8_t *from,
		      uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++, from += y->bytes, to += 4)
		put(to, y->table[from[y->red]][0], y->table[from[y->green]][0],
		    y->table[from[y->blue]][0]);
}

/* Row y of the image, from the rectangle's left edge on. */
static const uint8_t *row_at(const struct plain *p, uint32_t y)
{
	const struct tsi_plain_layout *l = &p->layout;
	uint64_t row = l->bottom_up ? l->height - 1 - y : y;

	return p->data + l->at + row * l->stride +
	       (uint64_t)p->rect.left * l->bytes;
}

int tsi_plain_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct plain *p = plain_of(d);
	const struct tsi_plain_layout *y = &p->layout;
	uint32_t left = p->rect.height - p->next;
	uint32_t n = left < TSI_STRIP_ROWS ? left : TSI_STRIP_ROWS;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *from = row_at(p, p->rect.top + p->next + i);
		uint8_t *to = p->strip + i * stride_of(p->rect.width);

		if (y->bytes == 1)
			look_up_row(y, from, p->rect.width, to);
		else if (y->tabled)
			scale_row(y, from, p->rect.width, to);
		else
			copy_row(y, from, p->rect.width, to);
	}
	p->next += n;
	*strip = (struct tsi_strip){
		.pixels = p->strip,
		.stride = stride_of(p->rect.width),
		.rows = n,
	};
	return 0;
}

uint32_t tsi_plain_rows(const struct tsi_decoder *d)
{
	return ((const struct plain *)d)->next;
}

void tsi_plain_close(struct tsi_decoder *d)
{
	struct plain *p = plain_of(d);

	p->data = NULL;
	if (p->strip_len <= TSI_SCRATCH_KEEP)
		return;
	free(p->strip);
	p->strip = NULL;
	p->strip_len = 0;
}
