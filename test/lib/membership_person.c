/* SPDX-License-Identifier: MIT */
/*
 * membership_person.c - the readers of a modelled stream.
 */
#include "test/lib/membership_person.h"

/* ---- what a tail wakes ---- */

struct wants {
	bool asleep, holds_base;
	uint64_t gate, front;
};

static bool made_of(unsigned view, unsigned ring)
{
	while (view) {
		view = world.m.view[view].source;
		if (view == ring)
			return true;
	}
	return false;
}

static bool rings(const struct wants *a, unsigned ring, const struct person *q,
		  uint64_t start, uint64_t old, uint64_t now)
{
	if (q->view == ring && old <= a->gate && a->gate < now)
		return true;
	if (old < a->front && a->front <= now)
		return true;
	return made_of(q->view, ring) && old <= start && start < now;
}

/* The base ring's writer states what a view that it writes, too, waits for. */
static bool rings_joint(const struct wants a[RINGS], const struct person *q,
			uint64_t start, uint64_t old)
{
	for (unsigned v = 1; v < RINGS; v++)
		if (a[v].holds_base && rings(&a[v], v, q, start, old, q->seen))
			return true;
	return false;
}

void person_refresh(struct person *q)
{
	struct wants a[RINGS];
	uint64_t start, old = q->seen;

	if (old == q->tail)
		return;
	for (unsigned v = 0; v < RINGS; v++) {
		a[v].asleep = world.m.view[v].active &&
			      !tsi_membership_may_claim(&world.m, v);
		a[v].holds_base = tsi_membership_holds_base(&world.m, v);
		tsi_membership_waits(&world.m, v, &a[v].gate, &a[v].front);
	}
	start = tsi_membership_next_start(&world.m, q->view);
	check(tsi_membership_tail(&world.m, q->id, q->tail, 0) == 0);
	q->seen = q->tail;
	for (unsigned v = 0; v < RINGS; v++)
		if (a[v].asleep && world.m.view[v].active &&
		    tsi_membership_may_claim(&world.m, v))
			check(rings(&a[v], v, q, start, old, q->seen) ||
			      (!v && rings_joint(a, q, start, old)));
}

/* ---- leaving ---- */

static unsigned count_in(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PEOPLE; i++)
		n += world.who[i].in;
	return n;
}

static void leave(struct person *q)
{
	world.alone = count_in() == 1 ? q : NULL;
	q->in = false;
	tsi_membership_leave(&world.m, q->id);
	tsi_membership_apply_jump(&world.m);
}

void person_die(struct person *q)
{
	leave(q);
	q->liar = false;
	q->after = 0; /* the next one is a stranger */
	q->again = false;
	if (world_random(2))
		q->read = 0;
}

void person_leave(struct person *q)
{
	if (q->liar) {
		person_die(q);
		return;
	}
	q->tail = q->p;
	person_refresh(q);
	leave(q);
	q->again = true;
}

void person_die_all(unsigned view)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (world.who[i].in && world.who[i].view == view)
			person_die(&world.who[i]);
}

/* ---- joining ---- */

static uint64_t start_at_or_after(bool segments, uint64_t s)
{
	uint64_t epoch = s - s % world.n;

	for (unsigned i = 0; segments && i < world.segments; i++)
		if (epoch + world.bounds[i] >= s)
			return epoch + world.bounds[i];
	return epoch == s ? s : epoch + world.n;
}

/* Those beyond the end, really or by a lie, don't count. */
static bool anybody_needs(void)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (world.who[i].in && world.who[i].seen < world.end)
			return true;
	return false;
}

static uint64_t lead_now(void)
{
	/* Readers that have yet to return are there, or further on. */
	uint64_t front = world.m.hold == TSI_NEVER ? 0 : world.m.hold;

	for (unsigned i = 0; i < PEOPLE; i++)
		if (world.who[i].in)
			front = max64(
				front,
				min64(world.who[i].seen,
				      world.m.view[world.who[i].view].head));
	/* A view may begin where the stream hasn't come to. */
	return min64(front, world.m.view[0].head);
}

/* The latest start that a join may get, by what was promised. */
static uint64_t latest_start(const struct person *q)
{
	unsigned v = q->view;
	uint64_t s = q->after ? q->after : q->read;

	if (world.alone == q && q->again)
		return start_at_or_after(
			q->join == TSOCK_JOIN_SEGMENT && q->leaves, s);
	if (!anybody_needs())
		return SPOILT;
	while (!world.m.view[v].active)
		v = world.m.view[v].source;
	s = max64(s, (lead_now() / world.n + 1) * world.n);
	/* A view may have begun for somebody who waits for a later start. */
	s = max64(s, world.m.view[v].base);
	if (world.m.jumping)
		s = max64(s, world.m.target);
	return start_at_or_after(false, s);
}

static void come_in(struct person *q, const struct tsi_joined *c)
{
	world.alone = NULL;
	q->in = true;
	q->again = false;
	q->producer = world.producer;
	q->id = c->id;
	q->p = q->tail = q->seen = c->start;
	q->end = q->after = c->epoch_end;
	q->held = q->p;
	q->generation = 0;
	q->n = 0;
}

static void check_claim(const struct person *q, const struct tsi_joined *c)
{
	uint64_t claimed = world.m.view[q->view].claimed;
	bool whole = q->join != TSOCK_JOIN_NOW || q->after;

	check(c->start >= q->after);
	/* What its process has had of this producer it isn't given again. */
	if (!q->after && q->join != TSOCK_JOIN_NOW &&
	    q->read_of == world.producer)
		check(c->start >= q->read);
	if (q->join == TSOCK_JOIN_EPOCH ||
	    (q->after && whole && q->join == TSOCK_JOIN_NOW))
		check(c->start % world.n == 0);
	check(c->epoch_end > c->start && c->epoch_end <= c->start + world.n);
	if (whole)
		check(c->epoch_end == c->start + world.n);
	check(c->epoch_end <= world.end);
	/* All that exists from the start on is there, or on its way. */
	for (uint64_t s = c->start; s < claimed; s++) {
		bool on_its_way = s >= world.m.view[q->view].head;

		check(*world_slot(q->view, s) == s || on_its_way);
	}
}

static void choose(struct person *q)
{
	q->view = (unsigned)world_random(RINGS);
	q->join = (uint32_t)world_random(3);
	q->leaves = world_random(2);
	q->b = 1 + world_random((world.c - world.w) / 2
					? (world.c - world.w) / 2
					: 1);
	q->drop_last = q->b <= world.n && world_random(4) == 0;
	q->continues = world_random(4) == 0;
}

void person_join(struct person *q)
{
	uint64_t latest;
	struct tsi_join j;
	struct tsi_joined c;
	int err;

	if (!q->again)
		choose(q);
	j = (struct tsi_join){ .view = q->view,
			       .join = q->join,
			       .leaves = q->leaves,
			       .after = q->after,
			       .read = q->after ? 0 : q->read,
			       .read_here = q->read_of == world.producer,
			       .continues = q->continues };
	/* As serve/handshake.c does; it may miss the newest tails. */
	for (unsigned i = 0; i < PEOPLE; i++)
		if (world.who[i].in && world_random(2))
			person_refresh(&world.who[i]);
	latest = latest_start(q);
	err = tsi_membership_join(&world.m, &j, 0, &c);
	if (err) {
		/* Where it is now there may be nothing more. */
		check(err == TSOCK_EENDED && world.end != TSI_NEVER);
		check(latest > world.end - world.n || world.detaches ||
		      (q->join == TSOCK_JOIN_NOW && !q->after));
		q->again = false;
		q->after = 0;
		return;
	}
	tsi_membership_apply_jump(&world.m);
	if (q->join != TSOCK_JOIN_NOW || q->after)
		check(c.start <= latest || world.detaches);
	check_claim(q, &c);
	come_in(q, &c);
}

/* ---- going on where it was ---- */

static bool join_exactly(struct person *q)
{
	struct tsi_join j = { .view = q->view,
			      .join = q->join,
			      .leaves = q->leaves,
			      .after = q->p,
			      .exact = true,
			      .moves = true,
			      .end = q->end };
	bool alone = !count_in() && world.m.hold == TSI_NEVER;
	bool ended = tsi_membership_all_claimed(&world.m);
	struct tsi_joined c;
	int err = tsi_membership_join(&world.m, &j, 0, &c);

	if (err) {
		/* Only others, or work that is under way, are in the way. */
		check(!alone || ended || world.npending);
		check(!alone || err == (ended ? TSOCK_EENDED : TSOCK_EAGAIN));
		return false;
	}
	tsi_membership_apply_jump(&world.m);
	check(c.start == q->p && c.epoch_end == q->end);
	for (uint64_t s = q->p; s < world.m.view[q->view].head; s++)
		check(*world_slot(q->view, s) == s);
	world.alone = NULL;
	q->in = true;
	q->again = q->lost = false;
	q->producer = world.producer;
	q->id = c.id;
	q->tail = q->seen = q->p;
	q->after = q->end;
	q->held = q->p;
	q->generation = 0;
	q->n = 0;
	return true;
}

bool person_resume(struct person *q)
{
	return q->again && q->p < q->end && join_exactly(q);
}

void person_lose(struct person *q)
{
	if (q->liar) {
		q->in = q->liar = q->again = false;
		q->after = 0;
	}
	q->lost = q->in;
	q->in = false;
	/* Between two epochs it will need the next one. */
	if (q->lost && q->p == q->end && q->p < world.end)
		q->end = q->after = q->p + world.n;
	if (q->p >= world.end || q->end > world.end)
		q->lost = false;
	/* A reader that only broke off knows nothing of the new producer; one
	 * that was detached is awaited by nobody, and may come all the same. */
	q->again = false;
	if (q->detached && !world_forgets(q))
		return;
	q->detached = false;
	if (!q->lost)
		q->after = 0;
}

void person_give_up(struct person *q)
{
	q->lost = q->again = false;
	q->after = 0;
}

void person_return(struct person *q)
{
	check(join_exactly(q));
}

/* ---- reading ---- */

static void end_of_epoch(struct person *q)
{
	q->epochs_done++;
	q->read = q->end;
	q->read_of = world.producer;
	if (q->leaves || world.end - q->end < world.n) {
		person_leave(q);
		return;
	}
	q->end += world.n;
	q->after = q->end;
}

/* What it looks at is what it takes it for. */
static void look_at(const struct person *q, uint64_t from, uint64_t to)
{
	for (uint64_t s = from; s < to; s++)
		check(*world_slot_of(q, s) == s);
}

/* As a consumer's claim.c does, if its row says that it is a reader. */
static void enter(struct person *q, uint64_t n)
{
	const struct tsi_view_state *v = &world.m.view[q->view];
	uint32_t g = v->generation;
	uint64_t since = v->since;

	if (v->head < q->p + n)
		return;
	if (g > 1 && q->p + n <= since) {
		g--;
		since = 0;
	}
	if (g != q->generation) {
		q->generation = g;
		q->since = since;
	}
	q->n = n;
	q->held = q->p + n;
}

void person_read(struct person *q)
{
	uint64_t n = min64(q->end - q->p, q->b);

	if (q->p == q->end) {
		end_of_epoch(q);
		return;
	}
	if (n < q->b && q->drop_last) {
		q->p = q->end;
		return;
	}
	if (!q->n)
		enter(q, n);
	/* The reader may be stopped here. */
	if (world.detaches && world_random(2))
		return;
	look_at(q, q->p, q->p + q->n);
	q->p += q->n;
	q->n = 0;
}

void person_release(struct person *q)
{
	look_at(q, q->tail, min64(q->p, q->held));
	q->tail = q->p;
}

/* ---- being detached ---- */

void person_detach(struct person *q)
{
	if (q->liar)
		return;
	tsi_membership_entered(&world.m, q->id, q->generation);
	if (tsi_membership_may_detach(&world.m, q->id) == TSI_DETACH_NEVER)
		return;
	for (unsigned i = 0; i < PEOPLE; i++)
		if (world.who[i].in)
			tsi_membership_entered(&world.m, world.who[i].id,
					       world.who[i].generation);
	if (tsi_membership_may_detach(&world.m, q->id) == TSI_DETACH_NEVER)
		return;
	tsi_membership_detach(&world.m, q->id);
	tsi_membership_apply_jump(&world.m);
	world.alone = NULL;
	q->in = false;
	q->detached = true;
}

static uint64_t live_edge(unsigned view)
{
	uint64_t jump = world.m.jumping ? world.m.target : 0;

	while (!world.m.view[view].active)
		view = world.m.view[view].source;
	return max64(jump,
		     max64(world.m.view[view].head, world.m.view[view].since));
}

void person_go_on(struct person *q)
{
	struct tsi_join j = { .view = q->view,
			      .join = q->join,
			      .leaves = q->leaves,
			      .after = q->p,
			      .detached = true,
			      .moves = true,
			      .end = q->end };
	uint64_t edge = live_edge(q->view), end = q->end;
	struct tsi_joined c;

	/* To the end, whatever the others have done. */
	look_at(q, q->tail, q->held);
	q->detached = false;
	/* The next producer knows nothing of what it holds. */
	if (!world_outlives(q))
		tsi_membership_let_go(&world.m, q->id);
	if (world_random(4) == 0) {
		person_give_up(q);
		return;
	}
	if (tsi_membership_join(&world.m, &j, 0, &c)) {
		check(max64(edge, q->p) >= world.end);
		person_give_up(q);
		return;
	}
	tsi_membership_apply_jump(&world.m);
	check(c.start == max64(edge, q->p));
	check(c.epoch_end > c.start && c.epoch_end - c.start <= world.n);
	check(c.epoch_end == world.end || (c.epoch_end - end) % world.n == 0);
	for (uint64_t s = c.start; s < world.m.view[q->view].head; s++)
		check(*world_slot(q->view, s) == s);
	come_in(q, &c);
	/* Its epoch is over, and the next one has begun without it. */
	if (c.start >= end && (q->leaves || q->end - end < world.n)) {
		person_leave(q);
		q->after = end;
		world.alone = NULL;
	}
}

void person_lie(struct person *q)
{
	uint64_t to = q->p + world_random(4) * world.n;

	q->liar = true;
	q->p = q->tail = world.end != TSI_NEVER && world_random(2)
				 ? world.end
				 : min64(to, world.end);
}
