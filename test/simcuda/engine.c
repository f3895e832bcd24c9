/* SPDX-License-Identifier: MIT */
/*
 * engine.c - the thread that does the work, in pieces, when the mode says so:
 *
 * eager    as soon as it can, oldest first
 * late     only what somebody waits for, and what that waits for
 * random   after a random while; between two pieces of one operation there may
 *          be pieces of others
 * reverse  of several streams the one with the newest work first
 * stuck    now and then nothing moves for SIMCUDA_STUCK_MS, whoever waits
 *
 * A source is read, and every right is asked for, when a piece runs.  It never
 * runs work that has to wait for other work.
 */
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void sim_quiesce(void)
{
	while (sim.busy)
		pthread_cond_wait(&sim.done, &sim.lock);
}

/* When the first of a stream may go on; INT64_MAX: after other work. */
static int64_t ready_at(struct sim_stream *s, int64_t now)
{
	struct sim_op *op = s->head;
	int64_t at;

	if (!op || (op->kind == SIM_OP_WAIT && !op->mark->done))
		return INT64_MAX;
	at = op->forced || op->step ? 0 : op->not_before;
	if (at > now)
		return at;
	if (!op->reached) {
		op->reached = true;
		op->stuck_until = 0;
		if (op->kind < SIM_OP_RECORD)
			op->stuck_until = now + sim.slow_ns;
		if (sim.mode == SIM_STUCK && op->order >= sim.stuck_order) {
			op->stuck_until = now + sim.stuck_ns;
			sim.stuck_order = op->order * 16;
		}
	}
	return op->stuck_until;
}

static bool better(const struct sim_stream *a, const struct sim_stream *b)
{
	return sim.mode == SIM_REVERSE ? a->head->order > b->head->order
				       : a->head->order < b->head->order;
}

static bool forced_work(void)
{
	for (struct sim_stream *s = sim.stream; s; s = s->next)
		if (s->head && s->head->forced)
			return true;
	return false;
}

/* Somebody waits: of all that could run, in reverse, that goes last. */
static bool out_of_turn(struct sim_stream *s, bool forced)
{
	return forced && sim.mode == SIM_REVERSE && s->head &&
	       !(s->head->kind == SIM_OP_WAIT && !s->head->mark->done);
}

static struct sim_stream *pick(int64_t *wake)
{
	struct sim_stream *best = NULL;
	bool forced = forced_work();
	int64_t now = sim_now();
	unsigned n = 0;

	*wake = INT64_MAX;
	for (struct sim_stream *s = sim.stream; s; s = s->next) {
		if (out_of_turn(s, forced))
			s->head->not_before = 0;

		int64_t at = ready_at(s, now);

		if (at > now) {
			*wake = at < *wake ? at : *wake;
			continue;
		}
		n++;
		if (!best || (sim.mode == SIM_RANDOM ? sim_random() % n == 0
						     : better(s, best)))
			best = s;
	}
	return best;
}

static void broken(struct sim_stream *s, const struct sim_op *op, unsigned i,
		   cudaError_t err)
{
	static const char *const names[] = { "copy", "memset", "kernel" };
	const struct sim_operand *o = &op->operand[i];

	sim_say("ILLEGAL ADDRESS: a %s on device %u may not %s %zu bytes at %p",
		names[op->kind], s->device, o->write ? "write" : "read", o->len,
		(const void *)o->p);
	sim_break(s->device, err);
}

static cudaError_t reach_all(struct sim_stream *s, struct sim_op *op, char **at)
{
	cudaError_t err = sim_fault("work", s->device);

	if (err) {
		sim_break(s->device, err);
		return err;
	}
	for (unsigned i = 0; i < op->noperand; i++) {
		struct sim_operand *o = &op->operand[i];

		if (o->at && !op->step)
			o->p = *o->at;
		/* A broadcast that was given up. */
		if (o->at && !o->p) {
			op->nsteps = 0;
			return cudaSuccess;
		}
		if (!o->len)
			continue;
		if (o->at && o->where == SIM_NOWHERE)
			o->where = sim_where(o->p, o->len);
		if (sim_reach(o, &at[i])) {
			broken(s, op, i, cudaErrorIllegalAddress);
			return cudaErrorIllegalAddress;
		}
	}
	return cudaSuccess;
}

static void piece(struct sim_op *op, char **at)
{
	size_t len = op->operand[0].len;
	unsigned i = op->backward ? op->nsteps - 1 - op->step : op->step;
	size_t from = len * i / op->nsteps, to = len * (i + 1) / op->nsteps;

	if (op->kind == SIM_OP_KERNEL)
		op->run(op->arg, at, op->step);
	else if (op->kind == SIM_OP_SET)
		memset(at[0] + from, op->value, to - from);
	else if (len)
		memmove(at[0] + from, at[1] + from, to - from);
	if (op->lies && from <= len / 2 && len / 2 < to)
		at[0][len / 2] ^= 0x10;
}

/* From one device's memory straight to another's. */
static bool spoils(const struct sim_op *op)
{
	int to, from;

	if (op->kind != SIM_OP_COPY)
		return false;
	to = sim_owner(op->operand[0].p);
	from = sim_owner(op->operand[1].p);
	return to >= 0 && from >= 0 && to != from &&
	       ((sim.lies[to][from] && sim.p2p[to][from]) ||
		(sim.nccl_lies && op->operand[1].at));
}

/* A copy from another device's memory, to which this one has no right. */
static void count_through_host(const struct sim_op *op)
{
	struct sim_operand from = op->operand[1];
	char *at;

	if (op->kind != SIM_OP_COPY || !op->operand[0].len ||
	    sim_owner(op->operand[0].p) < 0 || sim_owner(from.p) < 0)
		return;
	from.staged = false;
	if (sim_reach(&from, &at))
		sim.through_host += from.len;
}

static void pop(struct sim_stream *s)
{
	struct sim_op *op = s->head;

	s->head = op->next;
	if (!s->head) {
		s->tail = NULL;
		s->queries = 0;
	}
	if (op->kind == SIM_OP_RECORD || !s->head)
		pthread_cond_broadcast(&sim.done);
	sim_op_free(op);
}

/* The lock is left while memory is touched. */
static void run_op(struct sim_stream *s, struct sim_op *op)
{
	char *at[SIMCUDA_RANGES] = { NULL };

	if (reach_all(s, op, at))
		return; /* sim_break() has dropped it */
	if (!op->nsteps) {
		pop(s);
		return;
	}
	if (!op->step) {
		op->lies = spoils(op);
		count_through_host(op);
	}
	op->running = sim.busy = true;
	pthread_mutex_unlock(&sim.lock);
	piece(op, at);
	pthread_mutex_lock(&sim.lock);
	op->running = sim.busy = false;
	pthread_cond_broadcast(&sim.done);
	op->step++;
	if (op->step >= op->nsteps || sim.dev[s->device].sticky)
		pop(s);
}

static void advance(struct sim_stream *s)
{
	if (s->head->kind < SIM_OP_RECORD)
		run_op(s, s->head);
	else
		pop(s);
	sim_reap();
}

static void sleep_until(int64_t wake)
{
	struct timespec ts = { wake / 1000000000, wake % 1000000000 };

	if (wake == INT64_MAX)
		pthread_cond_wait(&sim.work, &sim.lock);
	else
		pthread_cond_timedwait(&sim.work, &sim.lock, &ts);
}

static void *engine(void *arg)
{
	struct sim_stream *s;
	int64_t wake;

	pthread_mutex_lock(&sim.lock);
	for (;;) {
		s = pick(&wake);
		if (s)
			advance(s);
		else
			sleep_until(wake);
	}
	return arg;
}

void sim_engine_wake(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;

	if (sim.engine) {
		pthread_cond_signal(&sim.work);
		return;
	}
	/* The application's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, engine, NULL))
		sim_die("no thread for the simulation");
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	sim.engine = true;
}
