/*
 * png.c - the one file of the producer that includes png.h.
 *
 * libpng has no way to use a decoder twice, so each image makes its own; PNG
 * files are rare in photo sets.  Rows are unpacked one after the other and
 * rows below the rectangle are not read, but for interlaced files, which are
 * unpacked whole.  Errors come back by longjmp to the entry points at the end.
 */
#include "image/png.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/err.h"
#include "image/image.h"

#define STRIP_BYTES ((size_t)1 << 22)

struct tsi_png {
	png_structp png;
	png_infop info;
	const uint8_t *data;
	size_t left;
	bool truncated;
	bool no_memory;
	char text[128];
	struct tsi_rect rect;
	uint32_t next; /* row to decode, or to give if interlaced */
	uint32_t done; /* rows decoded, of the rectangle */
	bool interlaced;
	uint8_t *pixels;
	size_t pixels_len;
	png_bytep *rows; /* interlaced only */
	size_t stride;
	uint32_t strip_rows;
};

static void on_error(png_structp png, png_const_charp text)
{
	struct tsi_png *p = png_get_error_ptr(png);

	snprintf(p->text, sizeof(p->text), "%s", text);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void on_read(png_structp png, png_bytep to, size_t len)
{
	struct tsi_png *p = png_get_io_ptr(png);

	if (len > p->left) {
		p->truncated = true;
		png_error(png, "truncated");
	}
	memcpy(to, p->data, len);
	p->data += len;
	p->left -= len;
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

static int failed(struct tsi_png *p)
{
	drop(p);
	if (p->no_memory)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a PNG");
	if (p->truncated)
		return tsi_err(TSOCK_EDATA, "PNG is truncated: its data ends "
					    "above the last row needed");
	return tsi_err(TSOCK_EDATA, "bad PNG: %s", p->text);
}

static void read_header(struct tsi_png *p)
{
	png_structp png = p->png;

	png_set_read_fn(png, p, on_read);
	/* Only the pixels matter: no profile, text, gamma or transparency. */
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER,
				    (png_const_bytep) "tRNS", 1);
	/* Pillow doesn't look at the check sums of pixel data. */
	png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
	png_set_user_limits(png, TSI_IMAGE_EDGE_MAX, TSI_IMAGE_EDGE_MAX);
	png_read_info(png, p->info);
}

static void set_transforms(struct tsi_png *p)
{
	png_structp png = p->png;
	int type = png_get_color_type(png, p->info);

	if (png_get_bit_depth(png, p->info) == 16)
		png_error(png, "16 bits per channel are not supported");
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	if (type == PNG_COLOR_TYPE_GRAY)
		png_set_expand_gray_1_2_4_to_8(png);
	if (!(type & PNG_COLOR_MASK_COLOR))
		png_set_gray_to_rgb(png);
	/* The fourth byte is nobody's: alpha may stay there. */
	if (!(type & PNG_COLOR_MASK_ALPHA))
		png_set_filler(png, 0xff, PNG_FILLER_AFTER);
	p->interlaced = png_set_interlace_handling(png) > 1;
	png_read_update_info(png, p->info);
}

/*
 * An interlaced image is unpacked whole, at four bytes a pixel.  Else it is
 * rows: three of libpng's own, with up to eight bytes a pixel, and the strip.
 */
static uint64_t need(struct tsi_png *p)
{
	uint64_t width = png_get_image_width(p->png, p->info);
	uint64_t height = png_get_image_height(p->png, p->info);
	uint64_t bytes = 24 * width + STRIP_BYTES + 4 * width;

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

static void read_interlaced(struct tsi_png *p)
{
	uint32_t height = png_get_image_height(p->png, p->info);

	reserve(p, height);
	p->rows = malloc(height * sizeof(*p->rows));
	if (!p->rows)
		out_of_memory(p);
	for (uint32_t i = 0; i < height; i++)
		p->rows[i] = p->pixels + i * p->stride;
	png_read_image(p->png, p->rows);
	p->next = p->rect.top;
}

static void begin(struct tsi_png *p, const struct tsi_rect *rect)
{
	set_transforms(p);
	p->rect = *rect;
	p->done = 0;
	p->stride = ((size_t)png_get_rowbytes(p->png, p->info) + TSI_ROW_SLACK +
		     63) /
		    64 * 64;
	p->strip_rows = TSI_STRIP_ROWS;
	if (p->interlaced) {
		read_interlaced(p);
		return;
	}
	while (p->strip_rows > 1 && p->strip_rows * p->stride > STRIP_BYTES)
		p->strip_rows /= 2;
	reserve(p, p->strip_rows);
	for (p->next = 0; p->next < rect->top; p->next++)
		png_read_row(p->png, p->pixels, NULL);
}

static void read_strip(struct tsi_png *p, struct tsi_strip *strip)
{
	uint32_t n = p->rect.top + p->rect.height - p->next;

	strip->pixels = p->pixels + (size_t)p->rect.left * 4;
	strip->stride = p->stride;
	if (n > p->strip_rows)
		n = p->strip_rows;
	if (p->interlaced)
		strip->pixels += p->next * p->stride;
	else
		for (uint32_t i = 0; i < n; i++, p->done++)
			png_read_row(p->png, p->pixels + i * p->stride, NULL);
	strip->rows = n;
	p->next += n;
}

int tsi_png_create(struct tsi_png **out)
{
	struct tsi_png *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a PNG decoder");
	*out = p;
	return 0;
}

void tsi_png_destroy(struct tsi_png *p)
{
	if (!p)
		return;
	drop(p);
	free(p->pixels);
	free(p);
}

int tsi_png_open(struct tsi_png *p, const void *data, size_t len,
		 uint32_t *width, uint32_t *height)
{
	drop(p);
	p->data = data;
	p->left = len;
	p->truncated = false;
	p->no_memory = false;
	p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_error,
					on_warning);
	if (p->png)
		p->info = png_create_info_struct(p->png);
	if (!p->info) {
		p->no_memory = true;
		return failed(p);
	}
	if (setjmp(png_jmpbuf(p->png)))
		return failed(p);
	read_header(p);
	*width = png_get_image_width(p->png, p->info);
	*height = png_get_image_height(p->png, p->info);
	return 0;
}

uint64_t tsi_png_need(struct tsi_png *p)
{
	return need(p);
}

void tsi_png_close(struct tsi_png *p)
{
	drop(p);
}

int tsi_png_begin(struct tsi_png *p, const struct tsi_rect *rect)
{
	if (setjmp(png_jmpbuf(p->png)))
		return failed(p);
	begin(p, rect);
	return 0;
}

int tsi_png_read(struct tsi_png *p, struct tsi_strip *strip)
{
	if (setjmp(png_jmpbuf(p->png)))
		return failed(p);
	read_strip(p, strip);
	return 0;
}

uint32_t tsi_png_rows(const struct tsi_png *p)
{
	return p->interlaced ? p->next : p->done;
}
