/* SPDX-License-Identifier: MIT */
/*
 * coll.c - broadcasts among streams of several devices, for libnccl_sim.c.
 *
 * A rank's part starts when the root's stream has come to the broadcast; the
 * root's stream goes on when every rank has its copy.  A rank that never joins
 * holds all up for ever, as with the real one.
 */
#include "sim.h"

#include <stdlib.h>

struct simcuda_coll {
	unsigned refs, joined, nranks, root;
	const char *src; /* once the root has joined */
	struct sim_mark *begun, **copied;
};

int simcuda_fault(const char *name)
{
	cudaError_t err = sim_enter(name, SIM_ANYTIME);

	sim_leave(cudaSuccess);
	return (int)err;
}

bool simcuda_is_mig(int device)
{
	unsigned d;
	bool mig = !sim_enter("simcuda_is_mig", SIM_ANYTIME) &&
		   !sim_ordinal(device, &d) && sim.dev[d].mig;

	sim_leave(cudaSuccess);
	return mig;
}

bool simcuda_is_broken(int device)
{
	unsigned d;
	bool broken = sim_enter("simcuda_is_broken", SIM_ANYTIME) ||
		      sim_ordinal(device, &d) || sim.dev[d].sticky;

	sim_leave(cudaSuccess);
	return broken;
}

struct simcuda_coll *simcuda_coll_create(unsigned nranks, unsigned root)
{
	struct simcuda_coll *c = sim_alloc(sizeof(*c));

	c->refs = 1;
	c->nranks = nranks;
	c->root = root;
	c->begun = sim_mark_create();
	c->copied = sim_alloc(nranks * sizeof(struct sim_mark *));
	for (unsigned i = 0; i < nranks; i++)
		c->copied[i] = sim_mark_create();
	return c;
}

static void drop(void *arg)
{
	struct simcuda_coll *c = arg;

	if (--c->refs)
		return;
	for (unsigned i = 0; i < c->nranks; i++)
		sim_mark_put(c->copied[i]);
	sim_mark_put(c->begun);
	free(c->copied);
	free(c);
}

/* From what the root sends, which is known when it runs. */
static void copy(struct simcuda_coll *c, struct sim_stream *s, void *recv,
		 size_t bytes)
{
	struct sim_op *op = sim_op_create(SIM_OP_COPY);
	struct sim_operand *to = &op->operand[0], *from = &op->operand[1];

	to->where = sim_where(recv, bytes);
	to->p = recv;
	from->at = &c->src;
	to->len = from->len = bytes;
	to->device = from->device = s->device;
	to->write = true;
	to->staged = from->staged = true;
	op->noperand = 2;
	op->nsteps = bytes < 64 ? 1 : 3 + sim_random() % 6;
	op->fini = drop;
	op->arg = c;
	c->refs++;
	sim_enqueue(s, op);
}

static void join(struct simcuda_coll *c, unsigned rank, const void *send,
		 void *recv, size_t bytes, struct sim_stream *s)
{
	if (rank != c->root) {
		sim_wait(s, c->begun);
		copy(c, s, recv, bytes);
		sim_record(s, c->copied[rank]);
		return;
	}
	c->src = send;
	sim_record(s, c->begun);
	if (recv != send)
		copy(c, s, recv, bytes);
	for (unsigned i = 0; i < c->nranks; i++)
		if (i != rank)
			sim_wait(s, c->copied[i]);
}

cudaError_t simcuda_coll_join(struct simcuda_coll *c, unsigned rank,
			      const void *send, void *recv, size_t bytes,
			      cudaStream_t stream)
{
	cudaError_t err = sim_enter("simcuda_coll_join", SIM_CONTEXT);
	struct sim_stream *s = NULL;

	if (!err)
		err = sim_stream_for_work(stream, &s);
	if (!err && s)
		join(c, rank, send, recv, bytes, s);
	/* Counted in any case: a rank that failed won't come again. */
	if (++c->joined == c->nranks)
		drop(c);
	return sim_leave(err);
}

void simcuda_coll_abort(struct simcuda_coll *c)
{
	sim_enter("simcuda_coll_abort", SIM_ANYTIME);
	c->begun->done = true;
	for (unsigned i = 0; i < c->nranks; i++)
		c->copied[i]->done = true;
	drop(c);
	pthread_cond_broadcast(&sim.done);
	pthread_cond_signal(&sim.work);
	sim_leave(cudaSuccess);
}
