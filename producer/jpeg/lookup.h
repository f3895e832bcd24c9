/* SPDX-License-Identifier: MIT */
/*
 * lookup.h - tables by which entropy.c reads Huffman codes.
 *
 * An entry of a look-up table tells of the bits that it was found by: byte 0,
 * how many of them code and magnitude have together; byte 1, by how many
 * coefficients the code advances; byte 2, how many bits the magnitude has; and
 * of an AC table all bits of byte 3 are set if the magnitude is negative.
 */
#ifndef TSI_JPEG_LOOKUP_H
#define TSI_JPEG_LOOKUP_H

#include <stdint.h>

#include "jpeg/scan.h"

/* Bits that a look-up sees. */
#define TSI_AC_LOOK 11
#define TSI_DC_LOOK 9
/* Bits of a magnitude: of no image of 8 bits there are more. */
#define TSI_AC_SIZE_MAX 10
#define TSI_DC_SIZE_MAX 11

/* Advances: a block's end, and a code that takes longer. */
#define TSI_BLOCK_END 128
#define TSI_LONG_CODE 192

/* A Huffman table's codes by length. */
struct tsi_codes {
	uint32_t end[18]; /* the last code of a length, plus 1, as 16 bits */
	int32_t symbol_of[17]; /* to be added to a code */
	uint8_t symbol[256];
};

struct tsi_dc_table {
	uint32_t look[1 << TSI_DC_LOOK];
	struct tsi_codes codes;
};

struct tsi_ac_table {
	uint32_t look[1 << TSI_AC_LOOK];
	struct tsi_codes codes;
};

/*
 * Make the tables of codes that tsi_jpeg_scan_read() has found.  A code that
 * the look-up doesn't see whole, or whose symbol it has no room for, is a
 * TSI_LONG_CODE of 0 bits; one without a meaning is, too.
 */
void tsi_lookup_dc(const struct tsi_jpeg_codes *t, struct tsi_dc_table *d);
void tsi_lookup_ac(const struct tsi_jpeg_codes *t, struct tsi_ac_table *a);

/* The codes of a table by their lengths; the two above make them, too. */
void tsi_lookup_codes(const struct tsi_jpeg_codes *t, struct tsi_codes *c);

/* The symbol of the code at the top of v and its length; -1: there is none. */
int tsi_lookup_code(const struct tsi_codes *c, uint64_t v, unsigned *bits);

#endif
