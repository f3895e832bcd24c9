/* SPDX-License-Identifier: MIT */
/*
 * membership_slow.c - which reader do other readers wait for?
 *
 * A reader is slow when another reader waits for a sample that can't be made
 * because of a sample that the first one still needs.  So the search begins
 * with the readers that wait, goes up from their views to the ring that is
 * full, and from there down to the reader that keeps the ring full, which may
 * read a view made of a view.  A reader that pauses while no other reader waits
 * is not slow, nor is a reader that waits itself.
 */
#include "serve/membership_parts.h"

#define LOOK_MS 50 /* no two looks are closer */
#define FREED 2    /* looks without a waiter; readers may wait in slices */

void tsi_membership_want(struct tsi_membership *m, unsigned id, uint64_t want)
{
	m->member[id].want = want;
}

static bool waits(const struct tsi_membership *m, const struct tsi_member *r)
{
	const struct tsi_view_state *v = &m->view[r->view];

	/* Beyond its own tail's capacity a reader waits in vain, or lies. */
	return r->want > v->head && r->want - r->tail <= v->capacity;
}

/* The first sample that readers of a view, or of its dependents, forbid. */
static uint64_t full_at(const struct tsi_membership *m, unsigned view)
{
	uint64_t gate = min64(tsi_membership_gate(m, view),
			      tsi_membership_kept_start(m, view));

	return gate == TSI_NEVER ? gate : gate + m->view[view].capacity;
}

/* Mark the readers that keep a ring full. */
static void mark(const struct tsi_membership *m, unsigned view,
		 bool slow[TSI_MAX_MEMBERS])
{
	uint64_t gate = tsi_membership_gate(m, view);
	uint64_t start = tsi_membership_kept_start(m, view);

	if (m->view[view].claimed < full_at(m, view))
		return; /* the ring isn't full: samples are being made */
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		if (!r->used)
			continue;
		if (r->view == view && gate <= start)
			slow[i] |= tsi_membership_reach(m, r) <= gate;
		else if (start <= gate &&
			 tsi_membership_may_start(m, r, start) &&
			 tsi_membership_made_of(m, r->view, view))
			slow[i] |= tsi_membership_reach(m, r) <= start;
	}
	for (unsigned i = 1; i < TSI_VIEWS && gate <= start; i++) {
		const struct tsi_view_state *v = &m->view[i];

		if (v->active && v->head <= gate &&
		    (v->source == view || (view == 0 && v->needs_base)))
			mark(m, i, slow);
	}
}

/* A reader waits for a head of that view: mark the readers to blame. */
static void blame(const struct tsi_membership *m, unsigned view, uint64_t want,
		  bool slow[TSI_MAX_MEMBERS])
{
	for (;;) {
		const struct tsi_view_state *v = &m->view[view];

		if (want > full_at(m, view) && v->claimed >= full_at(m, view))
			mark(m, view, slow);
		if (!view || want <= m->view[v->source].head)
			return;
		view = v->source;
	}
}

/* The readers whose tails other readers wait for now. */
static void find_slow(const struct tsi_membership *m,
		      bool slow[TSI_MAX_MEMBERS])
{
	uint64_t want[TSI_VIEWS] = { 0 };

	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		slow[i] = false;
		if (r->used && waits(m, r))
			want[r->view] = max64(want[r->view], r->want);
	}
	for (unsigned i = 0; i < TSI_VIEWS && m->started && !m->jumping; i++)
		if (want[i])
			blame(m, i, want[i], slow);
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		/* A reader that has nothing to read isn't slow. */
		slow[i] = slow[i] && !waits(m, r) &&
			  r->tail < m->view[r->view].head;
	}
}

int tsi_membership_slowest(struct tsi_membership *m, int64_t now_ms,
			   int64_t slow_ms)
{
	bool slow[TSI_MAX_MEMBERS];
	int found = -1;

	if (now_ms - m->looked_ms < LOOK_MS)
		return -1;
	m->looked_ms = now_ms;
	find_slow(m, slow);
	for (unsigned i = 0; i < m->rows; i++) {
		struct tsi_member *r = &m->member[i];

		r->freed = slow[i] ? 0 : r->freed + 1;
		if (!r->used || r->freed >= FREED)
			r->blocks_ms = -1;
		else if (slow[i] && r->blocks_ms < r->moved_ms)
			r->blocks_ms = now_ms;
		if (slow[i] && found < 0 && now_ms - r->blocks_ms >= slow_ms)
			found = (int)i;
	}
	return found;
}
