/* SPDX-License-Identifier: MIT */
/*
 * wide.h - the codes of sixteen pieces of a JPEG file at once.
 *
 * Each of sixteen lanes reads a piece of a row, and vector instructions read a
 * code of every lane in one step, without a branch: of a block's end the
 * processor can't foretell when it comes, so that a decoder which branches
 * there waits once for each block.
 *
 * A lane writes coefficients in zigzag order to memory of its own.  When it has
 * read some MCUs their blocks are brought into natural order, DC differences
 * are summed up, and the memory is cleared again.
 */
#ifndef TSI_JPEG_WIDE_H
#define TSI_JPEG_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"
#include "jpeg/entropy.h"
#include "jpeg/scan.h"
#include "jpeg/wide_lookup.h"
#include "jpeg/window.h"

struct tsi_entropy_kernel;

#define TSI_WIDE_LANES 16
/* Blocks of a lane that are read before they are brought into order. */
#define TSI_WIDE_BLOCKS 48
/* Coefficients from one lane's first to the next one's; a block is spare. */
#define TSI_WIDE_ROOM ((TSI_WIDE_BLOCKS + 1) * 64)

struct tsi_wide_lane {
	const struct tsi_jpeg_piece *piece; /* NULL: the lane is idle */
	uint32_t mcus;                      /* left to read */
	bool skipping;                      /* those left of the piece */
	int32_t pred[TSI_JPEG_COMPS];
	struct tsi_jpeg_cursor blocks; /* that come next */
};

struct tsi_wide {
	/* One number of each lane. */
	_Alignas(64) uint32_t at[TSI_WIDE_LANES]; /* the next code's first bit,
						     from the first window's */
	uint32_t place[TSI_WIDE_LANES]; /* of the last coefficient, in coef */
	uint32_t unit[TSI_WIDE_LANES];  /* the block's number in its MCU */
	uint32_t table[TSI_WIDE_LANES]; /* of the next code, in look[] */
	uint32_t end[TSI_WIDE_LANES];   /* look at the lane at this place */
	uint32_t stop[TSI_WIDE_LANES];  /* and from this bit on */
	/* Tables of a unit: its AC codes', and the next unit's DC codes'. */
	_Alignas(32) uint32_t ac[8];
	_Alignas(32) uint32_t next_dc[8];
	uint32_t units; /* the blocks of an MCU */
	struct tsi_wide_tables tables;
	_Alignas(64) int16_t coef[64 + TSI_WIDE_LANES * TSI_WIDE_ROOM];
	struct tsi_jpeg_window window[TSI_WIDE_LANES];
	uint8_t zeros[64]; /* what idle lanes read */
	/* Not of the vectors. */
	struct tsi_wide_lane lane[TSI_WIDE_LANES];
	_Alignas(64) int16_t spare[64]; /* a block that nobody wants */
	uint8_t spare_last;
	bool dirty; /* coef has to be cleared */
	struct tsi_jpeg_unit units_of[TSI_JPEG_UNITS_MAX];
	struct tsi_jpeg_frame frame;
	const uint8_t *data;
	size_t len;
	const struct tsi_entropy_kernel *kernel;
};

/* Lanes, a bit for each. */
struct tsi_wide_found {
	uint32_t look_at; /* at their end or stop */
	uint32_t slow;    /* at a code that the tables don't have */
	uint32_t damaged;
};

/* Read codes until a lane is found that is to be looked at. */
typedef struct tsi_wide_found tsi_wide_run_fn(struct tsi_wide *w);

/*
 * Bring the blocks of some MCUs from zigzag, which is cleared, to where l has
 * them.  False: a DC coefficient is too large.
 */
typedef bool tsi_wide_settle_fn(const struct tsi_wide *w,
				struct tsi_wide_lane *l, int16_t *zigzag,
				uint32_t mcus);

/*
 * The kernel has wide_run and wide_settle, and lives as long.  NULL: no memory.
 */
struct tsi_wide *tsi_wide_create(const struct tsi_entropy_kernel *kernel);
/* NULL is allowed. */
void tsi_wide_destroy(struct tsi_wide *w);

/*
 * As tsi_jpeg_entropy_open() and tsi_jpeg_entropy_read(); data are those behind
 * the markers.
 */
void tsi_wide_open(struct tsi_wide *w, const struct tsi_jpeg_scan *scan,
		   const uint8_t *data, size_t len);
bool tsi_wide_read(struct tsi_wide *w, const struct tsi_jpeg_piece *piece,
		   uint32_t n, const struct tsi_jpeg_blocks *b);

#endif
