/* SPDX-License-Identifier: MIT */
/*
 * membership_parts.h - what the files of the state machine have in common.
 */
#ifndef TSI_SERVE_MEMBERSHIP_PARTS_H
#define TSI_SERVE_MEMBERSHIP_PARTS_H

#include "serve/membership.h"

/* The first multiple of n at or beyond s, counted from start on. */
static inline uint64_t multiple64(uint64_t start, uint64_t n, uint64_t s)
{
	return start + (s - start + n - 1) / n * n;
}

/* ---- membership_start.c ---- */

/* The first start of an epoch, or of a segment by join, at or beyond s. */
uint64_t tsi_membership_boundary(const struct tsi_membership *m, uint32_t join,
				 uint64_t s);

/* Can a start, of an epoch or a segment, be the next one of this member? */
bool tsi_membership_may_start(const struct tsi_membership *m,
			      const struct tsi_member *r, uint64_t start);

/* Does the ring still hold all samples from q on that were made? */
bool tsi_membership_held(const struct tsi_view_state *v, uint64_t q);

/*
 * The end of the epoch that has sample s, or of the stream, where epochs follow
 * one another and one of them ends at end.
 */
uint64_t tsi_membership_end_of(const struct tsi_membership *m, uint64_t end,
			       uint64_t s);

/* How far a member has come in its view: min(tail, head). */
uint64_t tsi_membership_reach(const struct tsi_membership *m,
			      const struct tsi_member *r);

/* How far it has come in the base ring; a view may begin beyond that head. */
uint64_t tsi_membership_progress(const struct tsi_membership *m,
				 const struct tsi_member *r);

/* The pin of a view: the sequence number that it keeps, or TSI_NEVER. */
uint64_t tsi_membership_pin(const struct tsi_membership *m, unsigned view);

/*
 * The first start that not all readers of the views made of this ring have
 * passed; the ring keeps it.  TSI_NEVER without such readers.
 */
uint64_t tsi_membership_kept_start(const struct tsi_membership *m,
				   unsigned view);

/* Is there a member that isn't beyond the stream's end? */
bool tsi_membership_needed(const struct tsi_membership *m);

/*
 * The ring from which a new reader of the view begins: the view itself, or,
 * while the view isn't active, the ring that it will be made of.
 */
const struct tsi_view_state *
tsi_membership_origin(const struct tsi_membership *m, unsigned view);

/* Does the stream have to jump to the start that this join gets? */
bool tsi_membership_must_jump(const struct tsi_membership *m,
			      const struct tsi_join *j, uint64_t start);

/*
 * Does a join ask (from) for a start that is too far for a stream with readers
 * of several jobs: more than two epochs beyond what was claimed, or what such
 * readers wait for?
 */
bool tsi_membership_is_far(const struct tsi_membership *m,
			   const struct tsi_join *j, uint64_t start);

/* A view, which no reader has, begins anew at from. */
void tsi_membership_begin_at(struct tsi_membership *m, struct tsi_view_state *v,
			     uint64_t from);

/* ---- views that workers write with the base ring ---- */

/* The view begins with what the base ring hands out next, or ends. */
void tsi_membership_begin_joint(const struct tsi_membership *m,
				struct tsi_view_state *v);
void tsi_membership_end_joint(const struct tsi_membership *m,
			      struct tsi_view_state *v);

/* The base ring handed out samples; or has jumped, with nothing under way. */
void tsi_membership_claim_joint(struct tsi_membership *m);
void tsi_membership_jump_joint(struct tsi_membership *m);

/* The view's stage, or the base ring, published samples. */
void tsi_membership_follow_base(const struct tsi_membership *m,
				struct tsi_view_state *v);
void tsi_membership_lead_joint(struct tsi_membership *m);

/* ---- membership.c ---- */

/* The first sample that a view's readers, or stages, still need; or TSI_NEVER.
 */
uint64_t tsi_membership_gate(const struct tsi_membership *m, unsigned view);

#endif
