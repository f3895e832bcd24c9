/* SPDX-License-Identifier: MIT */
/*
 * png.c - the one file of the producer that includes png.h.
 *
 * libpng has no way to use a decoder twice, so each image makes its own; PNG
 * files are rare in photo sets.  Rows are unpacked one after the other and
 * rows below the rectangle are not read, but for interlaced files, which are
 * unpacked whole.  Errors come back by longjmp to the operations at the end.
 */
#include "png/png.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/err.h"
#include "pixel/image.h"
#include "png/file.h"

#define STRIP_BYTES ((size_t)1 << 22)

struct tsi_png {
	struct tsi_decoder base;
	png_structp png;
	png_infop info;
	struct tsi_png_file file;
	uint8_t head[TSI_PNG_HEAD_MAX];
	size_t head_len;
	size_t head_at;
	size_t at;  /* in the file */
	bool doubt; /* libpng said something of the pixels' data */
	bool checked;
	const char *why; /* Pillow refuses it, if it was checked */
	uint64_t there;  /* rows that it has */
	bool ended;      /* all rows from now on are zero */
	bool no_memory;
	char text[128];
	struct tsi_rect rect;
	uint32_t next; /* row to decode, or to give if interlaced */
	uint32_t got;  /* rows decoded */
	bool interlaced;
	uint8_t *pixels;
	size_t pixels_len;
	png_bytep *rows; /* interlaced only */
	size_t stride;
	uint32_t strip_rows;
};

static void on_png_error(png_structp png, png_const_charp text)
{
	struct tsi_png *p = png_get_error_ptr(png);

	snprintf(p->text, sizeof(p->text), "%s", text);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	struct tsi_png *p = png_get_error_ptr(png);

	(void)text;
	p->doubt = true;
}

static void on_read(png_structp png, png_bytep to, size_t len)
{
	struct tsi_png *p = png_get_io_ptr(png);
	size_t head = p->head_len - p->head_at;
	size_t left = p->file.len - p->at;

	if (head > len)
		head = len;
	memcpy(to, p->head + p->head_at, head);
	p->head_at += head;
	to += head;
	len -= head;
	if (left > len)
		left = len;
	memcpy(to, p->file.data + p->at, left);
	p->at += left;
	if (left == len)
		return;
	/* A chunk may be longer than its file, if the pixels aren't. */
	memset(to + left, 0, len - left);
	p->doubt = true;
}

static void out_of_memory(struct tsi_png *p)
{
	p->no_memory = true;
	png_error(p->png, "no memory");
}

static void drop(struct tsi_png *p)
{
	png_destroy_read_struct(&p->png, &p->info, NULL);
	free(p->rows);
	p->rows = NULL;
	if (p->pixels_len > TSI_SCRATCH_KEEP) {
		free(p->pixels);
		p->pixels = NULL;
		p->pixels_len = 0;
	}
}

static int png_failed(struct tsi_png *p)
{
	drop(p);
	if (p->no_memory)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a PNG");
	return tsi_err(TSOCK_EDATA, "bad PNG: %s", p->text);
}

static void read_header(struct tsi_png *p)
{
	png_structp png = p->png;

	png_set_read_fn(png, p, on_read);
	/* The head has none, and Pillow doesn't look at those of pixel data. */
	png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
	png_set_user_limits(png, TSI_IMAGE_EDGE_MAX, TSI_IMAGE_EDGE_MAX);
	png_read_info(png, p->info);
}

/* One byte a pixel; grey of one bit is 0 and 1, of two and four a byte's. */
static void set_numbers(struct tsi_png *p, int type)
{
	if (type == PNG_COLOR_TYPE_GRAY && p->file.depth > 1)
		png_set_expand_gray_1_2_4_to_8(p->png);
	else
		png_set_packing(p->png);
}

/* In place: two bytes a pixel become four of the level, 255 at most. */
static void clip_grey(png_structp png, png_row_infop row, png_bytep data)
{
	(void)png;
	for (size_t x = row->width; x-- > 0;) {
		uint8_t level = data[2 * x] ? 255 : data[2 * x + 1];

		memset(data + 4 * x, level, 4);
	}
}

static void set_colours(struct tsi_png *p, int type)
{
	png_structp png = p->png;

	if (type == PNG_COLOR_TYPE_GRAY && p->file.depth == 16) {
		png_set_read_user_transform_fn(png, clip_grey);
		png_set_user_transform_info(png, NULL, 8, 4);
		return;
	}
	if (p->file.depth == 16)
		png_set_strip_16(png);
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	if (type == PNG_COLOR_TYPE_GRAY)
		png_set_expand_gray_1_2_4_to_8(png);
	if (!(type & PNG_COLOR_MASK_COLOR))
		png_set_gray_to_rgb(png);
	/* The fourth byte is nobody's: alpha may stay there. */
	if (!(type & PNG_COLOR_MASK_ALPHA))
		png_set_filler(png, 0xff, PNG_FILLER_AFTER);
}

static void set_transforms(struct tsi_png *p)
{
	png_structp png = p->png;
	int type = png_get_color_type(png, p->info);

	if (p->base.numbers)
		set_numbers(p, type);
	else
		set_colours(p, type);
	p->interlaced = png_set_interlace_handling(png) > 1;
	png_read_update_info(png, p->info);
}

/*
 * An interlaced image is unpacked whole, at four bytes a pixel.  Else it is
 * rows: three of libpng's own, with up to eight bytes a pixel, one of file.c's,
 * and the strip.
 */
static uint64_t need(const struct tsi_png *p)
{
	uint64_t width = png_get_image_width(p->png, p->info);
	uint64_t height = png_get_image_height(p->png, p->info);
	uint64_t bytes = 32 * width + STRIP_BYTES + 4 * width;

	if (png_get_interlace_type(p->png, p->info) != PNG_INTERLACE_NONE)
		bytes += height * (4 * width + 2 * TSI_ROW_SLACK + 64 +
				   sizeof(png_bytep));
	return bytes;
}

static void reserve(struct tsi_png *p, size_t rows)
{
	size_t len = rows * p->stride + TSI_ROW_SLACK;

	if (len <= p->pixels_len)
		return;
	free(p->pixels);
	p->pixels_len = 0;
	p->pixels = malloc(len);
	if (!p->pixels)
		out_of_memory(p);
	p->pixels_len = len;
}

/* What Pillow shows where there is no data: index 0 of a palette, or black. */
static void blank(const struct tsi_png *p, uint8_t *row)
{
	static const uint8_t black[3];
	bool indexed = p->file.type == PNG_COLOR_TYPE_PALETTE;
	const uint8_t *colour = indexed ? p->file.palette : black;

	if (p->base.numbers) {
		memset(row, 0, p->file.width);
		return;
	}
	for (uint32_t x = 0; x < p->file.width; x++)
		memcpy(row + (size_t)4 * x, colour, 3);
}

static void read_interlaced(struct tsi_png *p)
{
	uint32_t height = p->file.height;

	reserve(p, height);
	p->rows = malloc(height * sizeof(*p->rows));
	if (!p->rows)
		out_of_memory(p);
	for (uint32_t i = 0; i < height; i++) {
		p->rows[i] = p->pixels + i * p->stride;
		blank(p, p->rows[i]);
	}
	p->next = p->rect.top;
	png_read_image(p->png, p->rows);
}

static void read_row(struct tsi_png *p, uint8_t *to)
{
	png_read_row(p->png, to, NULL);
	p->got++;
}

static void prepare_rect(struct tsi_png *p, const struct tsi_rect *rect)
{
	set_transforms(p);
	p->rect = *rect;
	p->stride = ((size_t)png_get_rowbytes(p->png, p->info) + TSI_ROW_SLACK +
		     63) /
		    64 * 64;
	p->strip_rows = TSI_STRIP_ROWS;
	p->next = rect->top;
	if (p->interlaced)
		return;
	while (p->strip_rows > 1 && p->strip_rows * p->stride > STRIP_BYTES)
		p->strip_rows /= 2;
	reserve(p, p->strip_rows);
}

/* The rectangle's first row is the next one, or all of them are there. */
static void skip(struct tsi_png *p)
{
	if (p->interlaced)
		read_interlaced(p);
	else
		while (p->got < p->rect.top)
			read_row(p, p->pixels);
}

static uint32_t strip_size(const struct tsi_png *p)
{
	uint32_t n = p->rect.top + p->rect.height - p->next;

	return n < p->strip_rows ? n : p->strip_rows;
}

/* The strip's rows, from the first that isn't there. */
static void read_strip(struct tsi_png *p)
{
	uint32_t n = strip_size(p);

	while (!p->interlaced && p->got < p->next + n)
		read_row(p, p->pixels + (p->got - p->next) * p->stride);
}

static void blank_strip(struct tsi_png *p)
{
	uint32_t n = strip_size(p), i = 0;

	if (p->got > p->next)
		i = p->got - p->next;
	for (; !p->interlaced && i < n; i++)
		blank(p, p->pixels + i * p->stride);
}

static void give_strip(struct tsi_png *p, struct tsi_strip *strip)
{
	strip->rows = strip_size(p);
	strip->stride = p->stride;
	strip->plane = 0;
	strip->pixels =
		p->pixels + (size_t)p->rect.left * (p->base.numbers ? 1 : 4);
	if (p->interlaced)
		strip->pixels += p->next * p->stride;
	p->next += strip->rows;
}

/* What Pillow makes of it all; NULL, or why it refuses it. */
static const char *second_opinion(struct tsi_png *p)
{
	if (!p->checked)
		p->why = tsi_png_file_check(&p->file, &p->there, &p->no_memory);
	p->checked = true;
	return p->why;
}

/* There are doubts, but libpng gave the rows so far: do they count? */
static int settle_doubt(struct tsi_png *p)
{
	const char *why = second_opinion(p);

	/* Damage below them doesn't matter. */
	if (!why || (!p->interlaced && p->got <= p->there))
		return 0;
	snprintf(p->text, sizeof(p->text), "%s", why);
	return png_failed(p);
}

/*
 * libpng stopped.  Where the data ended in good order before the last row, all
 * rows behind are blank.
 */
static int settle_stop(struct tsi_png *p)
{
	const char *why = p->no_memory ? NULL : second_opinion(p);

	if (p->no_memory)
		return png_failed(p);
	if (why) {
		snprintf(p->text, sizeof(p->text), "%s", why);
		return png_failed(p);
	}
	/* Behind the last row libpng looks for the end of the data. */
	if (p->got + 1 == p->file.height && p->there == p->file.height)
		p->got++;
	if (!p->interlaced && p->got < p->there)
		return png_failed(p);
	p->ended = true;
	return 0;
}

/* Read some rows, and look whether they count. */
static int read_rows(struct tsi_png *p, void (*fn)(struct tsi_png *p))
{
	if (setjmp(png_jmpbuf(p->png)))
		return settle_stop(p);
	if (!p->ended)
		fn(p);
	return p->doubt ? settle_doubt(p) : 0;
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct tsi_png *png_of(struct tsi_decoder *d)
{
	return (struct tsi_png *)d;
}

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_png *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a PNG decoder");
	p->base.ops = &tsi_png_ops;
	*out = &p->base;
	return 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_png *p = png_of(d);

	if (!p)
		return;
	drop(p);
	free(p->pixels);
	free(p);
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_png *p = png_of(d);
	const char *why = tsi_png_file_open(data, len, &p->file);

	drop(p);
	p->no_memory = false;
	p->doubt = false;
	p->checked = false;
	p->ended = false;
	p->got = 0;
	if (why)
		return tsi_err(TSOCK_EDATA, "bad PNG: %s", why);
	if (d->numbers && tsi_png_numbers(p->file.type, p->file.depth))
		return TSOCK_EDATA;
	p->head_len = tsi_png_file_rewrite(&p->file, p->head);
	p->head_at = 0;
	p->at = p->file.pixels;
	p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_png_error,
					on_warning);
	if (p->png)
		p->info = png_create_info_struct(p->png);
	if (!p->info) {
		p->no_memory = true;
		return png_failed(p);
	}
	if (setjmp(png_jmpbuf(p->png)))
		return png_failed(p);
	read_header(p);
	*width = p->file.width;
	*height = p->file.height;
	return 0;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	return need(png_of(d));
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_png *p = png_of(d);

	if (setjmp(png_jmpbuf(p->png)))
		return png_failed(p);
	prepare_rect(p, rect);
	return read_rows(p, skip);
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_png *p = png_of(d);
	int err = read_rows(p, read_strip);

	if (err)
		return err;
	if (p->ended)
		blank_strip(p);
	give_strip(p, strip);
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	const struct tsi_png *p = (const struct tsi_png *)d;

	if (p->interlaced)
		return p->next;
	return p->checked && p->there < p->got ? (uint32_t)p->there : p->got;
}

static void decoder_close(struct tsi_decoder *d)
{
	drop(png_of(d));
}

const struct tsi_decoder_ops tsi_png_ops = {
	.name = "PNG",
	.claims = tsi_png_claims,
	.head = tsi_png_head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};

const char *tsi_png_version(void)
{
	return png_get_libpng_ver(NULL);
}
