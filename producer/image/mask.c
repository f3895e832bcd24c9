/* SPDX-License-Identifier: MIT */
/*
 * mask.c - decode a mask, and do to it what a recipe does to its image.
 */
#include "image/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ops/mask.h"
#include "pixel/decoder.h"
#include "pixel/image.h"
#include "pixel/scratch.h"
#include "png/png.h"

struct tsi_image_mask {
	const struct tsi_recipe *recipe;
	struct tsi_decoder *decoder;
	struct tsi_scratch pixels; /* of the mask as it is in the file */
	struct tsi_mask places;
};

int tsi_image_mask_create(const struct tsi_recipe *r,
			  struct tsi_image_mask **out)
{
	struct tsi_image_mask *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for a mask decoder");
	m->recipe = r;
	err = tsi_png_ops.create(&m->decoder);
	if (err) {
		tsi_image_mask_destroy(m);
		return err;
	}
	m->decoder->numbers = true;
	*out = m;
	return 0;
}

void tsi_image_mask_destroy(struct tsi_image_mask *m)
{
	if (!m)
		return;
	tsi_png_ops.destroy(m->decoder);
	tsi_scratch_fini(&m->pixels);
	tsi_mask_fini(&m->places);
	free(m);
}

int tsi_image_mask_look(const void *data, size_t len)
{
	uint32_t width, height;
	const uint8_t *p = data;
	int err;

	if (!tsi_png_claims(data, len))
		return tsi_err(TSOCK_EDATA, "it is no PNG");
	err = tsi_png_head(data, len, &width, &height);
	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_EDATA, "its header is cut short");
	if (err)
		return err;
	return tsi_png_numbers(p[25], p[24]);
}

static int open_mask(struct tsi_image_mask *m, const void *data, size_t len,
		     const struct tsi_image_drawn *of)
{
	struct tsi_rect whole = { .width = of->width, .height = of->height };
	uint32_t width, height;
	int err = tsi_image_mask_look(data, len);

	if (!err)
		err = tsi_png_ops.open(m->decoder, data, len, &width, &height);
	if (err)
		return err;
	if (width != of->width || height != of->height)
		return tsi_err(TSOCK_EDATA,
			       "it is %u x %u pixels, and its image %u x %u",
			       width, height, of->width, of->height);
	err = tsi_scratch_grow(&m->pixels, (size_t)width * height, "a mask");
	return err ? err : tsi_png_ops.begin(m->decoder, &whole);
}

static int read_mask(struct tsi_image_mask *m, uint32_t width, uint32_t height)
{
	uint8_t *to = m->pixels.p;
	struct tsi_strip strip;

	for (uint32_t rows = 0; rows < height; rows += strip.rows) {
		int err = tsi_png_ops.read(m->decoder, &strip);

		if (err)
			return err;
		for (uint32_t y = 0; y < strip.rows; y++, to += width)
			memcpy(to, strip.pixels + y * strip.stride, width);
	}
	return 0;
}

int tsi_image_mask_load(struct tsi_image_mask *m, const void *data, size_t len,
			const struct tsi_image_drawn *of, uint8_t *dst)
{
	int err = open_mask(m, data, len, of);

	if (!err)
		err = read_mask(m, of->width, of->height);
	tsi_png_ops.close(m->decoder);
	if (!err)
		err = tsi_mask_begin(&m->places, m->pixels.p, of->width,
				     of->width, of->height);
	if (!err)
		err = tsi_recipe_mask(&m->recipe->view[0], of->draws,
				      &m->places);
	if (!err)
		tsi_mask_fetch(&m->places, dst);
	tsi_scratch_trim(&m->pixels);
	tsi_mask_trim(&m->places);
	return err;
}

uint64_t tsi_image_mask_need(uint32_t width, uint32_t height)
{
	/* The file, which is rarely larger, and the mask that is in it. */
	return 2 * tsi_scratch_need((uint64_t)width * height) +
	       tsi_mask_need(width, height);
}
