/* SPDX-License-Identifier: MIT */
/*
 * file.c - which PNG files are whole, as Pillow sees it.  The one file that
 * includes zlib.h.
 */
#include "png/file.h"
#include "png/png.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

/* What Pillow hands to zlib at once. */
#define PIECE 65536u

struct chunk {
	const uint8_t *name;
	const uint8_t *data;
	uint32_t len; /* as it says; there may be less */
};

static const char truncated[] =
	"truncated: its data ends above the last row needed";

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static bool is(const struct chunk *c, const char *name)
{
	return memcmp(c->name, name, 4) == 0;
}

static const char *chunk_at(const struct tsi_png_file *f, size_t at,
			    struct chunk *c)
{
	if (at > f->len || f->len - at < 8)
		return truncated;
	c->len = be32(f->data + at);
	c->name = f->data + at + 4;
	c->data = f->data + at + 8;
	for (int i = 0; i < 4; i++) {
		unsigned b = c->name[i], letter = b | 32;

		if (!(letter >= 'a' && letter <= 'z') &&
		    !(b >= '0' && b <= '9') && b != '_')
			return "a chunk has no name";
	}
	return NULL;
}

static const char *use_header(struct tsi_png_file *f, const struct chunk *c)
{
	if (c->len < 13)
		return "its header is too short";
	f->width = be32(c->data);
	f->height = be32(c->data + 4);
	f->depth = c->data[8];
	f->type = c->data[9];
	f->interlaced = c->data[12] != 0;
	return c->data[11] ? "its filter method is unknown" : NULL;
}

static const char *use_palette(struct tsi_png_file *f, const struct chunk *c)
{
	if (f->type != 3)
		return NULL;
	if (c->len / 3 > 256)
		return "its palette has more than 256 colours";
	memset(f->palette, 0, sizeof(f->palette));
	memcpy(f->palette, c->data, c->len / 3 * 3);
	return NULL;
}

/* Chunks that Pillow looks into, and refuses when they are too short. */
static const char *use_chunk(struct tsi_png_file *f, const struct chunk *c)
{
	static const struct {
		char name[5];
		uint32_t least;
	} known[] = { { "gAMA", 4 }, { "cHRM", 32 }, { "sRGB", 1 },
		      { "pHYs", 9 }, { "acTL", 8 },  { "fcTL", 26 } };

	if (is(c, "IHDR"))
		return use_header(f, c);
	if (is(c, "PLTE"))
		return use_palette(f, c);
	if (is(c, "tRNS") &&
	    ((f->type == 0 && c->len < 2) || (f->type == 2 && c->len < 6)))
		return "its tRNS chunk is too short";
	if (is(c, "IEND") || is(c, "fdAT"))
		return "there are no pixels";
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (is(c, known[i].name) && c->len < known[i].least)
			return "a chunk is too short";
	return NULL;
}

/* Cyclic redundancy of name and data, which lie side by side. */
static bool sum_is_right(const struct chunk *c)
{
	uLong crc = crc32(0, c->name, 4);

	crc = crc32(crc, c->data, c->len);
	return crc == be32(c->data + c->len);
}

const char *tsi_png_file_open(const void *data, size_t len,
			      struct tsi_png_file *out)
{
	struct tsi_png_file f = { .data = data, .len = len };
	size_t at = 8;

	for (;;) {
		struct chunk c;
		const char *why = chunk_at(&f, at, &c);

		if (why)
			return why;
		if (is(&c, "IDAT"))
			break;
		/* Its data and its check sum have to be there. */
		if (len - at - 8 < 4 || len - at - 12 < c.len)
			return truncated;
		why = use_chunk(&f, &c);
		if (why)
			return why;
		if (!sum_is_right(&c))
			return "a check sum is wrong before the pixels";
		at += 12 + (size_t)c.len;
	}
	f.pixels = at;
	*out = f;
	return NULL;
}

/* ------------------------------------------------------------------------
 * The head, written anew
 */

static uint8_t *put_bytes(uint8_t *to, const void *data, size_t len)
{
	memcpy(to, data, len);
	return to + len;
}

static uint8_t *put_be32(uint8_t *to, uint32_t v)
{
	uint8_t b[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16),
			 (uint8_t)(v >> 8), (uint8_t)v };

	return put_bytes(to, b, sizeof(b));
}

size_t tsi_png_file_rewrite(const struct tsi_png_file *f, uint8_t *to)
{
	const uint8_t kind[5] = { (uint8_t)f->depth, (uint8_t)f->type, 0, 0,
				  f->interlaced };
	uint32_t colours = 1u << (f->depth & 15);
	uint8_t *p = put_bytes(to, tsi_png_magic, sizeof(tsi_png_magic));

	p = put_be32(p, 13);
	p = put_bytes(p, "IHDR", 4);
	p = put_be32(p, f->width);
	p = put_be32(p, f->height);
	p = put_bytes(p, kind, sizeof(kind));
	p = put_be32(p, 0);
	if (f->type != 3 || colours > 256)
		return (size_t)(p - to);
	p = put_be32(p, 3 * colours);
	p = put_bytes(p, "PLTE", 4);
	p = put_bytes(p, f->palette, (size_t)3 * colours);
	p = put_be32(p, 0);
	return (size_t)(p - to);
}

/* ------------------------------------------------------------------------
 * Pixels
 */

/* The rows still to come: of the image, or of one pass after another. */
struct rows {
	const struct tsi_png_file *f;
	unsigned pass;
	uint32_t y;
	size_t bytes; /* of a row, less the filter's */
	uint64_t done;
};

static const uint8_t first_x[7] = { 0, 4, 0, 2, 0, 1, 0 };
static const uint8_t step_x[7] = { 8, 8, 4, 4, 2, 2, 1 };
static const uint8_t first_y[7] = { 0, 0, 4, 0, 2, 0, 1 };
static const uint8_t step_y[7] = { 8, 8, 8, 4, 4, 2, 2 };

static size_t row_bytes(const struct rows *r)
{
	static const unsigned channels[7] = { 1, 0, 3, 1, 2, 0, 4 };
	uint64_t width = r->f->width;

	if (r->f->interlaced) {
		unsigned first = first_x[r->pass], step = step_x[r->pass];

		width = width > first ? (width - first + step - 1) / step : 0;
	}
	return (size_t)((width * channels[r->f->type] * r->f->depth + 7) / 8);
}

/* On to the next row; false: that was the last one. */
static bool next_row(struct rows *r)
{
	r->done++;
	if (!r->f->interlaced)
		return ++r->y < r->f->height;
	r->y += step_y[r->pass];
	while (r->y >= r->f->height || !r->bytes) {
		if (++r->pass == 7)
			return false;
		r->y = first_y[r->pass];
		r->bytes = row_bytes(r);
	}
	return true;
}

/* The pixels' data, piece by piece, as Pillow reads it out of the chunks. */
struct pieces {
	const struct tsi_png_file *f;
	size_t at;     /* of the next byte */
	uint32_t left; /* in this chunk, as it says */
};

static const char *next_piece(struct pieces *p, z_stream *z)
{
	size_t n;

	while (p->left == 0) {
		struct chunk c;
		const char *why;

		/* Behind the check sum. */
		p->at += 4;
		why = chunk_at(p->f, p->at, &c);
		if (!why && !is(&c, "IDAT") && !is(&c, "DDAT"))
			why = truncated;
		if (why)
			return why;
		p->at += 8;
		p->left = c.len;
	}
	n = p->left < PIECE ? p->left : PIECE;
	p->left -= (uint32_t)n;
	if (n > p->f->len - p->at)
		n = p->f->len - p->at;
	z->next_in = (Bytef *)(uintptr_t)(p->f->data + p->at);
	z->avail_in = (uInt)n;
	p->at += n;
	return n ? NULL : truncated;
}

/* A piece's rows; *end when nothing more is wanted. */
static const char *inflate_piece(struct rows *r, z_stream *z, uint8_t *row,
				 size_t *have, bool *end)
{
	while (z->avail_in > 0) {
		int err;

		z->next_out = row + *have;
		z->avail_out = (uInt)(r->bytes + 1 - *have);
		err = inflate(z, Z_NO_FLUSH);
		if (err < 0)
			return "its compressed data is damaged";
		*have = r->bytes + 1 - z->avail_out;
		if (z->avail_out > 0)
			break;
		if (row[0] > 4)
			return "a row's filter is unknown";
		*have = 0;
		if (!next_row(r) || err == Z_STREAM_END) {
			*end = true;
			break;
		}
	}
	return NULL;
}

static const char *inflate_all(struct rows *r, z_stream *z, uint8_t *row)
{
	struct chunk c;
	struct pieces p = { .f = r->f, .at = r->f->pixels };
	const char *why = chunk_at(r->f, p.at, &c);
	size_t have = 0;
	bool end = false;

	if (why)
		return why;
	p.at += 8;
	p.left = c.len;
	while (!why && !end) {
		why = next_piece(&p, z);
		if (!why)
			why = inflate_piece(r, z, row, &have, &end);
	}
	return why;
}

const char *tsi_png_file_check(const struct tsi_png_file *f, uint64_t *rows,
			       bool *no_memory)
{
	struct rows r = { .f = f };
	z_stream z = { 0 };
	const char *why;
	uint8_t *row;

	r.bytes = row_bytes(&r);
	/* Four channels of two bytes, and the filter. */
	row = malloc(8 * (size_t)f->width + 1);
	if (!row || inflateInit(&z) != Z_OK) {
		free(row);
		*no_memory = true;
		return "no memory";
	}
	why = inflate_all(&r, &z, row);
	inflateEnd(&z);
	free(row);
	*rows = r.done;
	return why;
}

const char *tsi_png_file_zlib(void)
{
	return zlibVersion();
}
