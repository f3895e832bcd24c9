/* SPDX-License-Identifier: MIT */
/*
 * jpeg_region.h - regions of JPEG files, by our decoder and by libjpeg's whole
 * decode.
 */
#ifndef TEST_LIB_JPEG_REGION_H
#define TEST_LIB_JPEG_REGION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jpeg/jpeg.h"
#include "test/lib/image_gen.h"

struct jpeg_picture {
	uint32_t width;
	uint32_t height;
	uint8_t *rgb;
};

/* Sampling factors of up to four components. */
#define JPEG_SAMPLINGS 28
extern const struct jpeg_region_sampling {
	int components;
	J_COLOR_SPACE space;
	int factor[4][2];
} jpeg_region_sampling[JPEG_SAMPLINGS];

/* The whole file with libjpeg's defaults, as anybody would decode it. */
struct jpeg_picture jpeg_region_reference(const struct image_gen_bytes *f);

/*
 * As jpeg_region_reference(); if fast isn't 0, at 1/fast of its size and without
 * interpolation of chroma.
 */
struct jpeg_picture jpeg_region_reference_fast(const struct image_gen_bytes *f,
					       unsigned fast);

/* Decode a region as j->fast says; rows go to a block of w * h * 3 bytes. */
int jpeg_region(struct tsi_decoder *j, const struct image_gen_bytes *f,
		const struct tsi_rect *rect, uint8_t *out);

/* The region from strips in planes, where the decoder can give them. */
int jpeg_region_planes(struct tsi_decoder *j, const struct image_gen_bytes *f,
		       const struct tsi_rect *rect, uint8_t *out);

/* The whole, each corner, single pixels, and any rectangles. */
struct tsi_rect jpeg_region_pick(const struct jpeg_picture *p, int n,
				 uint64_t *state);

#endif
