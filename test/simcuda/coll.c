/* SPDX-License-Identifier: MIT */
/*
 * coll.c - broadcasts among streams of several devices, for libnccl_sim.c.
 *
 * Each rank copies from the one before it, the first one from the root, when the
 * bytes are there; the root's stream goes on when every rank has its copy.  A rank that never joins
 * holds all up for ever, as with the real one.
 */
#include "sim.h"

#include <stdlib.h>

struct simcuda_coll {
	unsigned refs, joined, nranks, root;
	/* By rank: where its bytes are once it has joined, and a mark for when
	 * they are there. */
	const char **at;
	struct sim_mark **there;
};

/* What ranks wait for whose work doesn't get on. */
static struct sim_mark *stalled[16];
static unsigned nstalled;

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
	c->at = sim_alloc(nranks * sizeof(*c->at));
	c->there = sim_alloc(nranks * sizeof(*c->there));
	for (unsigned i = 0; i < nranks; i++)
		c->there[i] = sim_mark_create();
	return c;
}

static void drop(void *arg)
{
	struct simcuda_coll *c = arg;

	if (--c->refs)
		return;
	for (unsigned i = 0; i < c->nranks; i++)
		sim_mark_put(c->there[i]);
	free(c->at);
	free(c->there);
	free(c);
}

/* From what another rank has, which is known when it runs. */
static void copy(struct simcuda_coll *c, unsigned from_rank,
		 struct sim_stream *s, void *recv, size_t bytes)
{
	struct sim_op *op = sim_op_create(SIM_OP_COPY);
	struct sim_operand *to = &op->operand[0], *from = &op->operand[1];

	to->where = sim_where(recv, bytes);
	to->p = recv;
	from->at = &c->at[from_rank];
	to->len = from->len = bytes;
	to->device = from->device = s->device;
	to->write = true;
	to->staged = from->staged = to->nccl = from->nccl = true;
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
	unsigned before = (rank + c->nranks - 1) % c->nranks;

	if (nstalled < 16 && sim_fault("ncclKernel", s->device)) {
		stalled[nstalled] = sim_mark_create();
		sim_wait(s, stalled[nstalled++]);
	}
	if (rank != c->root) {
		c->at[rank] = recv;
		sim_wait(s, c->there[before]);
		copy(c, before, s, recv, bytes);
		sim_record(s, c->there[rank]);
		return;
	}
	c->at[rank] = send;
	sim_record(s, c->there[rank]);
	if (recv != send)
		copy(c, rank, s, recv, bytes);
	for (unsigned i = 0; i < c->nranks; i++)
		if (i != rank)
			sim_wait(s, c->there[i]);
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
	for (unsigned i = 0; i < c->nranks; i++)
		c->there[i]->done = true;
	drop(c);
	pthread_cond_broadcast(&sim.done);
	pthread_cond_signal(&sim.work);
	sim_leave(cudaSuccess);
}

void simcuda_coll_unstall(void)
{
	sim_enter("simcuda_coll_unstall", SIM_ANYTIME);
	while (nstalled) {
		stalled[--nstalled]->done = true;
		sim_mark_put(stalled[nstalled]);
	}
	pthread_cond_broadcast(&sim.done);
	pthread_cond_signal(&sim.work);
	sim_leave(cudaSuccess);
}
