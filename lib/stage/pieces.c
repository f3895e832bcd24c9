/* SPDX-License-Identifier: MIT */
/*
 * pieces.c - samples of one ring and their slots in another, piece by piece.
 */
#include "stage/pieces.h"

#include "base/sequence.h"

int tsi_stage_pieces(const struct tsi_ring *from, const struct tsi_ring *to,
		     uint64_t first, unsigned count, tsi_piece_fn *fn,
		     void *arg)
{
	uint64_t from_slots = tsi_ring_capacity(from);
	uint64_t to_slots = tsi_ring_capacity(to), n;
	int err = 0;

	for (uint64_t q = first; q < first + count && !err; q += n) {
		uint64_t src = tsi_ring_place(from, q);
		uint64_t dst = tsi_ring_place(to, q), at = q % to_slots;

		n = min64(first + count - q,
			  min64(from_slots - q % from_slots, to_slots - at));
		/* What is claimed at once is of one generation; what it is
		 * made of needs not be. */
		n = tsi_ring_in_half(from, q, n);
		for (unsigned f = 0; f < tsi_ring_nfields(to) && !err; f++) {
			uint64_t margin = tsi_ring_margin(to, f);
			struct tsi_piece p = { f, q, dst, src, n };

			err = fn(arg, &p);
			if (err || at >= margin)
				continue;
			p.dst += to_slots;
			p.count = min64(n, margin - at);
			err = fn(arg, &p);
		}
	}
	return err;
}
