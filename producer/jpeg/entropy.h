/* SPDX-License-Identifier: MIT */
/*
 * entropy.h - Huffman-coded data of a JPEG file to coefficients.
 *
 * It reads any rows and columns of MCUs whose entries are known, up to four
 * pieces at once, and so fast because of that: the next code's place depends on
 * the last one's length, and four such chains fill the time that one spends
 * waiting.  With AVX-512 it reads sixteen at once (wide.h).
 *
 * Where anything in the data is not as a decoder of undamaged files expects it
 * the answer is false, and libjpeg decides what the file means.  That is so for
 * a code that no table has, a coefficient beyond the 64th, a marker or the end
 * of the data before the last MCU, an AC coefficient of more than 10 bits or a
 * DC coefficient of more than 12 (sign included), which no image of 8 bits has,
 * and zeros that end a block without need (when sixteen pieces are read at once
 * those are read, as libjpeg does).  True means: libjpeg reads the same
 * coefficients from these MCUs, without a warning.
 *
 * Codes and magnitudes: ITU-T T.81, F.2.2; the end of one block is where the
 * next one begins, so every function here is linear in the data it reads.
 */
#ifndef TSI_JPEG_ENTROPY_H
#define TSI_JPEG_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"
#include "jpeg/scan.h"
#include "base/simd.h"

/*
 * Where an MCU begins: a bit of the data as they lie in the file, stuffed zeros
 * included, so that a part of a file can be read without what stands before
 * it; and what the DC coefficients before it were.
 */
struct tsi_jpeg_entry {
	uint32_t bit;               /* the first one behind the markers is 0 */
	int16_t dc[TSI_JPEG_COMPS]; /* -2048 to 2047 */
};

/* A piece of a row of MCUs, and where the reading of it begins. */
struct tsi_jpeg_piece {
	struct tsi_jpeg_entry entry;
	uint32_t column; /* the entry's MCU; not right of `left` */
	uint32_t row;    /* counted from the top of the area */
	uint32_t left;   /* MCUs [left, right) of the image's row */
	uint32_t right;
	/*
	 * Bytes behind the markers that are needed at most, if that is known;
	 * else 0.  Only the time depends on it.
	 */
	uint32_t end;
};

/* Tables and buffers of one thread. */
struct tsi_jpeg_entropy;

/*
 * TSI_SIMD_AVX512 reads sixteen pieces at once, and TSI_SIMD_BEST does where
 * that is faster.  Fails with TSOCK_ENOTSUP if this processor lacks simd,
 * TSOCK_ENOMEM.
 */
int tsi_jpeg_entropy_create(enum tsi_simd simd, struct tsi_jpeg_entropy **out);
/* NULL is allowed. */
void tsi_jpeg_entropy_destroy(struct tsi_jpeg_entropy *e);

/* Pieces that are best read together. */
uint32_t tsi_jpeg_entropy_pieces(const struct tsi_jpeg_entropy *e);

/* Prepare for the file data[0..len), which is kept until the next file. */
void tsi_jpeg_entropy_open(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_scan *scan,
			   const uint8_t *data, size_t len);

/*
 * Read n pieces, of b->area, into b: blocks of other MCUs stay as they are.
 * After false the content of all is undefined.
 */
bool tsi_jpeg_entropy_read(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_piece *piece, uint32_t n,
			   const struct tsi_jpeg_blocks *b);

/*
 * Read a whole row of MCUs, from its first column on, and record where its
 * columns and the next row begin.  column[i] gets the entry of MCU (i + 1) *
 * step, if there is such a column; step 0: none.  b is for the row's MCUs in
 * its area, whose rows must be one; NULL: they are read over.
 */
bool tsi_jpeg_entropy_record(struct tsi_jpeg_entropy *e,
			     const struct tsi_jpeg_entry *row,
			     const struct tsi_jpeg_blocks *b, uint32_t step,
			     struct tsi_jpeg_entry *column,
			     struct tsi_jpeg_entry *next);

/*
 * Are rows good that end where this entry is?  Not if a marker comes soon which
 * doesn't belong into the data; behind the image's last row, `whole`, if one
 * comes before the file's end.  What it means only libjpeg knows.
 */
bool tsi_jpeg_entropy_ends_well(const struct tsi_jpeg_entropy *e,
				const struct tsi_jpeg_entry *behind,
				bool whole);

#endif
