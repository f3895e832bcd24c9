/* SPDX-License-Identifier: MIT */
/*
 * pack_image.h - the record of an image file.
 */
#ifndef TEST_LIB_PACK_IMAGE_H
#define TEST_LIB_PACK_IMAGE_H

#include "packed/blocks.h"
#include "jpeg/whole.h"
#include "test/lib/image_gen.h"
#include "tsock/tsock.h"

/*
 * The record of a JPEG, in a block of exactly its bytes; no bytes if it is left
 * out.
 */
struct image_gen_bytes pack_image(const struct image_gen_bytes *f);

#endif
