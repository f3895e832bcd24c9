/* SPDX-License-Identifier: MIT */
/*
 * protocol_process.c - the processes of protocol.h's consumers: how they begin,
 * alone or as the ranks of a job, and how they end.
 */
#include "test/lib/protocol.h"

#include <string.h>

#include "base/sequence.h"

static void forget_stream(struct consumer *q)
{
	q->returns = false;
	q->incarnation = 0;
	q->end = q->goal_end = 0;
	memset(q->was, 0, sizeof(q->was));
	memset(&q->claim, 0, sizeof(q->claim));
	q->owed = q->stale = q->detached = false;
	q->before.kept = false;
	q->step = 0;
}

static void begin_process(struct consumer *q, uint32_t rank, uint32_t ranks)
{
	q->phase = IDLE;
	q->pid = ++q->life * 16 + q->number + 1;
	q->rank = rank;
	q->world = ranks;
	q->leaves = ranks == 1 && machine_random(2);
	q->join = ranks == 1 && machine_random(4) == 0 ? TSOCK_JOIN_NOW
						       : TSOCK_JOIN_EPOCH;
	if (ranks > 1) {
		q->join = machine.job_join;
		q->leaves = machine.job_leaves;
	} else if (machine.saves && machine_random(2)) {
		q->join = TSOCK_JOIN_SEGMENT;
	}
	q->batch = 1 + (uint32_t)machine_random((machine.c - machine.w) / 2);
	q->view = machine.detaches ? (uint32_t)machine_random(VIEWS) : 0;
	memset(q->job, 0, sizeof(q->job));
	memcpy(q->job, &machine.jobs, sizeof(machine.jobs));
	q->epochs = 0;
	q->begun = 0;
	q->stopped_until = 0;
	q->out.n = q->in.n = 0;
	forget_stream(q);
}

/* How its ranks join, and where: all alike. */
static void begin_job(void)
{
	const struct consumer *first = &machine.who[0];

	machine.jobs++;
	machine.job_epochs = 0;
	machine.job_leaves = machine.parts && machine_random(3);
	machine.job_stopped_ms = 0;
	machine.job_join = TSOCK_JOIN_EPOCH;
	machine.job_goal_end = 0;
	if (machine.saves && machine_random(2))
		machine.job_join = TSOCK_JOIN_SEGMENT;
	if (first->saved_end && machine_random(2)) {
		machine.job_goal = first->saved;
		machine.job_goal_end = first->saved_end;
	}
}

void consumer_born(struct consumer *q)
{
	if (q->number >= machine.ranks) {
		begin_process(q, 0, 1);
		return;
	}
	/* All ranks of a job begin, and end, together. */
	begin_job();
	for (unsigned i = 0; i < machine.ranks; i++)
		begin_process(&machine.who[i], i, machine.ranks);
}

static void end_process(struct consumer *q)
{
	if (q->phase == CALLS_IN)
		machine.call[q->call % CALLS].hung_up = true;
	q->phase = ABSENT;
	q->pid = 0;
	q->owed = q->stale = q->detached = false;
	q->before.kept = false;
}

void consumer_die(struct consumer *q)
{
	if (q->number >= machine.ranks) {
		end_process(q);
		return;
	}
	for (unsigned i = 0; i < machine.ranks; i++)
		end_process(&machine.who[i]);
}

bool consumer_is_busy(const struct consumer *q)
{
	return q->phase != ABSENT && q->phase != IDLE;
}
