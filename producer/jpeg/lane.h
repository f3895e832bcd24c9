/* SPDX-License-Identifier: MIT */
/*
 * lane.h - the codes of several rows of MCUs, read in turns.
 *
 * A lane reads one row of MCUs.  Lanes take turns of three codes each, so that
 * while one waits for a table the others go on.  What a lane reads is unstuffed
 * already, and lies within the slack that window.h promises.
 */
#ifndef TSI_JPEG_LANE_H
#define TSI_JPEG_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg/blocks.h"
#include "jpeg/lookup.h"
#include "jpeg/window.h"

#define TSI_LANES 4 /* that take turns at most */
#define TSI_LANE_UNITS TSI_JPEG_UNITS_MAX

/* Bytes that an MCU takes at most, and what may be loaded behind it. */
#define TSI_LANE_MCU_MAX (TSI_LANE_UNITS * (27 + 63 * 26) / 8 + 16)

/*
 * What lanes read from: a window each, the tables of a file, and which of them
 * the blocks of an MCU use.  The windows are in here, and not pointed to, so
 * that lanes need one register for all of it: 6 % of the time.
 */
struct tsi_lanes {
	struct tsi_jpeg_window window[TSI_LANES];
	struct tsi_ac_table ac[TSI_JPEG_COMPS];
	struct tsi_dc_table dc[TSI_JPEG_COMPS];
	unsigned units; /* the blocks of an MCU */
	uint8_t comp[TSI_LANE_UNITS];
	uint8_t ac_of[TSI_JPEG_COMPS]; /* components may share tables */
	uint8_t dc_of[TSI_JPEG_COMPS];
};

struct tsi_jpeg_piece;

struct tsi_lane {
	uint64_t at; /* the next code's first bit, counted from the first
		      window's */
	uint32_t k;  /* the zigzag position of the last coefficient */
	uint32_t unit;
	uint32_t mcus; /* left to read before the lane is looked at */
	int32_t dc;    /* the current block's */
	int16_t *coef;
	const struct tsi_ac_table *ac;
	uint64_t stop; /* look at the lane when this bit is reached */
	int32_t pred[TSI_JPEG_COMPS];
	struct tsi_jpeg_cursor blocks; /* that come next */
	/* The caller's own. */
	const struct tsi_jpeg_piece *piece;
	bool skipping;
};

/* Begin with block l->unit of an MCU.  False: damage. */
bool tsi_lane_begin_block(const struct tsi_lanes *c, struct tsi_lane *l);

/*
 * Let n lanes, 1 to 4, take turns until one is to be looked at, because it has
 * read its MCUs or has reached its stop, or is damaged.  Returns its number, or
 * -1 - its number.
 */
typedef int tsi_lane_run_fn(const struct tsi_lanes *c, struct tsi_lane **lane,
			    int n);

tsi_lane_run_fn tsi_lane_run_scalar;

#endif
