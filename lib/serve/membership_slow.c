/* SPDX-License-Identifier: MIT */
/*
 * membership_slow.c - which reader do other readers wait for?  And how does the
 * stream go on without it?
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

/*
 * The first sample that readers of an active view, or of its dependents,
 * forbid.  There is one: without any the view would not be active.
 */
static uint64_t full_at(const struct tsi_membership *m, unsigned view)
{
	uint64_t gate = min64(tsi_membership_gate(m, view),
			      tsi_membership_kept_start(m, view));

	return gate + m->view[view].capacity;
}

/* Likewise, of the base ring: also those of the views that are written with it. */
static uint64_t full_with_joint(const struct tsi_membership *m, unsigned view)
{
	uint64_t full = full_at(m, view);

	for (unsigned i = 1; i < TSI_VIEWS && !view; i++)
		if (tsi_membership_joint(m, i) != TSI_NEVER)
			full = min64(full, full_at(m, i));
	return full;
}

/* Mark the readers that keep a ring full, for which the waiter waits. */
static void mark_full(const struct tsi_membership *m, unsigned view, int waiter,
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
			mark_full(m, i, waiter, slow);
	}
}

static void mark(const struct tsi_membership *m, unsigned view, int waiter,
		 int slow[TSI_MAX_MEMBERS])
{
	mark_full(m, view, waiter, slow);
	/* What has no room in a view isn't made for the base ring either. */
	for (unsigned i = 1; i < TSI_VIEWS && !view; i++)
		if (tsi_membership_joint(m, i) != TSI_NEVER)
			mark_full(m, i, waiter, slow);
}

/* A reader waits for a head of its view: mark the readers to blame. */
static void blame(const struct tsi_membership *m, int waiter,
		  int slow[TSI_MAX_MEMBERS])
{
	unsigned view = m->member[waiter].view;
	uint64_t want = m->member[waiter].want;

	for (;;) {
		const struct tsi_view_state *v = &m->view[view];

		uint64_t full = full_with_joint(m, view);

		if (want > full && v->claimed >= full)
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

bool tsi_membership_look(struct tsi_membership *m, int64_t now_ms)
{
	int slow[TSI_MAX_MEMBERS];

	if (now_ms - m->looked_ms < LOOK_MS)
		return false;
	m->looked_ms = now_ms;
	find_slow(m, slow);
	for (unsigned i = 0; i < m->rows; i++) {
		struct tsi_member *r = &m->member[i];
		bool holds = slow[i] != NOBODY;

		r->waiter = slow[i];
		r->freed = holds ? 0 : r->freed + 1;
		if (!r->used || r->freed >= FREED)
			r->blocks_ms = -1;
		else if (holds && r->blocks_ms < r->moved_ms)
			r->blocks_ms = now_ms;
	}
	return true;
}

bool tsi_membership_slow(const struct tsi_membership *m, unsigned *id,
			 int64_t slow_ms, struct tsi_slow *out)
{
	for (; *id < m->rows; ++*id) {
		const struct tsi_member *r = &m->member[*id];
		int64_t held = m->looked_ms - r->blocks_ms;

		if (!r->used || r->waiter == NOBODY || held < slow_ms)
			continue;
		*out = (struct tsi_slow){ .id = *id,
					  .waiter = (unsigned)r->waiter,
					  .held_ms = held };
		return true;
	}
	return false;
}

/* ---- what is said of a wait ---- */

static bool has_work(const struct tsi_membership *m, const struct tsi_member *r)
{
	return !waits(m, r) && r->tail < m->view[r->view].head;
}

/* Which of the members marked as slow for this one is furthest behind, among
 * those that have something to read, or among the others? */
static int worst(const struct tsi_membership *m, unsigned id,
		 const int slow[TSI_MAX_MEMBERS], bool working)
{
	int found = NOBODY;

	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		if (i == id || slow[i] == NOBODY || has_work(m, r) != working)
			continue;
		if (found == NOBODY || r->tail < m->member[found].tail)
			found = (int)i;
	}
	return found;
}

/* No member holds it up. */
static enum tsi_awaits awaits_writer(const struct tsi_membership *m,
				     const struct tsi_member *r)
{
	const struct tsi_view_state *base = &m->view[0];
	uint64_t held = tsi_membership_held_from(m);

	if (held != TSI_NEVER && base->claimed >= held + base->capacity)
		return TSI_AWAITS_HOLD;
	if (r->view && r->want <= m->view[m->view[r->view].source].head)
		return TSI_AWAITS_VIEW;
	return TSI_AWAITS_SAMPLES;
}

enum tsi_awaits tsi_membership_awaits(const struct tsi_membership *m,
				      unsigned id, unsigned *member)
{
	int slow[TSI_MAX_MEMBERS];
	int found = (int)id;

	if (!waits(m, &m->member[id]))
		return TSI_AWAITS_NOTHING;
	if (!m->started)
		return TSI_AWAITS_START;
	/* The member that holds it up may itself wait for a third one. */
	for (unsigned i = 0; i < TSI_VIEWS && found != NOBODY; i++) {
		unsigned at = (unsigned)found;

		for (unsigned k = 0; k < m->rows; k++)
			slow[k] = NOBODY;
		if (!m->jumping)
			blame(m, (int)at, slow);
		found = worst(m, at, slow, true);
		if (found != NOBODY && found != (int)id) {
			*member = (unsigned)found;
			return TSI_AWAITS_MEMBER;
		}
		found = worst(m, at, slow, false);
		if (found == (int)id)
			break;
	}
	return awaits_writer(m, &m->member[id]);
}

uint64_t tsi_membership_tail_of(const struct tsi_membership *m, unsigned id)
{
	return m->member[id].tail;
}

int64_t tsi_membership_moved_ms(const struct tsi_membership *m, unsigned id)
{
	return m->member[id].moved_ms;
}

/* ---- detaching ---- */

/*
 * A reader that was detached may look at any sample that was there for it, for
 * as long as its process is stopped.  So the half of the ring in which these
 * samples are is abandoned: nothing is written there.  What is claimed next
 * goes to the other half, as the next generation; the other readers read the
 * samples that were claimed before where they are, so none of them is made
 * twice, and none is copied.
 *
 * A reader enters a generation, by a word in its tail page, before it looks at
 * a sample of it.  Until then all that it may look at is in the other half: it
 * can be detached with those that have that half already.
 *
 * The next generation may begin when nobody needs the half that it will be in.
 */

static int half_of(uint32_t generation)
{
	return (int)((generation - 1) & 1);
}

/* The half that a reader may look into if it can be detached; -1: none. */
static int half_seen(const struct tsi_member *r, const struct tsi_view_state *v)
{
	return r->generation && r->generation + 1 == v->generation
		       ? half_of(r->generation)
		       : -1;
}

uint32_t tsi_membership_generation(const struct tsi_membership *m,
				   unsigned view, uint64_t *since)
{
	*since = m->view[view].since;
	return m->view[view].generation;
}

void tsi_membership_entered(struct tsi_membership *m, unsigned id,
			    uint32_t generation)
{
	struct tsi_member *r = &m->member[id];
	uint32_t newest = m->view[r->view].generation;

	/* Only forward, and one that says what can't be may be anywhere. */
	if (generation > newest)
		generation = newest;
	if (generation > r->generation)
		r->generation = generation;
}

/* Does nobody need the half that isn't written into?  The view has a reader. */
static bool other_half_is_free(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];

	return !v->abandoned[half_of(v->generation + 1)] &&
	       v->head >= v->since &&
	       tsi_membership_gate(m, view) >= v->since &&
	       tsi_membership_kept_start(m, view) >= v->since &&
	       tsi_membership_held_from(m) >= v->since &&
	       !(view == 0 && m->jumping);
}

enum tsi_detach tsi_membership_may_detach(const struct tsi_membership *m,
					  unsigned id)
{
	const struct tsi_member *r = &m->member[id];

	if (r->generation < m->view[r->view].generation)
		return TSI_DETACH_FREE;
	return other_half_is_free(m, r->view) ? TSI_DETACH_TURN
					      : TSI_DETACH_NEVER;
}

static void turn(struct tsi_view_state *v)
{
	/* What is left in the other half can't be begun with any more. */
	v->base = max64(v->base, v->since);
	v->generation++;
	v->since = v->claimed;
}

void tsi_membership_detach(struct tsi_membership *m, unsigned id)
{
	struct tsi_member *r = &m->member[id];
	struct tsi_view_state *v = &m->view[r->view];

	if (tsi_membership_may_detach(m, id) == TSI_DETACH_TURN)
		turn(v);
	r->half = half_seen(r, v);
	r->detached = true;
	if (r->half >= 0)
		v->abandoned[r->half]++;
	tsi_membership_leave(m, id);
}

void tsi_membership_let_go(struct tsi_membership *m, unsigned id)
{
	struct tsi_member *r = &m->member[id];

	if (r->half >= 0)
		m->view[r->view].abandoned[r->half]--;
	r->detached = false;
}

bool tsi_membership_is_detached(const struct tsi_membership *m, unsigned id)
{
	return m->member[id].detached;
}

bool tsi_membership_has_detached(const struct tsi_membership *m, unsigned view)
{
	for (unsigned i = 0; i < TSI_MAX_MEMBERS; i++)
		if (m->member[i].detached && m->member[i].view == view)
			return true;
	return false;
}

bool tsi_membership_next_row(const struct tsi_membership *m, unsigned *id)
{
	while (*id < TSI_MAX_MEMBERS && !m->member[*id].used &&
	       !m->member[*id].detached)
		++*id;
	return *id < TSI_MAX_MEMBERS;
}

unsigned tsi_membership_view(const struct tsi_membership *m, unsigned id)
{
	return m->member[id].view;
}

bool tsi_membership_has(const struct tsi_membership *m, unsigned id,
			unsigned view)
{
	const struct tsi_member *r = &m->member[id];

	return (r->used || r->detached) && r->view == view;
}
