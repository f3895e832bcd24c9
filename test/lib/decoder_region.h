/* SPDX-License-Identifier: MIT */
/*
 * decoder_region.h - a rectangle of an image file, as a decoder gives it, strip
 * by strip.
 */
#ifndef TEST_LIB_DECODER_REGION_H
#define TEST_LIB_DECODER_REGION_H

#include <stdint.h>

#include "pixel/decoder.h"
#include "test/lib/image_gen.h"

/*
 * Write the rectangle's pixels to out, four bytes each, row by row, and close
 * the file.  Fails as the decoder does.
 */
int decoder_region_read(struct tsi_decoder *p, const struct image_gen_bytes *f,
			const struct tsi_rect *rect, uint8_t *out);

/* All of an image of w x h pixels for n = 0, else a random part of it. */
struct tsi_rect decoder_region_pick(uint32_t w, uint32_t h, int n,
				    uint64_t *state);

#endif
