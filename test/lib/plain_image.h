/* SPDX-License-Identifier: MIT */
/*
 * plain_image.h - a JPEG and a PNG of the kind that most files are.
 */
#ifndef TEST_LIB_PLAIN_IMAGE_H
#define TEST_LIB_PLAIN_IMAGE_H

#include "test/lib/image_gen.h"

/* free() their bytes. */
static inline struct image_gen_bytes plain_jpeg(uint32_t width, uint32_t height)
{
	struct image_gen_jpeg g = { .width = width,
				    .height = height,
				    .components = 3,
				    .factor = { { 2, 2 } } };

	return image_gen_jpeg(&g);
}

static inline struct image_gen_bytes plain_png(uint32_t width, uint32_t height)
{
	struct image_gen_png g = { .width = width,
				   .height = height,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB };

	return image_gen_png(&g);
}

#endif
