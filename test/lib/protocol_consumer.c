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

void consumer_post(struct consumer *q, uint16_t type, const uint8_t *nonce)
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
			.view = { .dtype = q->view },
			.position = q->goal,
			.epoch_end = q->goal_end,
			.returns = q->returns ? TSI_RETURNS_UNBEGUN
					      : TSI_RETURNS_NOT,
			.detached = q->detached && q->goal_end
		};
	memcpy(l.join.nonce, nonce, TSI_NONCE);
	memcpy(l.join.job, q->job, TSOCK_JOB);
	memcpy(l.join.was, q->was, TSI_NONCE);
	machine_post(&q->out, &l);
}

static void ask(struct consumer *q, int64_t again_ms)
{
	consumer_post(q, TSI_JOIN, q->nonce);
	q->again_ms = machine.now + again_ms;
}

void consumer_ask(struct consumer *q)
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
	consumer_post(q, TSI_LEAVE, q->nonce);
}

/* A claim that the producer may have recorded, and that never arrived. */
static void lose_call(struct consumer *q)
{
	/* A consumer that wants to begin says by which name it may be known. */
	if (!q->goal_end && same(q->was, nobody))
		memcpy(q->was, q->nonce, TSI_NONCE);
	else if (same(q->was, nobody))
		q->stale = true;
	cancel(q);
}

void consumer_await_producer(struct consumer *q)
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

/* Others of its job have had an epoch, and a producer has died since, or this
 * one's claim was made and never heard of. */
static bool may_be_too_late(const struct consumer *q)
{
	return q->world > 1 && q->leaves;
}

/* The answer is an error: is that what it had to count with? */
static void is_refused(struct consumer *q, int32_t code, bool alone)
{
	if (code == TSOCK_ELOST) {
		consumer_await_producer(q);
		return;
	}
	check(code == TSOCK_EREFUSED && !q->detached);
	check(!q->owed || machine.now - machine.began_ms >= GRACE_MS);
	/* Only where it said itself where it wants to begin, or was held up
	 * while the other ranks of its job began. */
	check(q->goal_end || was_held_up(q) || may_be_too_late(q));
	machine.parted += !q->goal_end && !was_held_up(q);
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
	consumer_ask(q);
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
				consumer_await_producer(q);
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
		consumer_await_producer(q);
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

/* Whatever epoch one rank gets, all get, and in the same order. */
static void check_job(struct consumer *q, uint64_t start)
{
	uint64_t *at = &machine.job_start[q->begun % JOB_EPOCHS];

	check(machine.job_epochs < q->begun + JOB_EPOCHS);
	machine.followed += q->begun < machine.job_epochs;
	if (q->begun++ == machine.job_epochs) {
		machine.job_epochs++;
		*at = start;
	}
	check(start == *at);
}

static void check_start(struct consumer *q, uint64_t start, uint64_t end)
{
	uint64_t n = machine.n;

	check(end > start);
	if (q->detached) {
		/* Where the stream is, or where it was: in order. */
		check(start >= q->goal && end <= start + n);
		check(end >= q->goal_end && (end - q->goal_end) % n == 0);
		return;
	}
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
	if (q->world > 1)
		check_job(q, start);
}

/* The consumer missed the samples between, perhaps the rest of its epoch. */
static void go_on_behind(struct consumer *q, uint64_t start)
{
	q->position = start;
	if (start < q->goal_end)
		return;
	q->epochs++;
	if (q->leaves) {
		q->end = q->goal_end;
		consumer_leave(q);
	}
}

static void become_reader(struct consumer *q, const struct call *c)
{
	const struct tsi_reply *a = &c->reply;

	check_start(q, a->start, a->epoch_end);
	q->phase = READS;
	q->claim = (struct claim){ .incarnation = q->incarnation,
				   .page = c->page,
				   .page_number = c->page_number,
				   .ring = (unsigned)(q->incarnation % RINGS),
				   .view = q->view,
				   .row = a->row,
				   .reader = a->reader,
				   .generation = !machine.detaches,
				   .taken_in = 1,
				   .tail = a->start,
				   .start = a->start };
	memcpy(q->claim.nonce, q->nonce, TSI_NONCE);
	q->position = q->goal_end ? q->goal : a->start;
	q->end = a->epoch_end;
	q->step = 0;
	memset(q->was, 0, sizeof(q->was));
	machine.returned += q->owed;
	machine.resumed += q->goal_end && q->resumes;
	machine.segmented += !q->goal_end && q->join == TSOCK_JOIN_SEGMENT &&
			     a->start % machine.n != 0;
	q->resumes = false;
	machine.joined++;
	q->owed = false;
	if (q->detached)
		go_on_behind(q, a->start);
	q->detached = false;
	q->goal_end = 0;
}

static void step_calls(struct consumer *q)
{
	struct call *c = &machine.call[q->call % CALLS];

	if (c->answered) {
		if (c->reply.code == TSOCK_EAGAIN) {
			cancel(q);
			consumer_ask(q);
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
		consumer_ask(q);
	}
}

/* ---- leaving, and going on ---- */

static void step_leaves(struct consumer *q)
{
	struct letter l;

	while (machine_fetch(&q->in, &l))
		if (l.serial == q->serial) {
			check(l.type == TSI_LEFT);
			q->phase = IDLE;
			return;
		}
	/* Its first LEAVE, which is never lost, is still to be sent. */
	if (!q->since_ms && q->out.n == LETTERS && consumer_has_producer(q))
		return;
	if (!q->since_ms)
		q->since_ms = q->again_ms = machine.now;
	if (!consumer_has_producer(q) || machine.now - q->since_ms > LEAVE_MS) {
		/* The word in the record is there all the same. */
		q->stale |= !machine.detaches;
		q->phase = IDLE;
	} else if (machine.now >= q->again_ms) {
		consumer_post(q, TSI_LEAVE, q->claim.nonce);
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
	consumer_ask(q);
}

bool consumer_take_off(struct consumer *q, const uint8_t *nonce)
{
	if (!machine_take_off(nonce))
		return false;
	memcpy(q->off, nonce, TSI_NONCE);
	q->off_in = machine.incarnation;
	machine.took_off++;
	return true;
}

/* Has it a connection that its producer has still to answer? */
static bool is_calling(const struct consumer *q)
{
	for (unsigned i = 0; i < CALLS; i++) {
		const struct call *c = &machine.call[i];

		if (c->number && c->person == q->number && !c->answered &&
		    !c->cut)
			return true;
	}
	return false;
}

/*
 * Its job wants no more of the stream: nobody is to wait for what it had, or
 * may have without knowing.
 */
static void forgo(struct consumer *q)
{
	bool calls = q->phase == CALLS_IN || is_calling(q);

	/* A producer may put that into the record now, and die. */
	q->stale |= calls;
	if (q->phase == CALLS_IN)
		machine.call[q->call % CALLS].hung_up = true;
	if (q->phase == ASKS || q->phase == CALLS_IN)
		cancel(q);
	if (!same(q->was, nobody) && consumer_take_off(q, q->was)) {
		if (calls)
			memset(q->off, 0, TSI_NONCE);
		q->serial++;
		if (machine.listens)
			consumer_post(q, TSI_LEAVE, q->was);
	}
	memset(q->was, 0, TSI_NONCE);
	q->owed = q->detached = false;
	q->phase = IDLE;
}

/* What can be done at any time, besides. */
static bool step_aside(struct consumer *q)
{
	bool wants = q->phase == ASKS || q->phase == CALLS_IN ||
		     q->phase == WAITS ||
		     (q->phase == IDLE && !same(q->was, nobody));

	if (q->before.kept && machine_random(8) == 0) {
		consumer_let_go(q);
		return true;
	}
	/* Few letters at once: none of these gets lost. */
	if (wants && !machine.fair && q->out.n < LETTERS / 2 &&
	    machine_random(machine.listens && !machine.up ? 4 : 300) == 0) {
		forgo(q);
		return true;
	}
	return false;
}

void consumer_loses_producer(struct consumer *q, bool recorded)
{
	if (q->phase == READS && recorded)
		q->owed = true;
}

void consumer_step(struct consumer *q)
{
	if (machine.detaches && step_aside(q))
		return;
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
		consumer_read(q);
		break;
	case WAITS:
		step_waits(q);
		break;
	case LEAVES:
		step_leaves(q);
	}
}
