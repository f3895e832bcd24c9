/* SPDX-License-Identifier: MIT */
/*
 * protocol_consumer.c - a consumer of protocol.h: what lib/consumer does to
 * join, read, leave, and go on with the next producer.
 */
#include "test/lib/protocol.h"

#include <string.h>

#include "base/sequence.h"

#define AGAIN_MS 20   /* after WAIT */
#define REPEAT_MS 200 /* without an answer */
#define CALL_MS 1000
#define LEAVE_MS 1000
#define REJOIN_MS 60000

static const uint8_t nobody[TSI_NONCE];

static bool same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, TSI_NONCE);
}

/* ---- asking ---- */

static void post(struct consumer *q, uint16_t type, const uint8_t *nonce)
{
	struct letter l = { .type = type, .serial = q->serial };

	if (type == TSI_JOIN)
		l.join = (struct tsi_msg_join){
			.pid = q->pid,
			.batch_size = q->batch,
			.join = q->join,
			.between = q->leaves ? TSOCK_BETWEEN_LEAVE
					     : TSOCK_BETWEEN_HOLD,
			.incarnation = q->incarnation,
			.after = q->end,
			.rank = q->rank,
			.world = q->world,
			.position = q->goal,
			.epoch_end = q->goal_end,
			.returns = q->returns
		};
	memcpy(l.join.nonce, nonce, TSI_NONCE);
	memcpy(l.join.job, q->job, TSOCK_JOB);
	memcpy(l.join.was, q->was, TSI_NONCE);
	machine_post(&q->out, &l);
}

static void ask(struct consumer *q, int64_t again_ms)
{
	post(q, TSI_JOIN, q->nonce);
	q->again_ms = machine.now + again_ms;
}

static void ask_anew(struct consumer *q)
{
	q->phase = ASKS;
	q->serial++;
	machine.names++;
	memset(q->nonce, 0, TSI_NONCE);
	memcpy(q->nonce, &machine.names, sizeof(machine.names));
	ask(q, REPEAT_MS);
}

/* What was asked for is given up, whatever came of it. */
static void cancel(struct consumer *q)
{
	q->serial++;
	post(q, TSI_LEAVE, q->nonce);
}

/* A claim that the producer may have recorded, and that never arrived. */
static void lose_call(struct consumer *q)
{
	/* Who wants to begin says by which name it may be known. */
	if (!q->goal_end && same(q->was, nobody))
		memcpy(q->was, q->nonce, TSI_NONCE);
	else if (same(q->was, nobody))
		q->stale = true;
	cancel(q);
}

static void await_producer(struct consumer *q)
{
	if (q->phase != WAITS)
		q->since_ms = machine.now;
	q->phase = WAITS;
}

/* All but the rank that stood still may have begun ten seconds ago. */
static bool was_held_up(const struct consumer *q)
{
	return q->world > 1 && machine.job_stopped_ms > SILENCE_MS / 2;
}

/* The answer is an error: is that what it had to count with? */
static void is_refused(struct consumer *q, int32_t code, bool alone)
{
	if (code == TSOCK_ELOST) {
		await_producer(q);
		return;
	}
	check(code == TSOCK_EREFUSED);
	check(!q->owed || machine.now - machine.began_ms >= GRACE_MS);
	/* Only where it said itself where it wants to begin, or was held up
	 * while the other ranks of its job began. */
	check(q->goal_end || was_held_up(q));
	/* A job that reads alone goes on wherever it was. */
	check(!q->resumes || !alone);
	machine.refused++;
	consumer_die(q);
}

/* Then the other ranks will not be long. */
static bool job_has_begun(const struct consumer *q)
{
	for (unsigned i = 0; q->world > 1 && i < machine.ranks; i++)
		if (consumer_is_busy(&machine.who[i]))
			return true;
	return false;
}

static void resume(struct consumer *q, uint64_t position, uint64_t end)
{
	q->goal = position;
	q->goal_end = end;
	q->resumes = true;
}

/* By the rules, or where an earlier run of the job has been. */
static void choose_goal(struct consumer *q)
{
	bool first = !q->end;

	q->goal_end = 0;
	q->resumes = false;
	if (q->world > 1 && first && machine.job_goal_end) {
		resume(q, machine.job_goal, machine.job_goal_end);
	} else if (q->world > 1) {
		return;
	} else if (q->saved_end && machine_random(first ? 3 : 20) == 0) {
		resume(q, q->saved, q->saved_end);
	} else if (first && machine_random(8) == 0) {
		q->goal = machine_random(6 * machine.n);
		q->goal_end = q->goal - q->goal % machine.n + machine.n;
	}
}

static void begin(struct consumer *q)
{
	if (!q->incarnation)
		q->incarnation = machine.up ? machine.incarnation : 0;
	if (!q->incarnation)
		return;
	choose_goal(q);
	ask_anew(q);
}

static void step_asks(struct consumer *q)
{
	struct letter l;

	while (machine_fetch(&q->in, &l)) {
		if (l.serial != q->serial)
			continue;
		if (l.type == TSI_WAIT) {
			q->again_ms = machine.now + AGAIN_MS;
		} else if (l.type == TSI_OFFER) {
			q->call = machine_call(q, l.token);
			q->since_ms = machine.now;
			q->phase = CALLS_IN;
			if (q->call == NO_CALL) {
				cancel(q);
				await_producer(q);
			}
		} else {
			check(l.type == TSI_ERROR);
			is_refused(q, l.code, l.alone);
		}
		return;
	}
	if (machine.now < q->again_ms)
		return;
	if (machine.up)
		ask(q, REPEAT_MS);
	else
		await_producer(q);
}

/* ---- becoming a reader ---- */

/* May an epoch begin there, by the rules? */
static bool may_begin(const struct consumer *q, uint64_t start)
{
	unsigned n = q->join == TSOCK_JOIN_SEGMENT ? machine.segments : 1;

	for (unsigned i = 0; i < n; i++)
		if (start % machine.n == machine.bounds[i])
			return true;
	return q->join == TSOCK_JOIN_NOW && !q->end;
}

static void check_start(struct consumer *q, uint64_t start, uint64_t end)
{
	uint64_t n = machine.n;

	check(end > start);
	if (q->goal_end) {
		check(end == q->goal_end);
		/* Where the other ranks have still to begin. */
		check(start == q->goal || (q->world > 1 && start < q->goal));
		return;
	}
	check(start >= q->end && end <= start + n);
	check(may_begin(q, start));
	if (q->join != TSOCK_JOIN_NOW || q->end)
		check(end == start + n);
	if (q->world == 1)
		return;
	if (machine.job_start == TSI_NEVER)
		machine.job_start = start;
	check(start == machine.job_start);
}

static void become_reader(struct consumer *q, const struct call *c)
{
	const struct tsi_reply *a = &c->reply;

	check_start(q, a->start, a->epoch_end);
	q->phase = READS;
	q->page = c->page;
	q->page_number = c->page_number;
	q->ring = (unsigned)(q->incarnation % RINGS);
	q->tail = q->start = a->start;
	q->position = q->goal_end ? q->goal : a->start;
	q->end = a->epoch_end;
	memcpy(q->claim, q->nonce, TSI_NONCE);
	memset(q->was, 0, sizeof(q->was));
	machine.returned += q->owed;
	machine.resumed += q->goal_end && q->resumes;
	machine.segmented += !q->goal_end && q->join == TSOCK_JOIN_SEGMENT &&
			     a->start % machine.n != 0;
	q->resumes = false;
	machine.joined++;
	q->owed = false;
	q->goal_end = 0;
}

static void step_calls(struct consumer *q)
{
	struct call *c = &machine.call[q->call % CALLS];

	if (c->answered) {
		if (c->reply.code == TSOCK_EAGAIN) {
			cancel(q);
			ask_anew(q);
		} else if (c->reply.code) {
			cancel(q);
			is_refused(q, c->reply.code, c->alone);
		} else {
			/* Its producer may have died since. */
			become_reader(q, c);
		}
	} else if (c->cut || machine.now - q->since_ms > CALL_MS) {
		c->hung_up = true;
		lose_call(q);
		ask_anew(q);
	}
}

/* ---- reading ---- */

static bool ring_is_there(const struct consumer *q)
{
	return machine.ring[q->ring].incarnation == q->incarnation;
}

static bool producer_lives(const struct consumer *q)
{
	return machine.up && machine.incarnation == q->incarnation;
}

static void leave(struct consumer *q)
{
	struct page *p = &machine.page[q->page];

	if (p->used && p->number == q->page_number)
		p->tail = q->position;
	q->serial++;
	q->since_ms = machine.now;
	q->again_ms = machine.now + REPEAT_MS;
	q->phase = LEAVES;
	post(q, TSI_LEAVE, q->claim);
}

/* In the middle of an epoch, or between two: the next producer is wanted. */
static void lose_reader(struct consumer *q)
{
	if (q->position == q->end && q->leaves) {
		/* It has all of the epoch, and says so when it comes again. */
		memcpy(q->was, q->claim, TSI_NONCE);
		q->phase = IDLE;
		q->owed = false;
		return;
	}
	if (q->position == q->end)
		q->end += machine.n;
	q->goal = q->position;
	q->goal_end = q->end;
	memcpy(q->was, q->claim, TSI_NONCE);
	await_producer(q);
}

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

static void take(struct consumer *q)
{
	const struct ring *r = &machine.ring[q->ring];
	uint64_t n = q->end - q->position;

	if (!n) {
		q->epochs++;
		if (q->leaves && producer_lives(q))
			leave(q);
		else if (q->leaves)
			lose_reader(q);
		else
			q->end += machine.n;
		return;
	}
	n = n < q->batch ? n : q->batch;
	if (ring_is_there(q) && r->head >= q->position + n) {
		for (uint64_t s = q->position; s < q->position + n; s++)
			check(r->slot[s % machine.c] == s);
		q->position += n;
		machine.taken += n;
		save(q);
	} else if (!producer_lives(q)) {
		lose_reader(q);
	}
}

static void release(struct consumer *q)
{
	const struct ring *r = &machine.ring[q->ring];
	struct page *p = &machine.page[q->page];

	/* What is held was never written over. */
	for (uint64_t s = q->tail; s < q->position && ring_is_there(q); s++)
		check(s >= r->head || r->slot[s % machine.c] == s ||
		      s < q->start);
	q->tail = q->position;
	if (p->used && p->number == q->page_number)
		p->tail = q->tail;
}

static void step_reads(struct consumer *q)
{
	uint64_t what = machine_random(200);

	if (what == 0 && !machine.fair && q->world == 1 && producer_lives(q))
		leave(q);
	else if (what & 1)
		take(q);
	else
		release(q);
}

static void step_leaves(struct consumer *q)
{
	struct letter l;

	while (machine_fetch(&q->in, &l))
		if (l.serial == q->serial) {
			check(l.type == TSI_LEFT);
			q->phase = IDLE;
			return;
		}
	if (!producer_lives(q) || machine.now - q->since_ms > LEAVE_MS) {
		q->stale = true;
		q->phase = IDLE;
	} else if (machine.now >= q->again_ms) {
		post(q, TSI_LEAVE, q->claim);
		q->again_ms = machine.now + REPEAT_MS;
	}
}

static void step_waits(struct consumer *q)
{
	/* An error with a sentence: none came for so long. */
	if (machine.now - q->since_ms > REJOIN_MS && !machine.up)
		consumer_die(q);
	if (q->phase != WAITS || !machine.up || machine_random(2))
		return;
	q->incarnation = machine.incarnation;
	q->returns = true;
	ask_anew(q);
}

void consumer_loses_producer(struct consumer *q, bool recorded)
{
	if (q->phase == READS && recorded)
		q->owed = true;
}

void consumer_step(struct consumer *q)
{
	switch (q->phase) {
	case ABSENT:
		if (!machine.fair && machine_random(8) == 0)
			consumer_born(q);
		break;
	case IDLE:
		if (machine.fair ? job_has_begun(q) : machine_random(4) == 0)
			begin(q);
		break;
	case ASKS:
		step_asks(q);
		break;
	case CALLS_IN:
		step_calls(q);
		break;
	case READS:
		step_reads(q);
		break;
	case WAITS:
		step_waits(q);
		break;
	case LEAVES:
		step_leaves(q);
	}
}
