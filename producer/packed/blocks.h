/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - the packed form of a JPEG image: its quantised coefficients,
 * without a loss, in a form that vector instructions expand many times faster
 * than Huffman codes are decoded.
 *
 * A record is one image; numbers are little-endian, at offsets from its first
 * byte, which may lie anywhere:
 *
 *    0  8 bytes   TSI_JPEG_PACKED_MAGIC
 *    8  u32       bytes of the record
 *   12  u32 u32   width, height in pixels
 *   20  u8 u8     components (1 or 3), enum tsi_jpeg_color
 *   22  3 * u8    h of each component, 3 * u8 v
 *   28  u32       0
 *   32  u64       XXH3 of the head (up to the first row) with 0 here
 *   40            for each component 64 * u16, its quantisers in natural order
 *                 for each row of MCUs a u32, the offset of its end, and a u32,
 *                 the low half of its XXH3
 *                 the rows, one behind the other
 *                 TSI_JPEG_PACKED_SLACK zeros, for loads over the end
 *
 * A row of MCUs has n blocks, those of component 0 first, row by row.  Bit i of
 * a block's mask is set where the coefficient i, in natural order, isn't zero;
 * the first coefficient (DC) stands apart and its bit is 0:
 *
 *   u32 v, u32 x  how many values and exceptions there are
 *   n * u64       masks
 *   n * i16       DC
 *   v * i8        a value for each bit that is set, or 0 for an exception
 *   x * 8 bytes   u32 block, u16 coefficient, i16 value, by block: coefficients
 *                 that no byte has room for
 *                 zeros, up to a multiple of 8 bytes
 *
 * Any rows can be expanded without those before them, and of a row the blocks
 * of any columns.  A record is never trusted: what is asked of a row that
 * tsi_jpeg_packed_check() has let pass stays within the record.
 */
#ifndef TSI_PACKED_BLOCKS_H
#define TSI_PACKED_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"

#define TSI_JPEG_PACKED_MAGIC "\xf5tsckJ1\n"
#define TSI_JPEG_PACKED_MAGIC_LEN 8
#define TSI_JPEG_PACKED_SLACK 64
#define TSI_JPEG_PACKED_MAX ((size_t)1 << 30) /* bytes of a record */

/* ------------------------------------------------------------------------
 * Making a record; used by one thread
 */

struct tsi_jpeg_packer; /* its memory is used again for the next image */

/* Fails with TSOCK_ENOMEM.  NULL may be destroyed. */
int tsi_jpeg_packer_create(struct tsi_jpeg_packer **out);
void tsi_jpeg_packer_destroy(struct tsi_jpeg_packer *p);

/* Begin with an image.  Fails with TSOCK_ENOMEM. */
int tsi_jpeg_packer_begin(struct tsi_jpeg_packer *p,
			  const struct tsi_jpeg_frame *f);

/*
 * The next row of MCUs: row `row` of b, whose area has all columns.  Of b
 * neither last[] nor the area's top counts.  Fails with TSOCK_ENOMEM, ENOTSUP
 * (the record would be larger than TSI_JPEG_PACKED_MAX).
 */
int tsi_jpeg_packer_row(struct tsi_jpeg_packer *p,
			const struct tsi_jpeg_blocks *b, uint32_t row);

/* After the last row: the record, valid until the next begin. */
const uint8_t *tsi_jpeg_packer_end(struct tsi_jpeg_packer *p, size_t *len);

/* ------------------------------------------------------------------------
 * Reading one
 */

struct tsi_jpeg_packed {
	const uint8_t *data;
	size_t len;
	struct tsi_jpeg_frame frame;
	size_t index;    /* where the ends of rows are */
	size_t first;    /* where the first row begins */
	uint32_t in_row; /* blocks of a row of MCUs */
};

/* Do these bytes begin as a record does? */
bool tsi_jpeg_packed_claims(const uint8_t *data, size_t len);

/*
 * Read a record's head; the data must outlive p's use.  Fails with TSOCK_EDATA
 * (damaged, cut, or of a kind that there is not).  `trusted`: this process made
 * it, so that sums needn't be looked at.
 */
int tsi_jpeg_packed_open(struct tsi_jpeg_packed *p, const void *data,
			 size_t len, bool trusted);

/*
 * Is this row of MCUs as it was written, and do all of its counts fit?  Fails
 * with TSOCK_EDATA.
 */
int tsi_jpeg_packed_check(const struct tsi_jpeg_packed *p, uint32_t row,
			  bool trusted);

struct tsi_expand_kernel;

/*
 * The blocks of a checked row, of the columns of to->area, into row 0 of its
 * blocks; the area lies within the image, and its height doesn't count.
 */
void tsi_jpeg_packed_row(const struct tsi_jpeg_packed *p, uint32_t row,
			 const struct tsi_expand_kernel *expand,
			 const struct tsi_jpeg_blocks *to);

#endif
