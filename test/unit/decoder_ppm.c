/* SPDX-License-Identifier: MIT */
/*
 * decoder_ppm.c - an image format for tests: PPM of one kind, and row by row.
 *
 * A file is "P6 WIDTH HEIGHT 255", a newline, and three bytes a pixel.  This is
 * all that a new format takes; nothing in producer/ knows of it.
 */
#include "decoder_ppm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct ppm {
	struct tsi_decoder base;
	const uint8_t *pixels;
	size_t len; /* bytes of pixels that are there */
	uint32_t width, height;
	struct tsi_rect rect;
	uint32_t next; /* row of the rectangle */
	uint8_t *strip;
};

static struct ppm *ppm_of(struct tsi_decoder *d)
{
	return (struct ppm *)d;
}

static bool claims(const uint8_t *data, size_t len)
{
	return len >= 3 && !memcmp(data, "P6 ", 3);
}

/* Length of the first line, with its newline; 0: it isn't all there. */
static size_t line_of(const uint8_t *data, size_t len)
{
	const uint8_t *end = memchr(data, '\n', len);

	return end ? (size_t)(end - data) + 1 : 0;
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	size_t n = line_of(data, len);
	char text[40];

	if (!n)
		return TSOCK_EAGAIN;
	snprintf(text, sizeof(text), "%.*s", (int)n, (const char *)data);
	if (sscanf(text, "P6 %" SCNu32 " %" SCNu32 " 255", width, height) != 2)
		return tsi_err(TSOCK_EDATA, "PPM: no size");
	return 0;
}

static int create(struct tsi_decoder **out)
{
	struct ppm *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a PPM decoder");
	p->base.ops = &tsi_ppm_ops;
	*out = &p->base;
	return 0;
}

static void drop_strip(struct tsi_decoder *d)
{
	free(ppm_of(d)->strip);
	ppm_of(d)->strip = NULL;
}

static void destroy(struct tsi_decoder *d)
{
	if (d)
		drop_strip(d);
	free(d);
}

static int open_file(struct tsi_decoder *d, const void *data, size_t len,
		     uint32_t *width, uint32_t *height)
{
	struct ppm *p = ppm_of(d);
	int err = head(data, len, width, height);

	if (err)
		return err;
	p->pixels = (const uint8_t *)data + line_of(data, len);
	p->len = len - line_of(data, len);
	p->width = *width;
	p->height = *height;
	return 0;
}

static size_t stride_of(uint32_t width)
{
	return (size_t)width * 4 + TSI_ROW_SLACK;
}

static uint64_t need(struct tsi_decoder *d)
{
	return stride_of(ppm_of(d)->width) * TSI_STRIP_ROWS;
}

static int begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct ppm *p = ppm_of(d);

	p->rect = *rect;
	p->next = 0;
	p->strip = calloc(TSI_STRIP_ROWS, stride_of(rect->width));
	return p->strip ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for a PPM");
}

static int read_strip(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct ppm *p = ppm_of(d);
	size_t stride = stride_of(p->rect.width), row = (size_t)p->width * 3;
	uint32_t n = 0;

	for (; n < TSI_STRIP_ROWS && p->next < p->rect.height; n++, p->next++) {
		size_t at = (p->rect.top + p->next) * row;

		if (at + row > p->len)
			break;
		for (uint32_t x = 0; x < p->rect.width; x++)
			memcpy(p->strip + n * stride + (size_t)x * 4,
			       p->pixels + at + (p->rect.left + x) * 3, 3);
	}
	if (!n)
		return tsi_err(TSOCK_EDATA, "PPM: it ends after row %u",
			       p->next);
	*strip = (struct tsi_strip){ .pixels = p->strip,
				     .stride = stride,
				     .rows = n };
	return 0;
}

static uint32_t rows(const struct tsi_decoder *d)
{
	return ((const struct ppm *)d)->next;
}

const struct tsi_decoder_ops tsi_ppm_ops = {
	.name = "PPM",
	.claims = claims,
	.head = head,
	.create = create,
	.destroy = destroy,
	.open = open_file,
	.need = need,
	.begin = begin,
	.read = read_strip,
	.rows = rows,
	.close = drop_strip,
};
