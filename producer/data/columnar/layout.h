/* SPDX-License-Identifier: MIT */
/*
 * layout.h - the file of a table: a sample is ranges of bytes in other files,
 * and values of its own.
 *
 * docs/reference/table.md describes it for authors of writers.  Numbers are
 * little-endian; a column begins at a multiple of 64.
 */
#ifndef TSI_DATA_COLUMNAR_LAYOUT_H
#define TSI_DATA_COLUMNAR_LAYOUT_H

#include <stdint.h>

#define TSI_COLUMNAR_MAGIC "tsocktbl"
#define TSI_COLUMNAR_VERSION 1u
#define TSI_COLUMNAR_ENDIAN 0x01020304u
#define TSI_COLUMNAR_COLUMNS 64u

struct tsi_columnar_head {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint64_t rows;
	uint64_t bytes;   /* of the whole file */
	uint32_t columns; /* entries that follow */
	uint32_t crc;     /* CRC-32 of the head with 0 here, and the entries */
	uint8_t reserved[24];
};

/*
 * Columns of the table that tsock-pack writes of samples that lie in files as
 * arrays: images as their pixels, u8 [height, width, channels] or [channels,
 * height, width]; and the recipes of training and evaluation where none is asked
 * for.  A field whose name means something here has ESCAPE in front of it.
 */
#define TSI_COLUMNAR_PIXELS "pack.pixels"
#define TSI_COLUMNAR_PLANES "pack.planes"
#define TSI_COLUMNAR_RECIPES "pack.recipes"
#define TSI_COLUMNAR_ESCAPE '='

enum tsi_columnar_kind {
	TSI_COLUMNAR_VALUES = 1, /* arrays of numbers, all of one shape */
	TSI_COLUMNAR_RANGES = 2, /* struct tsi_columnar_range */
	/* count + 1 u64, where each text begins behind them, and where the last
	 * one ends; then the texts, each ended by a zero. */
	TSI_COLUMNAR_TEXT = 3,
	/* Arrays of several lengths.  count + 1 u64: the number of the first
	 * item of each row, and of all items; then the items, of one shape. */
	TSI_COLUMNAR_RAGGED = 4,
};

struct tsi_columnar_entry {
	char name[48]; /* zeros behind it, at least one */
	uint32_t kind;
	uint32_t dtype; /* VALUES, RAGGED: enum tsock_dtype */
	uint32_t ndim;  /* of a row, at most 4; RAGGED: of an item, at most 3 */
	uint32_t shape[4];
	uint32_t crc; /* CRC-32 of the column's bytes */
	uint64_t count;
	uint64_t offset; /* in the file */
	uint64_t bytes;
	uint8_t pad[8]; /* RAGGED: the value behind those of a row */
	uint8_t reserved[16];
};

struct tsi_columnar_range {
	uint64_t offset;
	uint32_t length; /* 0 with offset 0: the whole file */
	uint32_t file;   /* a number of the column "files" */
};

#endif
