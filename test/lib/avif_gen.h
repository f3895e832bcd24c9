/* SPDX-License-Identifier: MIT */
/*
 * avif_gen.h - makes AVIF files in memory, of noise on a gradient.
 */
#ifndef TEST_LIB_AVIF_GEN_H
#define TEST_LIB_AVIF_GEN_H

#include "test/lib/image_gen.h"

#include <avif/avif.h>

struct avif_gen {
	uint32_t width;
	uint32_t height;
	avifPixelFormat format;
	unsigned depth; /* 0: 8 */
	bool alpha;
	bool limited;   /* levels from 16 to 235 */
	unsigned files; /* images of a sequence; 0: none */
	uint64_t seed;
};

struct image_gen_bytes avif_gen(const struct avif_gen *g);

/* The place of a box's type in a file, which has one such box at least. */
size_t avif_gen_box(const struct image_gen_bytes *f, const char *type);

#endif
