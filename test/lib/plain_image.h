/* SPDX-License-Identifier: MIT */
/*
 * plain_image.h - a JPEG and a PNG of the kind that most files are.
 */
#ifndef TEST_LIB_PLAIN_IMAGE_H
#define TEST_LIB_PLAIN_IMAGE_H

#include "test/lib/image_gen.h"

/* free() their bytes. */
struct image_gen_bytes plain_image_jpeg(uint32_t width, uint32_t height);

struct image_gen_bytes plain_image_png(uint32_t width, uint32_t height);

#endif
