/* SPDX-License-Identifier: MIT */
/*
 * jpeg_coefs.h - the coefficients of JPEG files as libjpeg reads them, and
 * files of any coefficients.
 */
#ifndef TEST_LIB_JPEG_COEFS_H
#define TEST_LIB_JPEG_COEFS_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg/blocks.h"
#include "test/lib/image_gen.h"

/* All coefficients of a file: the area is that of the whole image. */
struct jpeg_coefs {
	struct tsi_jpeg_frame frame;
	struct tsi_jpeg_blocks blocks;
	bool progressive;
};

/*
 * False, and nothing to free, if the file has warnings or errors, or other than
 * one or three components.
 */
bool jpeg_coefs_read(const struct image_gen_bytes *f, struct jpeg_coefs *out);
void jpeg_coefs_free(struct jpeg_coefs *c);

/*
 * The blocks of one row of MCUs in an area, and no byte more: what reads
 * beyond them is seen by a sanitizer.
 */
void jpeg_coefs_row(const struct jpeg_coefs *c, const struct tsi_jpeg_area *a,
		    uint32_t row, struct tsi_jpeg_blocks *out);
void jpeg_coefs_free_blocks(struct tsi_jpeg_blocks *b);

/* A file of three components, or one, with random coefficients. */
struct jpeg_coefs_random {
	uint32_t width;
	uint32_t height;
	int components;
	int factor[3][2];
	unsigned most;  /* coefficients: at most this, and 1,000 */
	unsigned quant; /* quantisers: 1 to this, at most 32,767 */
	unsigned kept;  /* of 64 coefficients, about as many are not 0 */
	uint64_t seed;
};

struct image_gen_bytes jpeg_coefs_random(const struct jpeg_coefs_random *g);

#endif
