/* SPDX-License-Identifier: MIT */
/*
 * check.c - is our JPEG decoder libjpeg's equal on this machine?
 */
#include "jpeg/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "pixel/image.h"
#include "jpeg/jpeg.h"
#include "jpeg/index.h"
#include "jpeg/libjpeg.h"
#include "jpeg/turbo.h"

#define WIDTH 200u
#define HEIGHT 170u
#define IMAGES 5

/* A compressor whose errors come back. */
struct encoder {
	struct jpeg_error_mgr err; /* first: libjpeg knows no more */
	jmp_buf fail;
};

struct file {
	unsigned char *data;
	unsigned long len;
};

static void on_error(j_common_ptr c)
{
	struct encoder *e = (struct encoder *)(void *)c->err;

	longjmp(e->fail, 1);
}

/* A gradient with noise, which has codes and runs of all lengths. */
static void draw(JSAMPLE *row, uint32_t y, int components, uint32_t *noise)
{
	for (uint32_t x = 0; x < WIDTH * (uint32_t)components; x++) {
		*noise = *noise * 1664525u + 1013904223u;
		row[x] = (JSAMPLE)((x * 3 + y * 5) / 4 +
				   (*noise >> 24) % (1 + (x + y) / 2));
	}
}

static void encode(struct jpeg_compress_struct *c, int image, struct file *f)
{
	static const int factor[IMAGES][2] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 1, 1 }
	};
	JSAMPLE row[WIDTH * 3];
	JSAMPROW rows[1] = { row };
	uint32_t noise = (uint32_t)image;

	jpeg_create_compress(c);
	jpeg_mem_dest(c, &f->data, &f->len);
	c->image_width = WIDTH;
	c->image_height = HEIGHT;
	c->input_components = image == IMAGES - 1 ? 1 : 3;
	c->in_color_space = image == IMAGES - 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(c);
	jpeg_set_quality(c, 70 + 6 * image, TRUE);
	c->comp_info[0].h_samp_factor = factor[image][0];
	c->comp_info[0].v_samp_factor = factor[image][1];
	jpeg_start_compress(c, TRUE);
	for (uint32_t y = 0; y < HEIGHT; y++) {
		draw(row, y, c->input_components, &noise);
		jpeg_write_scanlines(c, rows, 1);
	}
	jpeg_finish_compress(c);
}

static int make_file(int image, struct file *f)
{
	struct jpeg_compress_struct c;
	struct encoder e;
	volatile int err = 0;

	memset(&c, 0, sizeof(c));
	c.err = jpeg_std_error(&e.err);
	e.err.error_exit = on_error;
	if (setjmp(e.fail))
		err = tsi_err(TSOCK_ENOMEM, "no memory to make a JPEG");
	else
		encode(&c, image, f);
	jpeg_destroy_compress(&c);
	return err;
}

/* The rectangle's pixels, three bytes each. */
static int decode(struct tsi_decoder *d, const struct tsi_decoder_hint *hint,
		  const struct file *f, const struct tsi_rect *r, uint8_t *out)
{
	const struct tsi_decoder_ops *ops = d->ops;
	uint32_t width, height;
	struct tsi_strip s;
	int err;

	ops->hint(d, hint);
	err = ops->open(d, f->data, f->len, &width, &height);
	d->planes = false;
	if (!err)
		err = ops->begin(d, r);
	for (uint32_t y = 0; !err && y < r->height; y += s.rows) {
		err = ops->read(d, &s);
		for (uint32_t i = 0; !err && i < s.rows * r->width; i++)
			memcpy(out + ((size_t)y * r->width + i) * 3,
			       s.pixels + i / r->width * s.stride +
				       (size_t)(i % r->width) * 4,
			       3);
	}
	ops->close(d);
	return err;
}

/* Decode a file: all of it, then a part and all of it by the index. */
static int compare(struct tsi_decoder *d, struct tsi_jpeg_index *x, int image,
		   const struct file *f, uint8_t *a, uint8_t *b)
{
	uint32_t n = d->fast ? d->fast : 1;
	const struct tsi_rect rect[] = {
		{ 0, 0, (WIDTH + n - 1) / n, (HEIGHT + n - 1) / n },
		{ 90 / n, 60 / n, 77 / n, 101 / n },
		{ 0, 0, (WIDTH + n - 1) / n, (HEIGHT + n - 1) / n },
	};
	const struct tsi_image_opts by_lib = { .stock_jpeg = true };
	struct tsi_decoder_hint stock = { .opts = &by_lib };
	const struct tsi_image_opts opts = { .jpeg_index = x };
	struct tsi_decoder_hint own = { .opts = &opts,
					.file = (uint64_t)image };
	int err = 0;

	for (int i = 0; i < 3 && !err; i++) {
		size_t len = (size_t)rect[i].width * rect[i].height * 3;

		err = decode(d, &stock, f, &rect[i], a);
		if (!err)
			err = decode(d, &own, f, &rect[i], b);
		if (!err && memcmp(a, b, len))
			err = tsi_err(TSOCK_EDATA,
				      "libjpeg-turbo %s gives other pixels "
				      "here than our JPEG decoder",
				      tsi_jpeg_turbo_version());
	}
	return err;
}

static int compare_images(struct tsi_decoder *d, struct tsi_jpeg_index *x,
			  bool fast, uint8_t *a, uint8_t *b)
{
	int err = 0;

	for (int i = 0; i < IMAGES && !err; i++) {
		struct file f = { 0 };

		err = make_file(i, &f);
		/* 0, or 1, 2, 4 and 8. */
		for (d->fast = fast; !err && d->fast <= 8; d->fast *= 2) {
			err = compare(d, x, i, &f, a, b);
			if (!fast)
				break;
		}
		free(f.data);
	}
	return err;
}

int tsi_jpeg_check(bool fast)
{
	size_t n = (size_t)WIDTH * HEIGHT * 3;
	struct tsi_jpeg_index *x = NULL;
	struct tsi_decoder *d = NULL;
	uint8_t *a = malloc(2 * n);
	int err = 0;

	if (!a)
		err = tsi_err(TSOCK_ENOMEM, "no memory to check a decoder");
	if (!err)
		err = tsi_jpeg_index_create(IMAGES, 1 << 20, &x);
	if (!err)
		err = tsi_jpeg_ops.create(&d);
	if (!err)
		err = compare_images(d, x, fast, a, a + n);
	tsi_jpeg_ops.destroy(d);
	tsi_jpeg_index_destroy(x);
	free(a);
	return err;
}
