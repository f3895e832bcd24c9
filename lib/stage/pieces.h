/* SPDX-License-Identifier: MIT */
/*
 * pieces.h - samples of one ring and their slots in another, piece by piece.
 */
#ifndef TSI_STAGE_PIECES_H
#define TSI_STAGE_PIECES_H

#include <stdint.h>

#include "ring/ring.h"

/*
 * count samples of a field, from slot src of a ring to slot dst of another.
 * sample is the number of the first.
 */
struct tsi_piece {
	unsigned field;
	uint64_t sample, dst, src, count;
};

typedef int tsi_piece_fn(void *arg, const struct tsi_piece *p);

/*
 * Call fn for every piece of the samples first .. first+count-1 that is one
 * piece in both rings, and again for what the target's margin repeats of it.
 * Returns fn's first error.
 */
int tsi_stage_pieces(const struct tsi_ring *from, const struct tsi_ring *to,
		     uint64_t first, unsigned count, tsi_piece_fn *fn,
		     void *arg);

#endif
