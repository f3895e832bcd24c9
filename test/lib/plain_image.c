/* SPDX-License-Identifier: MIT */
/*
 * plain_image.c - a JPEG and a PNG of the kind that most files are.
 */
#include "test/lib/plain_image.h"

struct image_gen_bytes plain_image_jpeg(uint32_t width, uint32_t height)
{
	struct image_gen_jpeg g = { .width = width,
				    .height = height,
				    .components = 3,
				    .factor = { { 2, 2 } } };

	return image_gen_jpeg(&g);
}

struct image_gen_bytes plain_image_png(uint32_t width, uint32_t height)
{
	struct image_gen_png g = { .width = width,
				   .height = height,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB };

	return image_gen_png(&g);
}
