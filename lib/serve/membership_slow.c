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
#define NOBODY (-1)

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

/* Mark the readers that keep a ring full, for which the waiter waits. */
static void mark(const struct tsi_membership *m, unsigned view, int waiter,
		 int slow[TSI_MAX_MEMBERS])
{
	uint64_t gate = tsi_membership_gate(m, view);
	uint64_t start = tsi_membership_kept_start(m, view);

	if (m->view[view].claimed < full_at(m, view))
		return; /* the ring isn't full: samples are being made */
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		if (!r->used)
			continue;
		if (r->view == view && gate <= start) {
			if (tsi_membership_reach(m, r) <= gate)
				slow[i] = waiter;
		} else if (start <= gate &&
			   tsi_membership_may_start(m, r, start) &&
			   tsi_membership_made_of(m, r->view, view)) {
			if (tsi_membership_reach(m, r) <= start)
				slow[i] = waiter;
		}
	}
	for (unsigned i = 1; i < TSI_VIEWS && gate <= start; i++) {
		const struct tsi_view_state *v = &m->view[i];

		if (v->active && v->head <= gate &&
		    (v->source == view || (view == 0 && v->needs_base)))
			mark(m, i, waiter, slow);
	}
}

/* A reader waits for a head of its view: mark the readers to blame. */
static void blame(const struct tsi_membership *m, int waiter,
		  int slow[TSI_MAX_MEMBERS])
{
	unsigned view = m->member[waiter].view;
	uint64_t want = m->member[waiter].want;

	for (;;) {
		const struct tsi_view_state *v = &m->view[view];

		if (want > full_at(m, view) && v->claimed >= full_at(m, view))
			mark(m, view, waiter, slow);
		if (!view || want <= m->view[v->source].head)
			return;
		view = v->source;
	}
}

/* For each reader another one that waits for its tail now; or NOBODY. */
static void find_slow(const struct tsi_membership *m, int slow[TSI_MAX_MEMBERS])
{
	int waiter[TSI_VIEWS]; /* that wants the highest head of a view */

	for (unsigned i = 0; i < TSI_VIEWS; i++)
		waiter[i] = NOBODY;
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];
		int *most = &waiter[r->view];

		slow[i] = NOBODY;
		if (!r->used || !waits(m, r))
			continue;
		if (*most == NOBODY || m->member[*most].want < r->want)
			*most = (int)i;
	}
	for (unsigned i = 0; i < TSI_VIEWS && m->started && !m->jumping; i++)
		if (waiter[i] != NOBODY)
			blame(m, waiter[i], slow);
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		/* A reader that has nothing to read isn't slow. */
		if (waits(m, r) || r->tail >= m->view[r->view].head)
			slow[i] = NOBODY;
	}
}

bool tsi_membership_slowest(struct tsi_membership *m, int64_t now_ms,
			    int64_t slow_ms, struct tsi_slow *out)
{
	int slow[TSI_MAX_MEMBERS];
	bool found = false;

	if (now_ms - m->looked_ms < LOOK_MS)
		return false;
	m->looked_ms = now_ms;
	find_slow(m, slow);
	for (unsigned i = 0; i < m->rows; i++) {
		struct tsi_member *r = &m->member[i];
		bool holds = slow[i] != NOBODY;

		r->freed = holds ? 0 : r->freed + 1;
		if (!r->used || r->freed >= FREED)
			r->blocks_ms = -1;
		else if (holds && r->blocks_ms < r->moved_ms)
			r->blocks_ms = now_ms;
		if (!holds || found || now_ms - r->blocks_ms < slow_ms)
			continue;
		found = true;
		*out = (struct tsi_slow){ .id = i,
					  .waiter = (unsigned)slow[i],
					  .held_ms = now_ms - r->blocks_ms };
	}
	return found;
}
