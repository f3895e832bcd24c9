/* SPDX-License-Identifier: MIT */
/*
 * jpeg_stock.h - the coefficients of a JPEG file as libjpeg reads them, and
 * memory for blocks of our own.
 */
#ifndef TEST_LIB_JPEG_STOCK_H
#define TEST_LIB_JPEG_STOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"

struct jpeg_stock {
	bool refused;       /* then there are no blocks */
	bool warned;        /* something is damaged, or its end is missing */
	uint32_t across[3]; /* blocks of a row, padding included */
	uint32_t down[3];
	int16_t (*block[3])[64]; /* natural order */
};

/* By jpeg_read_coefficients(); of one or three components. */
void jpeg_stock_read(const uint8_t *data, size_t len, struct jpeg_stock *out);
void jpeg_stock_free(struct jpeg_stock *c);

/* Memory for the blocks of an area, filled with rubbish. */
void jpeg_stock_alloc(const struct tsi_jpeg_frame *f,
		      const struct tsi_jpeg_area *area,
		      struct tsi_jpeg_blocks *b);
void jpeg_stock_drop(struct tsi_jpeg_blocks *b);

/* The blocks of b are those of c, and b->last says so. */
void jpeg_stock_check(const struct tsi_jpeg_frame *f,
		      const struct jpeg_stock *c,
		      const struct tsi_jpeg_blocks *b);

#endif
