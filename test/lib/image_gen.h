/* SPDX-License-Identifier: MIT */
/*
 * image_gen.h - makes image files in memory for the tests of producer/image.
 *
 * Every shape a JPEG can take that our files can't be relied on to have:
 * odd sampling factors, four components, arithmetic coding, restarts, scans
 * that are missing.  Content is noise on a gradient, from a seed.
 */
#ifndef TEST_LIB_IMAGE_GEN_H
#define TEST_LIB_IMAGE_GEN_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

struct image_gen_jpeg {
	uint32_t width;
	uint32_t height;
	int components;
	J_COLOR_SPACE space; /* in the file; 0: libjpeg's choice */
	int factor[4][2];    /* horizontal, vertical; 0: 1 */
	bool progressive;
	bool arithmetic;
	bool optimize;
	int restart_rows;
	int quality; /* 0: 90 */
	const jpeg_scan_info *scans;
	int scan_count;
	uint64_t seed;
};

struct image_gen_bytes {
	uint8_t *data;
	size_t len;
};

uint32_t image_gen_random(uint64_t *state);

void image_gen_row(uint64_t *state, uint32_t y, uint8_t *row, uint32_t width,
		   int channels);

J_COLOR_SPACE image_gen_input(int components);

struct image_gen_bytes image_gen_jpeg(const struct image_gen_jpeg *g);

struct image_gen_png {
	uint32_t width;
	uint32_t height;
	int depth;
	int type; /* PNG_COLOR_TYPE_* */
	bool interlaced;
	bool transparent; /* with a tRNS chunk */
	int colours;      /* of the palette */
	uint64_t seed;
};

struct image_gen_bytes image_gen_png(const struct image_gen_png *g);

/* Damage: a few bytes changed, a piece cut out, or the end cut off. */
void image_gen_damage(struct image_gen_bytes *b, uint64_t *state);

/* A small image, of each size once: two of three are JPEGs. */
struct image_gen_bytes image_gen_either(unsigned i);

/* A block of exactly the given bytes, so that a sanitizer sees overreading. */
struct image_gen_bytes image_gen_copy(const void *data, size_t len);

#endif
