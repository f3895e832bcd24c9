/* SPDX-License-Identifier: MIT */
/*
 * layout.h - where a record has what, for the code that writes
 * records and the code that reads them.  The layout is described in
 * blocks.h.
 */
#ifndef TSI_PACKED_LAYOUT_H
#define TSI_PACKED_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"

enum {
	TSI_PACKED_BYTES = 8,
	TSI_PACKED_WIDTH = 12,
	TSI_PACKED_HEIGHT = 16,
	TSI_PACKED_COMPS = 20,
	TSI_PACKED_COLOR = 21,
	TSI_PACKED_FACTORS = 22,
	TSI_PACKED_SUM = 32,
	TSI_PACKED_QUANT = 40,
};

/* Blocks of a row of MCUs. */
uint32_t tsi_packed_in_row(const struct tsi_jpeg_frame *f);

/* The sum of a head of len bytes. */
uint64_t tsi_packed_head_sum(const uint8_t *d, size_t len);

#endif
