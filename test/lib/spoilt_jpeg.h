/* SPDX-License-Identifier: MIT */
/*
 * spoilt_jpeg.h - damaged JPEG files of one scan.
 */
#ifndef TEST_LIB_SPOILT_JPEG_H
#define TEST_LIB_SPOILT_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/lib/image_gen.h"

/* Where the scan's data begin. */
size_t spoilt_jpeg_data(const struct image_gen_bytes *f);

/* A damaged copy of a file, in a block that may be larger; free() its data. */
struct image_gen_bytes spoilt_jpeg(const struct image_gen_bytes *whole,
				   uint64_t *r);

/*
 * A grey file of 40 x 96 pixels with two kinds of damage: a marker in its second
 * quarter, and, for two of three markers, something at the end because of which
 * Pillow refuses the file.  Place: 0: of a file that restarts nowhere, 1: within
 * an interval, 2: where a restart was.
 */
struct image_gen_bytes spoilt_jpeg_twice(unsigned place, bool arithmetic,
					 unsigned marker);

#endif
