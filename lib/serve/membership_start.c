/* SPDX-License-Identifier: MIT */
/*
 * membership_start.c - where a reader starts, and which starts of epochs and
 * segments are kept in the rings for readers who come later.
 *
 * Words: a start q is held in a ring when none of the samples from q on can
 * have been overwritten: base <= q and claimed <= q + capacity.  The front is
 * the greatest min(tail, head) of all members.  The pin keeps the start of the
 * front's epoch held until the front is min(W, N) samples into that epoch, so
 * that a reader who joins a little late still gets the whole epoch.
 *
 * A ring that other views are made of could run two rings ahead of a reader:
 * the samples that the reader's own view holds, and the samples that the stage
 * of this view has not read yet.  The start of the next epoch would then be
 * overwritten before the reader comes to it.  So the next start of the last of
 * these readers is kept, until that reader is beyond it.  And where it is
 * overwritten already, no reader goes on behind it, although a view may still
 * hold the samples there.
 */
#include "serve/membership_parts.h"

#include "base/err.h"

#define MOST_EPOCHS (UINT64_C(1) << 32) /* before which a reader goes on */

/* ---- boundaries ---- */

/* The number of the segment that contains an offset within an epoch. */
static unsigned segment_of(const struct tsi_membership *m, uint64_t offset)
{
	unsigned low = 0, high = m->c.segments;

	while (high - low > 1) {
		unsigned mid = low + (high - low) / 2;

		if (m->c.bounds[mid] <= offset)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static uint64_t boundary_at_or_before(const struct tsi_membership *m,
				      uint32_t join, uint64_t s)
{
	uint64_t epoch = s - s % m->c.epoch_len;

	if (join != TSOCK_JOIN_SEGMENT || m->c.segments < 2)
		return epoch;
	return epoch + m->c.bounds[segment_of(m, s - epoch)];
}

uint64_t tsi_membership_boundary(const struct tsi_membership *m, uint32_t join,
				 uint64_t s)
{
	uint64_t q = boundary_at_or_before(m, join, s), epoch;

	if (q == s)
		return s;
	epoch = q - q % m->c.epoch_len;
	if (join != TSOCK_JOIN_SEGMENT || m->c.segments < 2)
		return epoch + m->c.epoch_len;
	return epoch + m->c.bounds[segment_of(m, q - epoch) + 1];
}

bool tsi_membership_may_start(const struct tsi_membership *m,
			      const struct tsi_member *r, uint64_t start)
{
	return r->by_segment || start % m->c.epoch_len == 0;
}

/* ---- front, pin, held ---- */

bool tsi_membership_held(const struct tsi_view_state *v, uint64_t q)
{
	return v->base <= q && v->claimed <= q + v->capacity;
}

/* The first sample that a ring still holds. */
static uint64_t first_held(const struct tsi_view_state *v)
{
	return v->claimed > v->capacity
		       ? max64(v->base, v->claimed - v->capacity)
		       : v->base;
}

uint64_t tsi_membership_reach(const struct tsi_membership *m,
			      const struct tsi_member *r)
{
	return min64(r->tail, m->view[r->view].head);
}

uint64_t tsi_membership_progress(const struct tsi_membership *m,
				 const struct tsi_member *r)
{
	return min64(tsi_membership_reach(m, r), m->view[0].head);
}

uint64_t tsi_membership_held_from(const struct tsi_membership *m)
{
	return min64(m->hold, m->kept);
}

static uint64_t front_of(const struct tsi_membership *m)
{
	uint64_t held = tsi_membership_held_from(m);
	uint64_t front = held == TSI_NEVER ? 0 : held;

	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used)
			front = max64(front, tsi_membership_progress(
						     m, &m->member[i]));
	return front;
}

uint64_t tsi_membership_pin(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];
	uint64_t front, start;

	if (!m->count)
		return TSI_NEVER;
	front = front_of(m);
	start = boundary_at_or_before(m, TSOCK_JOIN_EPOCH, front);
	if (front >= start + min64(m->c.join_window, m->c.epoch_len) ||
	    !tsi_membership_held(v, start))
		return TSI_NEVER;
	return start;
}

bool tsi_membership_made_of(const struct tsi_membership *m, unsigned view,
			    unsigned ring)
{
	while (view) {
		view = m->view[view].source;
		if (view == ring)
			return true;
	}
	return false;
}

/* The next start of a ring's own readers, or of readers of views made of it. */
static uint64_t next_start(const struct tsi_membership *m, unsigned ring,
			   bool own)
{
	uint64_t epoch = TSI_NEVER, segment = TSI_NEVER, next = TSI_NEVER;

	for (unsigned i = 0; i < m->rows; i++) {
		const struct tsi_member *r = &m->member[i];
		uint64_t *least = r->by_segment ? &segment : &epoch;

		if (r->used && (own ? r->view == ring
				    : tsi_membership_made_of(m, r->view, ring)))
			*least = min64(*least, tsi_membership_reach(m, r));
	}
	if (epoch != TSI_NEVER)
		next = tsi_membership_boundary(m, TSOCK_JOIN_EPOCH, epoch);
	if (segment != TSI_NEVER)
		next = min64(next, tsi_membership_boundary(
					   m, TSOCK_JOIN_SEGMENT, segment));
	return next;
}

uint64_t tsi_membership_next_start(const struct tsi_membership *m,
				   unsigned view)
{
	return next_start(m, view, true);
}

uint64_t tsi_membership_kept_start(const struct tsi_membership *m,
				   unsigned view)
{
	return next_start(m, view, false);
}

bool tsi_membership_needed(const struct tsi_membership *m)
{
	for (unsigned i = 0; i < m->rows; i++)
		if (m->member[i].used && m->member[i].tail < m->c.end)
			return true;
	return false;
}

/* ---- where a join starts ---- */

const struct tsi_view_state *
tsi_membership_origin(const struct tsi_membership *m, unsigned view)
{
	while (!m->view[view].active)
		view = m->view[view].source;
	return &m->view[view];
}

/* Can a reader of this view begin there, and can ranks of its job by all views
 * that come from the base or from an active one? */
static bool can_begin(const struct tsi_membership *m, const struct tsi_join *j,
		      uint64_t q)
{
	for (unsigned i = 0; j->together && i < TSI_VIEWS; i++)
		if (m->view[i].active && !tsi_membership_held(&m->view[i], q))
			return false;
	return tsi_membership_held(tsi_membership_origin(m, j->view), q) &&
	       !(m->jumping && q < m->target);
}

static uint64_t start_among_readers(const struct tsi_membership *m,
				    const struct tsi_join *j)
{
	const struct tsi_view_state *v = tsi_membership_origin(m, j->view);
	uint64_t q;

	if (j->join == TSOCK_JOIN_NOW)
		return max64(m->jumping ? m->target : 0, v->head);
	q = boundary_at_or_before(m, j->join, front_of(m));
	q = tsi_membership_boundary(m, j->join, max64(q, j->after));
	/* Once a jump is decided, nothing below its target is held. */
	while (!can_begin(m, j, q))
		q = tsi_membership_boundary(m, j->join, q + 1);
	return q;
}

/* Does nobody else read the stream, so that it may go where a join wants it? */
static bool is_alone(const struct tsi_membership *m)
{
	return !m->count && tsi_membership_held_from(m) == TSI_NEVER;
}

/* Has the base ring come to this start, and does it still hold it? */
static bool at_hand(const struct tsi_membership *m, uint64_t q)
{
	const struct tsi_view_state *base = &m->view[0];

	return !m->jumping && q <= base->claimed &&
	       tsi_membership_held(base, q);
}

/* Is there a whole epoch from q to the stream's end (NOW: a sample)? */
static bool fits(const struct tsi_membership *m, const struct tsi_join *j,
		 uint64_t q)
{
	return j->join == TSOCK_JOIN_NOW
		       ? q < m->c.end
		       : q < m->c.end && m->c.end - q >= m->c.epoch_len;
}

static uint64_t start_alone(const struct tsi_membership *m,
			    const struct tsi_join *j)
{
	const struct tsi_view_state *base = &m->view[0];
	uint64_t from = max64(m->greatest, j->after), q;

	if (m->jumping)
		from = max64(from, m->target);
	if (j->join == TSOCK_JOIN_NOW)
		return m->jumping ? m->target : base->head;
	/* An epoch that readers had only begun when they left is whole for a
	 * newcomer. */
	q = boundary_at_or_before(m, j->join, m->greatest);
	if (!j->after && fits(m, j, q) &&
	    m->greatest - q < min64(m->c.join_window, m->c.epoch_len) &&
	    at_hand(m, q))
		return q;
	/* Its own next epoch, however far other members have been. */
	q = tsi_membership_boundary(m, j->join, j->after);
	if (j->after && at_hand(m, q))
		return q;
	/* Segments are kept only for members that leave, epochs for all. */
	q = tsi_membership_boundary(m, TSOCK_JOIN_EPOCH, j->after);
	if (j->after && at_hand(m, q))
		return q;
	q = tsi_membership_boundary(m, j->join, from);
	if (!m->jumping && !at_hand(m, q))
		q = tsi_membership_boundary(m, j->join,
					    max64(from, base->claimed));
	if (fits(m, j, q))
		return q;
	/* At the stream's end: what the last member to leave would get.  Its
	 * view may have held what the base ring no longer holds. */
	from = max64(max64(m->last, j->after), first_held(base));
	from = tsi_membership_boundary(m, j->join, from);
	return at_hand(m, from) ? from : q;
}

static uint64_t start_of(const struct tsi_membership *m,
			 const struct tsi_join *j)
{
	return is_alone(m) ? start_alone(m, j) : start_among_readers(m, j);
}

bool tsi_membership_ended(const struct tsi_membership *m)
{
	struct tsi_join j = { .join = TSOCK_JOIN_EPOCH };

	if (m->c.end == TSI_NEVER || tsi_membership_needed(m) ||
	    tsi_membership_held_from(m) != TSI_NEVER ||
	    fits(m, &j, start_alone(m, &j)))
		return false;
	j.join = TSOCK_JOIN_SEGMENT;
	return !fits(m, &j, start_alone(m, &j));
}

/* ---- exact starts ---- */

/* Do the rings that a ring is made of hold what will be the next start? */
static bool sources_hold_next(const struct tsi_membership *m,
			      const struct tsi_view_state *ring,
			      const struct tsi_join *j)
{
	uint32_t how = j->leaves ? j->join : TSOCK_JOIN_EPOCH;
	uint64_t next = tsi_membership_boundary(m, how, j->after + 1);

	while (ring != m->view) {
		ring = &m->view[ring->source];
		if (!tsi_membership_held(ring, next))
			return false;
	}
	return true;
}

/* A view may reach so far back that its source has passed the next start. */
static bool is_held(const struct tsi_membership *m, const struct tsi_join *j)
{
	const struct tsi_view_state *origin = tsi_membership_origin(m, j->view);

	return tsi_membership_held(origin, j->after) &&
	       sources_hold_next(m, origin, j) &&
	       !(m->jumping && j->after < m->target);
}

bool tsi_membership_must_jump(const struct tsi_membership *m,
			      const struct tsi_join *j, uint64_t start)
{
	if (!is_alone(m))
		return false;
	return start > m->view[0].claimed ||
	       (j->exact && (m->jumping || !is_held(m, j)));
}

/* No reader can move the stream: why it can't have this start. */
static int err_passed(const struct tsi_membership *m, const struct tsi_join *j)
{
	return tsi_err(
		TSOCK_EREFUSED,
		"sample %llu (of epoch %llu) can't be read again: the stream "
		"has gone past it, for %u other consumer%s, and holds samples "
		"from %llu on; begin at an epoch's start, come back when the "
		"others have left, or start a producer for this job alone "
		"(--name)",
		(unsigned long long)j->after,
		(unsigned long long)(j->after / m->c.epoch_len), m->count,
		m->count == 1 ? "" : "s",
		(unsigned long long)first_held(&m->view[0]));
}

/* A sole reader takes the stream to where it wants to go on. */
static int check_move(const struct tsi_membership *m, const struct tsi_join *j)
{
	const struct tsi_view_state *base = &m->view[0];

	if (!tsi_membership_must_jump(m, j, j->after) ||
	    j->after > base->claimed)
		return 0;
	/* The workers that make the samples have gone. */
	if (base->claimed >= m->c.end)
		return tsi_err(TSOCK_EENDED,
			       "the stream has made its last epoch, and can't "
			       "go back to sample %llu: start its producer "
			       "again",
			       (unsigned long long)j->after);
	return base->head < base->claimed ? TSOCK_EAGAIN : 0;
}

static int forecast_exact(const struct tsi_membership *m,
			  const struct tsi_join *j, uint64_t *start)
{
	int err = 0;

	if (j->after < m->c.begins)
		return tsi_err(TSOCK_EREFUSED,
			       "sample %llu can't be read: the stream begins "
			       "at sample %llu, amid an epoch (--start)",
			       (unsigned long long)j->after,
			       (unsigned long long)m->c.begins);
	if (j->moves && (j->after >= m->c.end || j->end > m->c.end))
		return tsi_err(TSOCK_EENDED,
			       "the stream ends at sample %llu, before the "
			       "epoch of sample %llu does",
			       (unsigned long long)m->c.end,
			       (unsigned long long)j->after);
	if (j->moves && is_alone(m))
		err = check_move(m, j);
	else if (j->moves && !is_held(m, j))
		err = err_passed(m, j);
	else if (!is_held(m, j))
		err = tsi_err(TSOCK_EREFUSED,
			      "the stream no longer holds sample %llu for this "
			      "rank",
			      (unsigned long long)j->after);
	if (!err)
		*start = j->after;
	return err;
}

/* ---- going on after being detached ---- */

/* The newest sample of the generation that the view is, or will be, in. */
static uint64_t live_edge(const struct tsi_membership *m,
			  const struct tsi_join *j)
{
	const struct tsi_view_state *v = tsi_membership_origin(m, j->view);
	uint64_t edge = max64(v->head, v->since);

	return max64(edge, m->jumping ? m->target : 0);
}

uint64_t tsi_membership_end_of(const struct tsi_membership *m, uint64_t end,
			       uint64_t s)
{
	uint64_t n = m->c.epoch_len;

	if (s >= end)
		end += ((s - end) / n + 1) * n;
	return min64(end, m->c.end);
}

static int forecast_detached(const struct tsi_membership *m,
			     const struct tsi_join *j, uint64_t *start)
{
	uint64_t q = max64(live_edge(m, j), j->after);

	if (q >= m->c.end)
		return tsi_err(TSOCK_EENDED,
			       "the stream has ended: sample %llu was its last",
			       (unsigned long long)m->c.end - 1);
	*start = q;
	return 0;
}

/* Beyond that the arithmetic might overflow. */
static bool comes_to(const struct tsi_membership *m, uint64_t q)
{
	return q / m->c.epoch_len < MOST_EPOCHS && q < TSI_LAST / 2;
}

bool tsi_membership_can_hold(const struct tsi_membership *m, uint64_t from)
{
	return comes_to(m, from) && from <= m->c.end;
}

/* A start that no stream comes to. */
static bool too_far(const struct tsi_membership *m, const struct tsi_join *j)
{
	uint64_t most = max64(m->furthest, m->view[0].claimed);

	if (j->moves)
		return !comes_to(m, j->after);
	return j->after > most + 2 * m->c.epoch_len;
}

bool tsi_membership_is_far(const struct tsi_membership *m,
			   const struct tsi_join *j, uint64_t start)
{
	uint64_t most = max64(m->common, m->view[0].claimed);

	if (m->jumping)
		most = max64(most, m->target);
	return j->from && start > most + 2 * m->c.epoch_len;
}

/* Is the stream there for no other job than the joiner's? */
static bool is_among_own(const struct tsi_membership *m,
			 const struct tsi_join *j)
{
	return m->count == j->ours && m->hold == TSI_NEVER && !j->others;
}

/*
 * The epoch that the ranks of other producers begin, too.  A stream that no
 * other job reads goes there; one that others read has to be near.
 */
static int check_from(const struct tsi_membership *m, const struct tsi_join *j)
{
	uint64_t start = j->exact ? j->after : j->from;
	unsigned others = m->count - j->ours;

	if (!j->from ||
	    (comes_to(m, start) &&
	     (is_among_own(m, j) || !tsi_membership_is_far(m, j, start))))
		return 0;
	/* It may be one that is still to come. */
	if (!others)
		others = 1;
	return tsi_err(
		TSOCK_EREFUSED,
		"epoch %llu can't be begun: the stream is at epoch "
		"%llu, for %u other consumer%s; start a producer for "
		"this job alone (--name)",
		(unsigned long long)(start / m->c.epoch_len),
		(unsigned long long)(m->view[0].claimed / m->c.epoch_len),
		others, others == 1 ? "" : "s");
}

/*
 * What the joiner's process has read before counts as if it had read that
 * itself.  A stream that was begun anew since is another one; but a joiner that
 * is alone may take it there, if there is an epoch.
 */
static void count_read(const struct tsi_membership *m, struct tsi_join *j)
{
	struct tsi_join counted = *j;

	if (j->after || j->join == TSOCK_JOIN_NOW || !comes_to(m, j->read))
		return;
	counted.after = j->read;
	if (j->read_here || (j->continues && is_alone(m) &&
			     fits(m, &counted, start_alone(m, &counted))))
		*j = counted;
}

int tsi_membership_forecast(const struct tsi_membership *m,
			    const struct tsi_join *asked, uint64_t *start)
{
	struct tsi_join j = *asked;
	uint64_t q;
	int err;

	if (too_far(m, &j))
		return tsi_err(TSOCK_EREFUSED,
			       "a join after sample %llu, which the stream "
			       "hasn't come near",
			       (unsigned long long)j.after);
	err = check_from(m, &j);
	if (err)
		return err;
	if (j.exact)
		return forecast_exact(m, &j, start);
	if (j.detached)
		return forecast_detached(m, &j, start);
	count_read(m, &j);
	j.after = max64(j.after, j.from);
	/* Only the first epoch may be a short one. */
	if (j.join == TSOCK_JOIN_NOW && j.after)
		j.join = TSOCK_JOIN_EPOCH;
	q = start_of(m, &j);
	if (!fits(m, &j, q) || tsi_membership_ended(m))
		return tsi_err(TSOCK_EENDED,
			       "the stream has ended: epoch %llu was its last",
			       (unsigned long long)(m->c.end / m->c.epoch_len) -
				       1);
	*start = q;
	return 0;
}

void tsi_membership_begin_at(struct tsi_membership *m, struct tsi_view_state *v,
			     uint64_t from)
{
	v->base = v->head = v->claimed = v->taken = from;
	v->opening++;
	tsi_membership_begin_joint(m, v);
	if (from >= v->since)
		return;
	/* It goes back: what is abandoned stays so, and all is in this half. */
	v->generation += 2;
	v->since = from;
}

/* ---- views that workers write together with the base ring ---- */

/*
 * When such a view begins, workers are making samples of the base ring that they
 * claimed before, and don't write them into the view.  So workers write the view
 * from the next sample on that is claimed (joint), and the view's stage makes
 * those before.  When the stage has made them, the view's head is the base
 * ring's.  While the view is active, no sample of the base ring can be claimed
 * that the view has no room for.
 *
 * When the view ends, workers may still be writing samples into it that they
 * claimed before.  All these are written once the base ring's head is beyond
 * them.  If the view begins again before that, such a late write does no harm:
 * the sample isn't below the base ring's head, so any other sample that gets its
 * slot in the view is written later, by the stage, which follows that head, or by
 * a worker, a whole ring later.
 */
static bool is_joint(const struct tsi_view_state *v)
{
	return v->active && v->joint != TSI_NEVER;
}

void tsi_membership_with_base(struct tsi_membership *m, unsigned view)
{
	m->view[view].with_base = true;
}

void tsi_membership_begin_joint(const struct tsi_membership *m,
				struct tsi_view_state *v)
{
	if (!v->with_base)
		return;
	v->joint = max64(m->view[0].claimed, v->taken);
	v->claimed = v->joint;
}

void tsi_membership_end_joint(const struct tsi_membership *m,
			      struct tsi_view_state *v)
{
	if (v->joint != TSI_NEVER)
		v->drained = max64(v->drained, m->view[0].claimed);
	v->joint = TSI_NEVER;
}

void tsi_membership_claim_joint(struct tsi_membership *m)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (is_joint(&m->view[i]))
			m->view[i].claimed =
				max64(m->view[i].claimed, m->view[0].claimed);
}

void tsi_membership_jump_joint(struct tsi_membership *m)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		m->view[i].drained = 0;
		/* The base ring may have gone back. */
		if (is_joint(&m->view[i]))
			tsi_membership_begin_joint(m, &m->view[i]);
	}
}

void tsi_membership_follow_base(const struct tsi_membership *m,
				struct tsi_view_state *v)
{
	if (is_joint(v) && v->head >= v->joint)
		v->head = max64(v->head, m->view[0].head);
}

void tsi_membership_lead_joint(struct tsi_membership *m)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		tsi_membership_follow_base(m, &m->view[i]);
}

uint64_t tsi_membership_joint(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];

	return is_joint(v) ? v->joint : TSI_NEVER;
}

bool tsi_membership_drained(const struct tsi_membership *m, unsigned view)
{
	const struct tsi_view_state *v = &m->view[view];

	return !is_joint(v) && m->view[0].head >= v->drained;
}
