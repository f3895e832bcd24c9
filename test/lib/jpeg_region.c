/* SPDX-License-Identifier: MIT */
/*
 * jpeg_region.c - regions of JPEG files, by our decoder and by libjpeg's whole
 * decode.
 */
#include "test/lib/jpeg_region.h"

#include <stdlib.h>
#include <string.h>

const struct jpeg_region_sampling jpeg_region_sampling[JPEG_SAMPLINGS] = {
	{ 3, 0, { { 1, 1 } } },
	{ 3, 0, { { 2, 1 } } },
	{ 3, 0, { { 2, 2 } } },
	{ 3, 0, { { 1, 2 } } },
	{ 3, 0, { { 4, 1 } } },
	{ 3, 0, { { 4, 2 } } },
	{ 3, 0, { { 1, 4 } } },
	{ 3, 0, { { 2, 4 } } },
	{ 3, 0, { { 3, 1 } } },
	{ 3, 0, { { 1, 3 } } },
	{ 3, 0, { { 3, 2 } } },
	{ 3, 0, { { 2, 2 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 2, 2 }, { 1, 2 }, { 1, 1 } } },
	{ 3, 0, { { 4, 1 }, { 2, 1 }, { 1, 1 } } },
	{ 3, 0, { { 1, 1 }, { 2, 2 }, { 2, 2 } } },
	{ 3, 0, { { 1, 1 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 2, 2 }, { 2, 2 }, { 2, 1 } } },
	{ 3, JCS_RGB, { { 1, 1 } } },
	{ 3, JCS_RGB, { { 2, 2 } } },
	{ 1, 0, { { 1, 1 } } },
	{ 1, 0, { { 2, 2 } } },
	{ 1, 0, { { 4, 1 } } },
	{ 1, 0, { { 1, 3 } } },
	{ 4, JCS_CMYK, { { 1, 1 } } },
	{ 4, JCS_CMYK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
	{ 4, JCS_YCCK, { { 1, 1 } } },
	{ 4, JCS_YCCK, { { 2, 1 }, { 1, 1 }, { 1, 1 }, { 2, 1 } } },
	{ 4, JCS_YCCK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
};

static unsigned light(unsigned p, unsigned black)
{
	/* Inverted inks on white paper: paper less ink. */
	unsigned t = (255 - p) * black + 128;
	unsigned ink = (t + (t >> 8)) >> 8;

	return black > ink ? black - ink : 0;
}

struct jpeg_picture jpeg_region_reference_fast(const struct image_gen_bytes *f,
					       unsigned fast)
{
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct jpeg_picture p;
	uint8_t *row;

	c.err = jpeg_std_error(&err);
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, f->data, f->len);
	jpeg_read_header(&c, TRUE);
	c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
	if (fast) {
		c.scale_num = 1;
		c.scale_denom = fast;
		c.do_fancy_upsampling = FALSE;
	}
	jpeg_start_decompress(&c);
	p.width = c.output_width;
	p.height = c.output_height;
	p.rgb = malloc((size_t)p.width * p.height * 3);
	row = malloc((size_t)p.width * 4);
	for (uint32_t y = 0; y < p.height; y++) {
		uint8_t *to = p.rgb + (size_t)y * p.width * 3;
		JSAMPROW rows[1] = { c.num_components == 4 ? row : to };

		jpeg_read_scanlines(&c, rows, 1);
		for (uint32_t x = 0; c.num_components == 4 && x < p.width; x++)
			for (int i = 0; i < 3; i++)
				to[3 * x + i] = (uint8_t)light(row[4 * x + i],
							       row[4 * x + 3]);
	}
	jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
	free(row);
	return p;
}

struct jpeg_picture jpeg_region_reference(const struct image_gen_bytes *f)
{
	return jpeg_region_reference_fast(f, 0);
}

/* A pixel of a strip. */
static void copy_pixel(const struct tsi_strip *s, uint32_t x, uint32_t y,
		       uint8_t *out)
{
	const uint8_t *row = s->pixels + y * s->stride;

	for (uint32_t i = 0; i < 3; i++)
		out[i] = s->plane ? row[x + i * s->plane] : row[4 * x + i];
}

static int region(struct tsi_decoder *j, const struct tsi_rect *rect,
		  uint8_t *out)
{
	int err = tsi_jpeg_ops.begin(j, rect);
	struct tsi_strip s;

	for (uint32_t y = 0; !err && y < rect->height; y += s.rows) {
		err = tsi_jpeg_ops.read(j, &s);
		if (err)
			break;
		assert_in_range(s.rows, 1, rect->height - y);
		assert_int_equal(s.plane != 0, j->planes);
		for (uint32_t i = 0; i < s.rows * rect->width; i++)
			copy_pixel(&s, i % rect->width, i / rect->width,
				   out + ((size_t)y * rect->width + i) * 3);
	}
	return err;
}

int jpeg_region(struct tsi_decoder *j, const struct image_gen_bytes *f,
		const struct tsi_rect *rect, uint8_t *out)
{
	uint32_t w, h;
	int err = tsi_jpeg_ops.open(j, f->data, f->len, &w, &h);

	j->planes = false;
	return err ? err : region(j, rect, out);
}

int jpeg_region_planes(struct tsi_decoder *j, const struct image_gen_bytes *f,
		       const struct tsi_rect *rect, uint8_t *out)
{
	uint32_t w, h;
	int err = tsi_jpeg_ops.open(j, f->data, f->len, &w, &h);

	j->planes = j->has_planes;
	return err ? err : region(j, rect, out);
}

struct tsi_rect jpeg_region_pick(const struct jpeg_picture *p, int n,
				 uint64_t *state)
{
	struct tsi_rect r = { 0, 0, p->width, p->height };

	if (!n)
		return r;
	r.left = image_gen_random(state) % p->width;
	r.top = image_gen_random(state) % p->height;
	if (n % 3 == 0)
		r.left -= r.left % 8;
	if (n % 4 == 0)
		r.top -= r.top % 8;
	r.width = 1 + image_gen_random(state) % (p->width - r.left);
	r.height = 1 + image_gen_random(state) % (p->height - r.top);
	if (n % 7 == 0)
		r.width = r.height = 1;
	if (n % 5 == 0)
		r.width = p->width - r.left;
	return r;
}
