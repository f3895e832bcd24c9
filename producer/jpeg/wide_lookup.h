/* SPDX-License-Identifier: MIT */
/*
 * wide_lookup.h - tables by which wide.c reads Huffman codes: small
 * ones, of 16 bits an entry, for they have to stay in the first-level cache
 * together with the data of sixteen lanes.
 *
 * An entry tells of the bits that it was found by, bit 0 being the lowest: bits
 * 0 to 4, how many of them code and magnitude have together; 5 to 8, how many
 * of these are the magnitude's; 9 to 13, by how many coefficients the code
 * advances; 14, set if the magnitude is negative; 15, set at a block's end.
 */
#ifndef TSI_JPEG_WIDE_LOOKUP_H
#define TSI_JPEG_WIDE_LOOKUP_H

#include <stdint.h>

#include "jpeg/lookup.h"
#include "jpeg/scan.h"

/* Bits that a look-up sees, and all that a code and its magnitude may have. */
#define TSI_WIDE_LOOK 11
#define TSI_WIDE_BITS_MAX 19

/* Fields of an entry. */
#define TSI_WIDE_TOTAL 31
#define TSI_WIDE_SIZE_SHIFT 5
#define TSI_WIDE_ADVANCE_SHIFT 9
#define TSI_WIDE_NEGATIVE (1 << 14)
#define TSI_WIDE_END (1 << 15)
/* The bits in all: the code is to be read by its lengths, one by one. */
#define TSI_WIDE_SLOW 31

/* AC tables' codes of 12 bits and more, by 17 bits from the first on. */
#define TSI_WIDE_LONG 17
#define TSI_WIDE_LONGS 4096

/* Tables: those of three components' AC codes, then those of their DC codes. */
#define TSI_WIDE_TABLES (2 * TSI_JPEG_COMPS)

struct tsi_wide_tables {
	/* For each table, the first code that `longs` has, and how many
	 * entries. */
	_Alignas(32) uint32_t long_first[8];
	_Alignas(32) uint32_t long_count[8];
	/* Behind the last table one entry that does nothing, and its padding:
	 * entries are loaded two at a time. */
	uint16_t look[(TSI_WIDE_TABLES << TSI_WIDE_LOOK) + 2];
	uint16_t longs[TSI_JPEG_COMPS * TSI_WIDE_LONGS + 2];
	struct tsi_codes codes[TSI_WIDE_TABLES];
};

/* Where table t begins in look[]. */
#define TSI_WIDE_TABLE(t) ((uint32_t)(t) << TSI_WIDE_LOOK)
/* Where the entry is that does nothing. */
#define TSI_WIDE_IDLE TSI_WIDE_TABLE(TSI_WIDE_TABLES)

/* Make table t, 0 to TSI_WIDE_TABLES - 1. */
void tsi_wide_lookup(struct tsi_wide_tables *w, unsigned t,
		     const struct tsi_jpeg_codes *codes);

#endif
