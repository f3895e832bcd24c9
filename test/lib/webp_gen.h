/* SPDX-License-Identifier: MIT */
/*
 * webp_gen.h - makes WebP files in memory, of noise on a gradient.
 */
#ifndef TEST_LIB_WEBP_GEN_H
#define TEST_LIB_WEBP_GEN_H

#include "pixel/decoder.h"
#include "test/lib/image_gen.h"

struct webp_gen {
	uint32_t width;
	uint32_t height;
	float quality; /* of a lossy one */
	bool lossless;
	bool alpha;
	uint64_t seed;
};

struct image_gen_bytes webp_gen(const struct webp_gen *g);

/* Two images of webp_gen(), of the given sizes, at these even places. */
struct image_gen_bytes webp_gen_animation(const struct tsi_rect *canvas,
					  const struct image_gen_bytes *first,
					  const struct tsi_rect *at,
					  const struct image_gen_bytes *second,
					  const struct tsi_rect *second_at);

/* Cut a file of one chunk to len bytes, with the sizes of what is left. */
void webp_gen_shorten(struct image_gen_bytes *f, size_t len);

#endif
