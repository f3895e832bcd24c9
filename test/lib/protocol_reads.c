/* SPDX-License-Identifier: MIT */
/*
 * protocol_reads.c - a consumer of protocol.h that reads: its ring, its tail
 * page, and what it does when it is detached, or its producer has died.
 */
#include "test/lib/protocol.h"

#include <string.h>

#include "base/sequence.h"

#define REPEAT_MS 200 /* without an answer */

/* ---- its ring and its page ---- */

static struct ring *ring_of(const struct claim *c)
{
	return &machine.ring[c->ring][c->view];
}

/* The ring outlives its producer, but not for ever in this model. */
static bool ring_is_there(const struct claim *c)
{
	return ring_of(c)->incarnation == c->incarnation;
}

static struct page *page_of(const struct claim *c)
{
	static struct page nobodys;
	struct page *p = &machine.page[c->page];

	return p->used && p->number == c->page_number ? p : &nobodys;
}

static uint64_t in_hand(const struct claim *c, uint64_t s)
{
	return *machine_slot(ring_of(c), c->taken_in, c->taken_since, s);
}

/* Is what it took still there? */
static void look_at(const struct claim *c, uint64_t upto)
{
	for (uint64_t s = c->tail; s < upto && ring_is_there(c); s++)
		check(s < c->start || in_hand(c, s) == s ||
		      (!machine.detaches && s >= ring_of(c)->head));
}

bool consumer_has_producer(const struct consumer *q)
{
	return machine.up && machine.incarnation == q->incarnation;
}

/* ---- leaving ---- */

static void state_tail(struct consumer *q)
{
	q->claim.tail = q->position;
	page_of(&q->claim)->tail = q->position;
}

/* The consumer has all of the epoch, and says so when it returns. */
static void leave_no_producer(struct consumer *q)
{
	memcpy(q->was, q->claim.nonce, TSI_NONCE);
	q->phase = IDLE;
	q->owed = false;
}

void consumer_leave(struct consumer *q)
{
	if (!consumer_has_producer(q)) {
		leave_no_producer(q);
		return;
	}
	state_tail(q);
	q->serial++;
	q->since_ms = machine.now;
	q->again_ms = machine.now + REPEAT_MS;
	q->phase = LEAVES;
	if (!machine.detaches) {
		consumer_post(q, TSI_LEAVE, q->claim.nonce);
		return;
	}
	/* First that, and LEAVE at the next step. */
	consumer_take_off(q, q->claim.nonce);
	page_of(&q->claim)->left = machine.sees;
	q->since_ms = 0;
}

/* In the middle of an epoch, or between two: the next producer is wanted. */
static void lose_producer(struct consumer *q)
{
	if (q->position == q->end && q->leaves) {
		leave_no_producer(q);
		return;
	}
	memcpy(q->was, q->claim.nonce, TSI_NONCE);
	if (q->position == q->end)
		q->end += machine.n;
	q->goal = q->position;
	q->goal_end = q->end;
	q->detached = q->claim.detached;
	machine.outlived += q->detached;
	consumer_await_producer(q);
}

void consumer_let_go(struct consumer *q)
{
	struct claim *c = &q->before;
	uint32_t serial = q->serial;

	/* Then later: it gets there for certain. */
	if (q->out.n == LETTERS)
		return;
	look_at(c, c->upto);
	c->kept = false;
	page_of(c)->left = machine.sees;
	if (!machine.up || machine.incarnation != c->incarnation)
		return;
	/* Nobody waits for an answer to that. */
	q->serial = 0;
	consumer_post(q, TSI_LEAVE, c->nonce);
	q->serial = serial;
}

/* Its producer lives: on where the stream is, with batches of before. */
static void leave_detached(struct consumer *q)
{
	/* One is enough for this model. */
	if (q->before.kept)
		return;
	q->before = q->claim;
	q->before.kept = true;
	q->before.upto = q->position;
	if (q->claim.tail == q->position || machine_random(2))
		consumer_let_go(q);
	memcpy(q->was, q->claim.nonce, TSI_NONCE);
	q->goal = q->position;
	q->goal_end = q->end;
	q->detached = true;
	consumer_ask(q);
}

/* ---- taking ---- */

/* As a job's state: with all of an epoch, at the next one's start. */
static void save(struct consumer *q)
{
	if (!machine.saves || (q->world > 1 && q->rank) || machine_random(8))
		return;
	q->saved = q->position;
	q->saved_end = q->end;
	if (q->position == q->end)
		q->saved_end += machine.n;
}

static void acquire(struct consumer *q, uint64_t n)
{
	q->claim.taken_in = q->claim.generation;
	q->claim.taken_since = q->claim.since;
	for (uint64_t s = q->position; s < q->position + n; s++)
		check(in_hand(&q->claim, s) == s);
	q->position += n;
	machine.taken += n;
	save(q);
}

static void look_for_trouble(struct consumer *q)
{
	struct claim *c = &q->claim;
	uint32_t row = ring_is_there(c) ? ring_of(c)->row[c->row] : 0;

	/* Once it was seen it counts, also where it is undone. */
	c->detached |= row == (c->reader | DETACHED);
	if (!consumer_has_producer(q)) {
		lose_producer(q);
		return;
	}
	/* No reader breaks a rule here. */
	check(c->detached || row == c->reader);
	if (c->detached)
		leave_detached(q);
}

/*
 * As lib/consumer's at_hand(): the head, the ring's generation, the word in the
 * tail page, and whether it stands; then the samples are its own.  Between any
 * two of these it may be stopped, and detached.
 */
static void step_take(struct consumer *q, uint64_t n)
{
	struct claim *c = &q->claim;
	struct ring *r = ring_of(c);
	uint64_t need = q->position + n;

	switch (q->step) {
	case 0:
		if (!ring_is_there(c) || r->head < need) {
			page_of(c)->want = need;
			look_for_trouble(q);
			return;
		}
		page_of(c)->want = 0;
		q->next = r->generation;
		q->next_since = r->since[q->next & 1];
		q->step = q->next == c->generation ? 2 : 1;
		return;
	case 1:
		if (q->next > 1 && need <= q->next_since) {
			q->next--;
			q->next_since = 0;
		}
		if (q->next != c->generation) {
			page_of(c)->generation = c->generation = q->next;
			c->since = q->next_since;
		}
		q->step = 2;
		return;
	default:
		q->step = 0;
		if (!ring_is_there(c) || r->row[c->row] != c->reader)
			look_for_trouble(q);
		else
			acquire(q, n);
	}
}

static void take(struct consumer *q)
{
	uint64_t n = q->end - q->position;

	if (!n) {
		q->epochs++;
		if (q->leaves)
			consumer_leave(q);
		else
			q->end += machine.n;
		return;
	}
	n = n < q->batch ? n : q->batch;
	if (machine.detaches) {
		do
			step_take(q, n);
		while (q->step && machine_random(4));
		return;
	}
	if (ring_is_there(&q->claim) &&
	    ring_of(&q->claim)->head >= q->position + n)
		acquire(q, n);
	else if (!consumer_has_producer(q))
		lose_producer(q);
}

static void release(struct consumer *q)
{
	/* What is held was never written over. */
	look_at(&q->claim, q->position);
	state_tail(q);
}

void consumer_read(struct consumer *q)
{
	uint64_t what = machine_random(200);

	if (what == 0 && !machine.fair && q->world == 1 &&
	    consumer_has_producer(q))
		consumer_leave(q);
	else if (what & 1)
		take(q);
	else
		release(q);
}
