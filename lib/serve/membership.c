/* SPDX-License-Identifier: MIT */
/*
 * membership.c - who reads, and how far the writers may go.
 *
 * The rules of where readers start are in membership_start.c.
 */
#include "serve/membership_parts.h"

#include <string.h>

#include "base/err.h"

#define AHEAD 65536 /* epochs; a reader whose batches never fill skips all */

/* ---- jumps ---- */

static void jump_to(struct tsi_membership *m, uint64_t target)
{
	m->jumping = true;
	m->target = target;
	m->furthest = max64(m->furthest, m->view[0].claimed);
	m->common = max64(m->common, m->view[0].claimed);
	m->greatest = min64(m->greatest, target);
}

/*
 * All members that are left may be waiting for starts that are still to come.
 * No member needs the samples before these, so they are not made.
 */
static void skip_to_waiting(struct tsi_membership *m)
{
	uint64_t first = TSI_NEVER;

	if (m->hold != TSI_NEVER)
		return;
	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];

		/* A member beyond the stream's end needs nothing. */
		if (!r->used || r->tail >= m->c.end)
			continue;
		/* Beyond the last claim nothing was read, although the tail of
		 * a rank is at its own first batch already. */
		first = min64(first, r->start);
	}
	if (first != TSI_NEVER && first <= m->kept &&
	    first > m->view[0].claimed && !m->jumping)
		jump_to(m, first);
}

/* ---- joining and leaving ---- */

void tsi_membership_init(struct tsi_membership *m,
			 const struct tsi_membership_config *c)
{
	memset(m, 0, sizeof(*m));
	m->c = *c;
	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		m->view[i].reading = TSI_NEVER;
		m->view[i].joint = TSI_NEVER;
		m->view[i].generation = 1;
	}
	m->view[0].active = true;
	m->view[0].capacity = c->capacity;
	m->hold = m->kept = TSI_NEVER;
	m->first_end = c->end;
	tsi_membership_begin_at(m, &m->view[0], c->first);
	m->greatest = m->last = c->first;
	m->furthest = m->common = c->first;
}

void tsi_membership_hold(struct tsi_membership *m, uint64_t from)
{
	struct tsi_view_state *base = &m->view[0];

	m->furthest = max64(m->furthest, max64(base->claimed, from));
	m->common = max64(m->common, max64(base->claimed, from));
	tsi_membership_begin_at(m, base, from);
	tsi_membership_jump_joint(m);
	m->hold = m->greatest = m->last = from;
	m->jumping = false;
}

void tsi_membership_follow_hold(struct tsi_membership *m, uint64_t from)
{
	if (m->hold == TSI_NEVER)
		return;
	/* A sample that isn't made need not be kept. */
	m->hold = max64(m->hold, min64(from, m->view[0].head));
}

void tsi_membership_give_up_hold(struct tsi_membership *m)
{
	if (m->hold == TSI_NEVER)
		return;
	m->hold = TSI_NEVER;
	skip_to_waiting(m);
}

uint64_t tsi_membership_kept(const struct tsi_membership *m)
{
	return m->kept;
}

void tsi_membership_keep(struct tsi_membership *m, uint64_t from)
{
	bool fewer = from > m->kept;

	m->kept = from;
	if (fewer)
		skip_to_waiting(m);
}

void tsi_membership_source(struct tsi_membership *m, unsigned view,
			   unsigned source, uint64_t capacity, bool needs_base)
{
	struct tsi_view_state *v = &m->view[view];

	v->source = source;
	v->capacity = capacity;
	v->needs_base = needs_base;
	if (v->active)
		return;
	v->with_base = false;
	/* The ring is a new one. */
	v->generation = 1;
	v->since = 0;
}

/*
 * A view and its source begin as far back as they can, so that later members
 * can still join them.
 */
static void open_views(struct tsi_membership *m, unsigned view, uint64_t start,
		       unsigned *opened)
{
	struct tsi_view_state *v = &m->view[view];
	const struct tsi_view_state *origin = tsi_membership_origin(m, view);
	uint64_t pin = tsi_membership_pin(m, (unsigned)(origin - m->view));
	uint64_t from = pin < start && !m->jumping ? pin : start;

	/* Those that have still to come may need samples before it. */
	from = min64(from, tsi_membership_held_from(m));

	if (v->active)
		return;
	open_views(m, v->source, start, opened);
	v->active = true;
	tsi_membership_begin_at(m, v, from);
	*opened |= 1u << view;
}

int tsi_membership_join(struct tsi_membership *m, const struct tsi_join *j,
			int64_t now_ms, struct tsi_joined *out)
{
	struct tsi_joined c = { .id = 0 };
	int err = tsi_membership_forecast(m, j, &c.start);

	if (err)
		return err;
	while (c.id < TSI_MAX_MEMBERS &&
	       (m->member[c.id].used || m->member[c.id].detached))
		c.id++;
	if (c.id == TSI_MAX_MEMBERS)
		return tsi_err(TSOCK_EREFUSED,
			       "the stream has %d consumers already, the most "
			       "that it can have",
			       TSI_MAX_MEMBERS);
	if (tsi_membership_must_jump(m, j, c.start))
		jump_to(m, c.start);
	open_views(m, j->view, c.start, &c.opened);
	m->member[c.id] = (struct tsi_member){
		.used = true,
		.by_segment = j->join == TSOCK_JOIN_SEGMENT && j->leaves,
		.view = j->view,
		.start = c.start,
		.tail = c.start,
		.moved_ms = now_ms,
		.blocks_ms = -1,
		.waiter = -1,
	};
	m->count++;
	if (m->rows <= c.id)
		m->rows = c.id + 1;
	m->furthest = max64(m->furthest, c.start);
	if (!tsi_membership_is_far(m, j, c.start))
		m->common = max64(m->common, c.start);
	/* A stream that is held for its readers, or that somebody goes on
	 * with, had begun before. */
	if (m->count >= m->c.min_members || m->hold != TSI_NEVER || j->returns)
		m->started = true;
	c.epoch_end = c.start + m->c.epoch_len;
	if (j->exact && j->end)
		c.epoch_end = j->end;
	else if (j->detached && j->end)
		c.epoch_end = tsi_membership_end_of(m, j->end, c.start);
	else if (j->join == TSOCK_JOIN_NOW && !j->after)
		c.epoch_end = tsi_membership_boundary(m, TSOCK_JOIN_EPOCH,
						      c.start + 1);
	*out = c;
	return 0;
}

/* No reader skips further ahead of the last claim than this. */
static uint64_t tail_bound(const struct tsi_membership *m,
			   const struct tsi_member *r)
{
	uint64_t from = max64(max64(r->start, m->view[0].claimed),
			      m->jumping ? m->target : 0);
	uint64_t ahead = AHEAD * m->c.epoch_len;

	return min64(m->first_end, min64(from + ahead, TSI_LAST));
}

/*
 * How far a member has come that stands at the stream's end.  Samples that it
 * doesn't look at may be missing still: all in its view, and the last ones of
 * the last epoch, once that was begun.
 */
static uint64_t progress_at_end(const struct tsi_membership *m)
{
	uint64_t head = m->view[0].head;

	return head + m->c.epoch_len > m->c.end ? m->c.end : head;
}

/* A sample that isn't made can't have been read, whatever a tail says. */
static void note_progress(struct tsi_membership *m, const struct tsi_member *r,
			  bool last)
{
	uint64_t place = r->tail >= m->c.end ? progress_at_end(m)
					     : tsi_membership_progress(m, r);

	m->greatest = max64(m->greatest, place);
	if (last)
		m->last = place;
}

int tsi_membership_tail(struct tsi_membership *m, unsigned id, uint64_t tail,
			int64_t now_ms)
{
	struct tsi_member *r = &m->member[id];

	tail = max64(tail, r->start);
	if (tail == r->tail)
		return 0;
	if (tail < r->tail || tail > tail_bound(m, r))
		return tsi_err(TSOCK_EPROTO,
			       "a consumer moved its tail from %llu to %llu",
			       (unsigned long long)r->tail,
			       (unsigned long long)tail);
	r->tail = tail;
	r->moved_ms = now_ms;
	note_progress(m, r, tail >= m->c.end);
	return 0;
}

/* A view without readers ends, and then perhaps its source. */
static void close_views(struct tsi_membership *m, unsigned view)
{
	if (!view)
		return;
	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used && m->member[i].view == view)
			return;
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (m->view[i].active && m->view[i].source == view)
			return;
	tsi_membership_end_joint(m, &m->view[view]);
	m->view[view].active = false;
	close_views(m, m->view[view].source);
}

bool tsi_membership_fall_back_to_base(struct tsi_membership *m, unsigned view)
{
	struct tsi_view_state *v = &m->view[view];
	const struct tsi_view_state *base = &m->view[0];
	unsigned lost = v->source;

	if (v->active && !tsi_membership_held(base, v->head))
		return false;
	/* Samples that were claimed and never came have spoilt their slots. */
	if (v->claimed > v->capacity)
		v->base = max64(v->base, v->claimed - v->capacity);
	v->claimed = v->taken = v->head;
	v->opening++;
	v->reading = TSI_NEVER;
	v->source = 0;
	v->needs_base = false;
	close_views(m, lost);
	return true;
}

void tsi_membership_leave(struct tsi_membership *m, unsigned id)
{
	unsigned view = m->member[id].view;

	note_progress(m, &m->member[id], m->member[id].tail < m->c.end);
	m->member[id].used = false;
	m->count--;
	while (m->rows && !m->member[m->rows - 1].used)
		m->rows--;
	close_views(m, view);
	skip_to_waiting(m);
}

bool tsi_membership_lacks_members(const struct tsi_membership *m)
{
	return m->count && !m->started;
}

unsigned tsi_membership_lacks(const struct tsi_membership *m)
{
	return m->started || m->count >= m->c.min_members
		       ? 0
		       : m->c.min_members - m->count;
}

void tsi_membership_start(struct tsi_membership *m)
{
	m->started = true;
}

/* ---- the end ---- */

/* Where the epoch ends that the reader is in, or will begin with. */
static uint64_t epoch_end_of(const struct tsi_membership *m,
			     const struct tsi_member *r)
{
	uint64_t at = min64(r->tail, m->view[0].claimed);

	return multiple64(r->start, m->c.epoch_len, max64(at, r->start + 1));
}

int tsi_membership_end_after(struct tsi_membership *m, uint64_t epoch)
{
	/* Without members nobody has seen what was made ahead. */
	uint64_t seen = m->count ? m->view[0].claimed : m->greatest;
	uint64_t least = max64(seen, m->c.first + 1);
	uint64_t n = m->c.epoch_len;

	if (epoch >= TSI_LAST / n)
		return tsi_err(TSOCK_EARG, "no stream comes to epoch %llu",
			       (unsigned long long)epoch);
	if (tsi_membership_held_from(m) != TSI_NEVER)
		return TSOCK_EAGAIN;
	if (m->jumping)
		least = max64(least, m->target + 1);
	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used)
			least = max64(least, epoch_end_of(m, &m->member[i]));
	least = multiple64(0, n, least);
	m->c.end = min64(m->c.end, max64(least, (epoch + 1) * n));
	/* A member may have read up to there before that was the end. */
	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used && m->member[i].tail >= m->c.end)
			note_progress(m, &m->member[i], true);
	return 0;
}

uint64_t tsi_membership_end(const struct tsi_membership *m)
{
	return m->c.end;
}

uint64_t tsi_membership_epochs(const struct tsi_membership *m)
{
	return m->c.end == TSI_NEVER ? 0 : m->c.end / m->c.epoch_len;
}

/* ---- filling ---- */

uint64_t tsi_membership_gate(const struct tsi_membership *m, unsigned view)
{
	uint64_t gate = TSI_NEVER;

	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used && m->member[i].view == view)
			gate = min64(gate,
				     tsi_membership_reach(m, &m->member[i]));
	/* A stage reads the source from its own view's head on; it may still
	 * be at work when the view's last reader has left. */
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view_state *v = &m->view[i];

		if (v->source != view && !(view == 0 && v->needs_base))
			continue;
		if (v->active)
			gate = min64(gate, min64(v->head, m->view[view].head));
		if (v->source == view)
			gate = min64(gate, v->reading);
	}
	return gate;
}

/* The first sample that a view has no room for, whatever its source has. */
static uint64_t room(const struct tsi_membership *m, unsigned view)
{
	uint64_t gate = min64(tsi_membership_gate(m, view),
			      tsi_membership_pin(m, view));

	gate = min64(gate, tsi_membership_kept_start(m, view));
	gate = min64(gate, tsi_membership_held_from(m));
	/* There is a gate: an active view has a reader, or another active view
	 * that is made of it, and of the base ring all are made. */
	return gate + m->view[view].capacity;
}

/* The first sample that some view that workers write has no room for; TSI_NEVER:
 * workers write no view. */
static uint64_t joint_limit(const struct tsi_membership *m)
{
	uint64_t limit = TSI_NEVER;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (tsi_membership_joint(m, i) != TSI_NEVER)
			limit = min64(limit, room(m, i));
	return limit;
}

bool tsi_membership_holds_base(const struct tsi_membership *m, unsigned view)
{
	return tsi_membership_joint(m, view) != TSI_NEVER &&
	       room(m, view) <= m->view[0].claimed;
}

uint64_t tsi_membership_limit(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];
	uint64_t limit;

	if (!tsi_membership_needed(m) || !v->active ||
	    (view == 0 && m->jumping) || !m->started)
		return v->taken;
	limit = room(m, view);
	if (view)
		limit = min64(limit, min64(m->view[v->source].head, v->joint));
	else
		limit = min64(limit, joint_limit(m));
	return max64(min64(limit, m->c.end), v->taken);
}

unsigned tsi_membership_claim(struct tsi_membership *m, unsigned view,
			      unsigned want, uint64_t *first)
{
	uint64_t limit = tsi_membership_limit(m, view);
	struct tsi_view_state *v = &m->view[view];
	unsigned n = (unsigned)min64(limit - v->taken, want);

	*first = v->taken;
	v->taken += n;
	v->claimed = max64(v->claimed, v->taken);
	if (!view)
		tsi_membership_claim_joint(m);
	return n;
}

void tsi_membership_claimed_to(struct tsi_membership *m, uint64_t claimed)
{
	m->view[0].claimed = m->view[0].taken = claimed;
	tsi_membership_claim_joint(m);
}

void tsi_membership_reading(struct tsi_membership *m, unsigned view,
			    uint64_t first)
{
	m->view[view].reading = first;
}

void tsi_membership_published(struct tsi_membership *m, unsigned view,
			      uint64_t head)
{
	m->view[view].head = head;
	if (!view)
		tsi_membership_lead_joint(m);
}

bool tsi_membership_done(struct tsi_membership *m, unsigned view,
			 uint32_t opening, uint64_t first, uint64_t head)
{
	struct tsi_view_state *v = &m->view[view];

	if (!v->active || v->opening != opening || v->head != first)
		return false;
	v->head = head;
	tsi_membership_follow_base(m, v);
	return true;
}

bool tsi_membership_apply_jump(struct tsi_membership *m)
{
	struct tsi_view_state *base = &m->view[0];

	if (!m->jumping || base->head < base->claimed)
		return false;
	m->jumping = false;
	/* Readers of other views wait for the target, or for a later sample. */
	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		struct tsi_view_state *v = &m->view[i];

		/* The base alone can have to go back. */
		if (!v->active || (i && v->head >= m->target))
			continue;
		tsi_membership_begin_at(m, v, m->target);
	}
	tsi_membership_jump_joint(m);
	return true;
}

void tsi_membership_waits(const struct tsi_membership *m, unsigned view,
			  uint64_t *gate, uint64_t *front)
{
	uint64_t pin = tsi_membership_pin(m, view);

	*gate = tsi_membership_gate(m, view);
	*front = TSI_NEVER;
	if (pin <= *gate && pin != TSI_NEVER)
		*front = pin + min64(m->c.join_window, m->c.epoch_len);
}

/* ---- questions ---- */

bool tsi_membership_next(const struct tsi_membership *m, unsigned *id)
{
	while (*id < m->rows && !m->member[*id].used)
		++*id;
	return *id < m->rows;
}

bool tsi_membership_active(const struct tsi_membership *m, unsigned view)
{
	return m->view[view].active;
}

uint64_t tsi_membership_head(const struct tsi_membership *m, unsigned view)
{
	return m->view[view].head;
}

uint64_t tsi_membership_claimed(const struct tsi_membership *m, unsigned view)
{
	return m->view[view].taken;
}

uint32_t tsi_membership_opening(const struct tsi_membership *m, unsigned view)
{
	return m->view[view].opening;
}

bool tsi_membership_may_claim(const struct tsi_membership *m, unsigned view)
{
	return tsi_membership_limit(m, view) > m->view[view].taken;
}

bool tsi_membership_has_input(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];

	return v->active && m->view[v->source].head > v->taken &&
	       v->joint > v->taken;
}

bool tsi_membership_all_claimed(const struct tsi_membership *m)
{
	return m->view[0].claimed >= m->c.end;
}

bool tsi_membership_complete(const struct tsi_membership *m, unsigned view)
{
	return m->view[view].head >= m->c.end;
}

bool tsi_membership_jumping(const struct tsi_membership *m)
{
	return m->jumping;
}

void tsi_membership_stats(const struct tsi_membership *m,
			  struct tsock_stats *st)
{
	st->epoch_len = m->c.epoch_len;
	st->head = m->view[0].head;
	st->claimed = m->view[0].claimed;
	st->limit = tsi_membership_limit(m, 0);
	st->capacity = m->view[0].capacity;
	st->consumers = m->count;
}

void tsi_membership_stats_row(const struct tsi_membership *m, unsigned id,
			      struct tsock_stats_row *row)
{
	row->tail = m->member[id].tail;
	row->view = m->member[id].view;
}
