/* SPDX-License-Identifier: MIT */
/*
 * avif_gen.c - makes AVIF files in memory.
 */
#include "test/lib/avif_gen.h"

static void check(avifResult r)
{
	if (r)
		abort();
}

static avifImage *make_image(const struct avif_gen *g, uint64_t seed)
{
	unsigned depth = g->depth ? g->depth : 8;
	avifImage *image = avifImageCreate((int)g->width, (int)g->height,
					   (int)depth, g->format);
	uint8_t *pixels = malloc((size_t)g->width * g->height * 4);
	avifRGBImage rgb;

	if (!image || !pixels)
		abort();
	image->yuvRange = g->limited ? AVIF_RANGE_LIMITED : AVIF_RANGE_FULL;
	image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;
	for (uint32_t y = 0; y < g->height; y++)
		image_gen_row(&seed, y, pixels + (size_t)y * g->width * 4,
			      g->width, 4);
	avifRGBImageSetDefaults(&rgb, image);
	rgb.depth = 8;
	rgb.format = AVIF_RGB_FORMAT_RGBA;
	rgb.ignoreAlpha = !g->alpha;
	rgb.pixels = pixels;
	rgb.rowBytes = g->width * 4;
	check(avifImageRGBToYUV(image, &rgb));
	free(pixels);
	return image;
}

struct image_gen_bytes avif_gen(const struct avif_gen *g)
{
	avifEncoder *encoder = avifEncoderCreate();
	avifRWData out = AVIF_DATA_EMPTY;
	struct image_gen_bytes b;

	if (!encoder)
		abort();
	encoder->speed = AVIF_SPEED_FASTEST;
	encoder->maxThreads = 1;
	encoder->minQuantizer = encoder->minQuantizerAlpha = 10;
	encoder->maxQuantizer = encoder->maxQuantizerAlpha = 30;
	for (unsigned i = 0; i < (g->files ? g->files : 1); i++) {
		avifImage *image = make_image(g, g->seed + i);

		check(avifEncoderAddImage(
			encoder, image, 1,
			g->files ? AVIF_ADD_IMAGE_FLAG_NONE
				 : AVIF_ADD_IMAGE_FLAG_SINGLE));
		avifImageDestroy(image);
	}
	check(avifEncoderFinish(encoder, &out));
	avifEncoderDestroy(encoder);
	b = image_gen_copy(out.data, out.size);
	avifRWDataFree(&out);
	return b;
}

size_t avif_gen_box(const struct image_gen_bytes *f, const char *type)
{
	for (size_t at = 4; at + 4 <= f->len; at++)
		if (!memcmp(f->data + at, type, 4))
			return at;
	abort();
}
