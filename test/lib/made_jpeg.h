/* SPDX-License-Identifier: MIT */
/*
 * made_jpeg.h - JPEG files of many kinds, and an index for them.
 */
#ifndef TEST_LIB_MADE_JPEG_H
#define TEST_LIB_MADE_JPEG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jpeg/index.h"
#include "base/simd.h"
#include "test/lib/image_gen.h"

/* The i-th of a kind: each sampling, grey, optimized tables, any quality. */
struct image_gen_bytes made_jpeg(unsigned i, uint32_t width, uint32_t height);

/* Without vector instructions files are left to libjpeg; none is indexed. */
bool made_jpeg_is_indexed(void);

struct tsi_jpeg_index *made_jpeg_index(uint64_t files, uint64_t memory);

#endif
