/* SPDX-License-Identifier: MIT */
/*
 * pieces.c - samples of one ring and their slots in another, piece by piece.
 */
#include "stage/pieces.h"

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int tsi_stage_pieces(const struct tsi_ring *from_ring,
		     const struct tsi_ring *to_ring, uint64_t first,
		     unsigned count, tsi_piece_fn *fn, void *arg)
{
	const struct tsi_geometry *from = tsi_ring_geometry(from_ring);
	const struct tsi_geometry *to = tsi_ring_geometry(to_ring);
	uint64_t n;
	int err = 0;

	for (uint64_t q = first; q < first + count && !err; q += n) {
		uint64_t src = q % from->capacity, dst = q % to->capacity;

		n = min64(first + count - q,
			  min64(from->capacity - src, to->capacity - dst));
		for (unsigned f = 0; f < to->nfields && !err; f++) {
			uint64_t margin = tsi_geometry_margin(to, f);

			err = fn(arg, f, dst, src, n);
			if (!err && dst < margin)
				err = fn(arg, f, to->capacity + dst, src,
					 min64(n, margin - dst));
		}
	}
	return err;
}
