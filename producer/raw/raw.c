/* SPDX-License-Identifier: MIT */
/*
 * raw.c - a decoder of pixels: three planes are handed on as they are, all else
 * is copied to four bytes a pixel.
 */
#include "raw/raw.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define MAGIC "tsock raw pixels"
#define MAGIC_LEN 16

#define EDGE_MAX 65535

struct head {
	char magic[MAGIC_LEN];
	uint32_t height, width, channels;
	uint32_t planar; /* a file's may be anything, which a bool may not */
};

_Static_assert(sizeof(struct head) <= TSI_RAW_HEAD, "it has room");

struct raw {
	struct tsi_decoder base;
	struct tsi_raw_shape shape;
	const uint8_t *pixels;
	struct tsi_rect rect;
	uint32_t next; /* row of the rectangle */
	uint8_t *strip;
	size_t room; /* bytes of the strip */
};

size_t tsi_raw_bytes(const struct tsi_raw_shape *s)
{
	if (!s->height || !s->width || s->height > EDGE_MAX ||
	    s->width > EDGE_MAX || (s->channels != 1 && s->channels != 3))
		return 0;
	return (size_t)s->height * s->width * s->channels;
}

void tsi_raw_put_head(const struct tsi_raw_shape *s, uint8_t *to)
{
	struct head h;

	memset(&h, 0, sizeof(h));
	memcpy(h.magic, MAGIC, MAGIC_LEN);
	h.height = s->height;
	h.width = s->width;
	h.channels = s->channels;
	h.planar = s->planar;
	memset(to, 0, TSI_RAW_HEAD);
	memcpy(to, &h, sizeof(h));
}

static struct raw *raw_of(struct tsi_decoder *d)
{
	return (struct raw *)d;
}

static bool claims(const uint8_t *data, size_t len)
{
	return len >= MAGIC_LEN && !memcmp(data, MAGIC, MAGIC_LEN);
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	struct head h;

	if (len < sizeof(h))
		return TSOCK_EAGAIN;
	memcpy(&h, data, sizeof(h));
	*width = h.width;
	*height = h.height;
	return 0;
}

static int create(struct tsi_decoder **out)
{
	struct raw *r = calloc(1, sizeof(*r));

	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory for a decoder");
	r->base.ops = &tsi_raw_ops;
	*out = &r->base;
	return 0;
}

static void destroy(struct tsi_decoder *d)
{
	if (!d)
		return;
	free(raw_of(d)->strip);
	free(d);
}

static int open_pixels(struct tsi_decoder *d, const void *data, size_t len,
		       uint32_t *width, uint32_t *height)
{
	struct raw *r = raw_of(d);
	struct head h;
	size_t bytes;

	if (len < TSI_RAW_HEAD)
		return tsi_err(TSOCK_EDATA, "raw pixels have no head");
	memcpy(&h, data, sizeof(h));
	r->shape = (struct tsi_raw_shape){
		.height = h.height,
		.width = h.width,
		.channels = h.channels,
		.planar = h.planar != 0,
	};
	bytes = tsi_raw_bytes(&r->shape);
	if (!bytes || len - TSI_RAW_HEAD < bytes)
		return tsi_err(TSOCK_EDATA, "raw pixels end after %zu bytes",
			       len - TSI_RAW_HEAD);
	r->pixels = (const uint8_t *)data + TSI_RAW_HEAD;
	d->has_planes = r->shape.planar && r->shape.channels == 3;
	*width = r->shape.width;
	*height = r->shape.height;
	return 0;
}

static size_t strip_bytes(const struct raw *r)
{
	return (size_t)TSI_STRIP_ROWS * r->shape.width * 4 + TSI_ROW_SLACK;
}

static uint64_t need(struct tsi_decoder *d)
{
	return strip_bytes(raw_of(d));
}

static int begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct raw *r = raw_of(d);
	size_t want = strip_bytes(r);

	r->rect = *rect;
	r->next = 0;
	if (d->planes || want <= r->room)
		return 0;
	free(r->strip);
	r->room = 0;
	r->strip = malloc(want);
	if (!r->strip)
		return tsi_err(TSOCK_ENOMEM, "no memory for rows of pixels");
	r->room = want;
	return 0;
}

/* Row y from column x on, as four bytes a pixel. */
static void put_row(const struct raw *r, uint32_t y, uint8_t *restrict to)
{
	const struct tsi_raw_shape *s = &r->shape;
	size_t plane = (size_t)s->width * s->height;
	size_t at = (size_t)y * s->width + r->rect.left;
	const uint8_t *from = r->pixels + at * (s->planar ? 1 : s->channels);
	/* From one channel's byte to the next one's, and to the next pixel. */
	size_t across = s->channels == 1 ? 0 : s->planar ? plane : 1;
	size_t along = s->planar ? 1 : s->channels;

	for (uint32_t i = 0; i < r->rect.width; i++, from += along, to += 4) {
		to[0] = from[0];
		to[1] = from[across];
		to[2] = from[2 * across];
		to[3] = 255;
	}
}

static int read_rows(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct raw *r = raw_of(d);
	uint32_t left = r->rect.height - r->next;
	uint32_t rows = left < TSI_STRIP_ROWS ? left : TSI_STRIP_ROWS;
	uint32_t y = r->rect.top + r->next;
	size_t plane = (size_t)r->shape.width * r->shape.height;

	*strip = (struct tsi_strip){ .rows = rows };
	if (d->planes) {
		strip->pixels =
			r->pixels + (size_t)y * r->shape.width + r->rect.left;
		strip->stride = r->shape.width;
		strip->plane = plane;
	} else {
		strip->pixels = r->strip;
		strip->stride = (size_t)r->rect.width * 4;
		for (uint32_t k = 0; k < rows; k++)
			put_row(r, y + k, r->strip + k * strip->stride);
	}
	r->next += rows;
	return 0;
}

static uint32_t rows_given(const struct tsi_decoder *d)
{
	return ((const struct raw *)d)->next;
}

static void close_pixels(struct tsi_decoder *d)
{
	struct raw *r = raw_of(d);

	r->pixels = NULL;
	if (r->room <= TSI_SCRATCH_KEEP)
		return;
	free(r->strip);
	r->strip = NULL;
	r->room = 0;
}

const struct tsi_decoder_ops tsi_raw_ops = {
	.name = "raw pixels",
	.internal = true,
	.claims = claims,
	.head = head,
	.create = create,
	.destroy = destroy,
	.open = open_pixels,
	.need = need,
	.begin = begin,
	.read = read_rows,
	.rows = rows_given,
	.close = close_pixels,
};
