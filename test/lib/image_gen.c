/* SPDX-License-Identifier: MIT */
/*
 * image_gen.c - makes image files in memory.
 */
#include "test/lib/image_gen.h"

uint32_t image_gen_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

void image_gen_row(uint64_t *state, uint32_t y, uint8_t *row, uint32_t width,
		   int channels)
{
	for (uint32_t x = 0; x < width * (uint32_t)channels; x++)
		row[x] = (uint8_t)((x * 3 + y * 5) / 4 +
				   image_gen_random(state) % 90);
}

J_COLOR_SPACE image_gen_input(int components)
{
	return components == 1   ? JCS_GRAYSCALE
	       : components == 3 ? JCS_RGB
				 : JCS_CMYK;
}

struct image_gen_bytes image_gen_jpeg(const struct image_gen_jpeg *g)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr err;
	unsigned char *out = NULL;
	unsigned long len = 0;
	uint64_t state = g->seed;
	uint8_t *row = malloc((size_t)g->width * (size_t)g->components);
	JSAMPROW rows[1] = { row };

	c.err = jpeg_std_error(&err);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &out, &len);
	c.image_width = g->width;
	c.image_height = g->height;
	c.input_components = g->components;
	c.in_color_space = image_gen_input(g->components);
	jpeg_set_defaults(&c);
	if (g->space)
		jpeg_set_colorspace(&c, g->space);
	jpeg_set_quality(&c, g->quality ? g->quality : 90, TRUE);
	for (int i = 0; i < g->components; i++) {
		c.comp_info[i].h_samp_factor =
			g->factor[i][0] + !g->factor[i][0];
		c.comp_info[i].v_samp_factor =
			g->factor[i][1] + !g->factor[i][1];
	}
	if (g->progressive)
		jpeg_simple_progression(&c);
	if (g->scans) {
		c.scan_info = g->scans;
		c.num_scans = g->scan_count;
	}
	c.arith_code = g->arithmetic;
	c.optimize_coding = g->optimize;
	c.restart_in_rows = g->restart_rows;
	jpeg_start_compress(&c, TRUE);
	for (uint32_t y = 0; y < g->height; y++) {
		image_gen_row(&state, y, row, g->width, g->components);
		jpeg_write_scanlines(&c, rows, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	return (struct image_gen_bytes){ out, len };
}

static void image_gen_append(png_structp png, png_bytep p, size_t n)
{
	struct image_gen_bytes *b = png_get_io_ptr(png);

	b->data = realloc(b->data, b->len + n);
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

static void image_gen_flush(png_structp png)
{
	(void)png;
}

struct image_gen_bytes image_gen_png(const struct image_gen_png *g)
{
	struct image_gen_bytes b = { NULL, 0 };
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL,
						  NULL, NULL);
	png_infop info = png_create_info_struct(png);
	uint64_t state = g->seed;
	png_color palette[256];
	png_byte alpha[256] = { 0, 128 };
	png_color_16 key = { 0 };
	size_t stride;
	uint8_t *pixels;
	png_bytep *rows = malloc(g->height * sizeof(*rows));

	png_set_write_fn(png, &b, image_gen_append, image_gen_flush);
	png_set_IHDR(png, info, g->width, g->height, g->depth, g->type,
		     g->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	for (int i = 0; i < 256; i++)
		palette[i] = (png_color){ (png_byte)(i * 7), (png_byte)(i * 11),
					  (png_byte)(255 - i) };
	if (g->type == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, palette, g->colours);
	if (g->transparent)
		png_set_tRNS(png, info, alpha, g->colours < 2 ? g->colours : 2,
			     &key);
	png_write_info(png, info);
	stride = png_get_rowbytes(png, info);
	pixels = malloc(stride * g->height);
	for (uint32_t y = 0; y < g->height; y++) {
		rows[y] = pixels + y * stride;
		image_gen_row(&state, y, rows[y], (uint32_t)stride, 1);
		if (g->type == PNG_COLOR_TYPE_PALETTE && g->depth == 8)
			for (size_t x = 0; x < stride; x++)
				rows[y][x] %= (uint8_t)g->colours;
	}
	png_write_image(png, rows);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	free(pixels);
	free(rows);
	return b;
}

void image_gen_damage(struct image_gen_bytes *b, uint64_t *state)
{
	uint32_t n = image_gen_random(state) % 8;
	size_t from, len;

	for (uint32_t i = 0; i < n; i++)
		b->data[image_gen_random(state) % b->len] =
			(uint8_t)image_gen_random(state);
	if (image_gen_random(state) % 3 == 0)
		b->len = 1 + image_gen_random(state) % b->len;
	if (image_gen_random(state) % 4 == 0) {
		from = image_gen_random(state) % b->len;
		len = image_gen_random(state) % (b->len - from);
		memmove(b->data + from, b->data + from + len,
			b->len - from - len);
		b->len -= len;
	}
}

struct image_gen_bytes image_gen_either(unsigned i)
{
	struct image_gen_jpeg j = {
		.width = 40 + i, .height = 64 - i, .components = 3, .seed = i
	};
	struct image_gen_png p = { .width = 50 + i,
				   .height = 40,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB,
				   .seed = i };

	return i % 3 ? image_gen_jpeg(&j) : image_gen_png(&p);
}

struct image_gen_bytes image_gen_copy(const void *data, size_t len)
{
	struct image_gen_bytes b = { malloc(len ? len : 1), len };

	memcpy(b.data, data, len);
	return b;
}
