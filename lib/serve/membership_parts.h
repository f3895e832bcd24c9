/*
 * membership_parts.h - what the files of the state machine have in common.
 */
#ifndef TSI_SERVE_MEMBERSHIP_PARTS_H
#define TSI_SERVE_MEMBERSHIP_PARTS_H

#include "serve/membership.h"

static inline uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- membership_start.c ---- */

/* The first start of an epoch, or of a segment by join, at or beyond s. */
uint64_t tsi_membership_boundary(const struct tsi_membership *m, uint32_t join,
				 uint64_t s);

/* Are all samples from q on that there are still in the ring? */
bool tsi_membership_held(const struct tsi_view_state *v, uint64_t q);

/* The first sample that a member needs of those that there are. */
uint64_t tsi_membership_reach(const struct tsi_membership *m,
			      const struct tsi_member *r);

/* How far it has come in what was made; a view may begin beyond that. */
uint64_t tsi_membership_progress(const struct tsi_membership *m,
				 const struct tsi_member *r);

/* The pin of a view: the sequence number that it keeps, or TSI_NEVER. */
uint64_t tsi_membership_pin(const struct tsi_membership *m, unsigned view);

/* The next start of all readers of the views made of that one; likewise. */
uint64_t tsi_membership_kept_start(const struct tsi_membership *m,
				   unsigned view);

/* Is there a member that isn't beyond the stream's end? */
bool tsi_membership_needed(const struct tsi_membership *m);

/* The ring that a new reader of view begins from: the view itself, or what it
 * will be made of. */
const struct tsi_view_state *
tsi_membership_origin(const struct tsi_membership *m, unsigned view);

/* ---- membership.c ---- */

/* The least that readers of a view, and stages, still need; or TSI_NEVER. */
uint64_t tsi_membership_gate(const struct tsi_membership *m, unsigned view);

#endif
