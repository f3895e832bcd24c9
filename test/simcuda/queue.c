/* SPDX-License-Identifier: MIT */
/*
 * queue.c - work in streams: what is put there, in which order with the
 * default stream, and what a wait asks the engine for.
 *
 * A mark is a point in a stream.  An event means the mark of its last record;
 * a wait keeps that mark, so that a later record doesn't change it.
 */
#include "sim.h"

#include <stdlib.h>

struct sim_mark *sim_mark_create(void)
{
	struct sim_mark *m = sim_alloc(sizeof(*m));

	m->refs = 1;
	return m;
}

void sim_mark_put(struct sim_mark *m)
{
	if (m && --m->refs == 0)
		free(m);
}

struct sim_op *sim_op_create(enum sim_opkind kind)
{
	struct sim_op *op = sim_alloc(sizeof(*op));

	op->kind = kind;
	op->nsteps = 1;
	return op;
}

void sim_op_free(struct sim_op *op)
{
	if (op->kind == SIM_OP_RECORD)
		op->mark->done = true;
	sim_mark_put(op->mark);
	if (op->fini)
		op->fini(op->arg);
	free(op->staging);
	free(op);
}

void sim_stream_drop(struct sim_stream *s)
{
	struct sim_op *op = s->head, *next;

	/* The engine is in the first one and sees to that itself. */
	if (op && op->running) {
		next = op->next;
		op->next = NULL;
		s->tail = op;
		op = next;
	} else {
		s->head = s->tail = NULL;
	}
	for (; op; op = next) {
		next = op->next;
		sim_op_free(op);
	}
}

void sim_reap(void)
{
	struct sim_stream **at = &sim.stream, *s;

	while ((s = *at)) {
		if (s->destroyed && !s->head) {
			*at = s->next;
			free(s);
		} else {
			at = &s->next;
		}
	}
}

static int64_t not_before(void)
{
	int64_t now = sim_now();
	uint32_t r;

	switch (sim.mode) {
	case SIM_LATE:
		return now + sim.late_ns;
	case SIM_REVERSE:
		return now + 3 * SIM_MS;
	case SIM_RANDOM:
		r = sim_random();
		if (r % 16 < 8)
			return 0;
		return now + (r >> 8) % (r % 16 < 14 ? SIM_MS : 10 * SIM_MS);
	default:
		return 0;
	}
}

static void put(struct sim_stream *s, struct sim_op *op)
{
	op->order = ++sim.next_order;
	op->seq = ++s->seq;
	op->not_before = not_before();
	op->backward = sim_random() & 1;
	if (s->tail)
		s->tail->next = op;
	else
		s->head = op;
	s->tail = op;
	if (op->kind == SIM_OP_RECORD) {
		op->mark->stream = s;
		op->mark->seq = op->seq;
		if (op->mark->wanted)
			sim_demand(s, op->seq);
	}
	sim_engine_wake();
}

static void put_record(struct sim_stream *s, struct sim_mark *m)
{
	struct sim_op *op = sim_op_create(SIM_OP_RECORD);

	m->refs++;
	op->mark = m;
	put(s, op);
}

static void put_wait(struct sim_stream *s, struct sim_mark *m)
{
	struct sim_op *op = sim_op_create(SIM_OP_WAIT);

	m->refs++;
	op->mark = m;
	put(s, op);
}

/* What is in from now runs before what will be put in to. */
static void order(struct sim_stream *from, struct sim_stream *to)
{
	struct sim_mark *m;

	if (!from->head)
		return;
	m = sim_mark_create();
	put_record(from, m);
	put_wait(to, m);
	sim_mark_put(m);
}

/* The legacy default stream runs alone among a device's blocking streams. */
static void order_with_default(struct sim_stream *s)
{
	if (!s->blocking)
		return;
	for (struct sim_stream *t = sim.stream; t; t = t->next)
		if (t != s && t->device == s->device && t->blocking &&
		    (s->legacy || t->legacy))
			order(t, s);
}

void sim_enqueue(struct sim_stream *s, struct sim_op *op)
{
	order_with_default(s);
	put(s, op);
}

void sim_record(struct sim_stream *s, struct sim_mark *m)
{
	order_with_default(s);
	put_record(s, m);
}

void sim_wait(struct sim_stream *s, struct sim_mark *m)
{
	order_with_default(s);
	if (!m->done)
		put_wait(s, m);
}

static void want(struct sim_mark *m)
{
	m->wanted = true;
	if (!m->done && m->stream)
		sim_demand(m->stream, m->seq);
}

void sim_demand(struct sim_stream *s, uint64_t seq)
{
	for (struct sim_op *op = s->head; op && op->seq <= seq; op = op->next) {
		if (op->forced)
			continue;
		op->forced = true;
		if (op->kind == SIM_OP_WAIT)
			want(op->mark);
	}
	sim_engine_wake();
}

bool sim_insist(unsigned *queries)
{
	switch (sim.mode) {
	case SIM_LATE:
		return ++*queries > 3;
	case SIM_REVERSE:
		return ++*queries > 2;
	default:
		return sim_random() % 3 == 0;
	}
}

void sim_finish(struct sim_mark *m)
{
	m->refs++;
	want(m);
	while (!m->done)
		pthread_cond_wait(&sim.done, &sim.lock);
	sim_mark_put(m);
}

cudaError_t sim_stream_finish(struct sim_stream *s)
{
	unsigned device = s->device;
	struct sim_mark *m;

	order_with_default(s);
	if (s->head) {
		m = sim_mark_create();
		put_record(s, m);
		sim_finish(m);
		sim_mark_put(m);
	}
	return sim.dev[device].sticky;
}

cudaError_t sim_device_finish(unsigned device)
{
	struct sim_mark *m[64];
	unsigned n;

	do {
		n = 0;
		for (struct sim_stream *s = sim.stream; s && n < 64;
		     s = s->next)
			if (s->device == device && s->head) {
				m[n] = sim_mark_create();
				put_record(s, m[n++]);
			}
		for (unsigned i = 0; i < n; i++) {
			sim_finish(m[i]);
			sim_mark_put(m[i]);
		}
	} while (n == 64);
	return sim.dev[device].sticky;
}
