/* SPDX-License-Identifier: MIT */
/*
 * libnccl_sim.c - the part of NCCL that libtsock uses, on simulated GPUs: a
 * shared object to load where TSOCK_NCCL names it.
 *
 * Communicators of one process, broadcasts, groups.  As with the real one a
 * device may be in a communicator only once, MIG instances are refused, and a
 * rank that doesn't take part makes the others wait for ever.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda.h"

enum {
	OK = 0,
	UNHANDLED_CUDA_ERROR = 1,
	INTERNAL_ERROR = 3,
	INVALID_ARGUMENT = 4,
	INVALID_USAGE = 5,
	REMOTE_ERROR = 6,
};

#define VERSION 22809
#define PENDING 64

/* Broadcasts that some ranks have joined and others not yet. */
struct clique {
	unsigned refs, nranks;
	bool aborted; /* some rank was */
	int *device;
	struct pending {
		uint64_t number;
		struct simcuda_coll *coll;
		unsigned root, joined;
	} pending[PENDING];
};

struct comm {
	struct clique *clique;
	unsigned rank;
	uint64_t next; /* number of its next broadcast */
	int failed;
};

struct call {
	const void *send;
	void *recv;
	size_t bytes;
	unsigned root;
	struct comm *comm;
	cudaStream_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t aborts = PTHREAD_COND_INITIALIZER;
static _Thread_local unsigned depth;
static _Thread_local struct call queued[256];
static _Thread_local unsigned nqueued;
static _Thread_local int group_error;

int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
const char *ncclGetLastError(struct comm *comm);
int ncclCommInitAll(struct comm **comms, int ndev, const int *devlist);
int ncclCommDestroy(struct comm *comm);
int ncclCommAbort(struct comm *comm);
int ncclCommFinalize(struct comm *comm);
int ncclCommCount(const struct comm *comm, int *count);
int ncclCommGetAsyncError(struct comm *comm, int *error);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclBroadcast(const void *send, void *recv, size_t count, int datatype,
		  int root, struct comm *comm, cudaStream_t stream);
int ncclBcast(void *buf, size_t count, int datatype, int root,
	      struct comm *comm, cudaStream_t stream);

int ncclGetVersion(int *version)
{
	if (!version)
		return INVALID_ARGUMENT;
	*version = VERSION;
	return OK;
}

const char *ncclGetErrorString(int result)
{
	static const char *const text[] = {
		"no error",         "unhandled cuda error", "system error",
		"internal error",   "invalid argument",     "invalid usage",
		"a remote failure", "in progress",
	};

	return (unsigned)result < 8 ? text[result] : "unknown result code";
}

const char *ncclGetLastError(struct comm *comm)
{
	(void)comm;
	return "simulated";
}

static int check_devices(const int *list, int n)
{
	int count;

	if (cudaGetDeviceCount(&count) != cudaSuccess)
		return UNHANDLED_CUDA_ERROR;
	for (int i = 0; i < n; i++) {
		int d = list ? list[i] : i;

		if (d < 0 || d >= count)
			return INVALID_ARGUMENT;
		if (simcuda_is_mig(d))
			return INVALID_USAGE;
		if (simcuda_is_broken(d))
			return UNHANDLED_CUDA_ERROR;
		for (int k = 0; list && k < i; k++)
			if (list[k] == d)
				return INVALID_USAGE;
	}
	return OK;
}

static void give_up(struct clique *q)
{
	for (unsigned i = 0; i < PENDING; i++)
		if (q->pending[i].coll)
			simcuda_coll_abort(q->pending[i].coll);
	memset(q->pending, 0, sizeof(q->pending));
}

static void drop_clique(struct clique *q)
{
	if (--q->refs)
		return;
	give_up(q);
	if (q->aborted)
		simcuda_coll_unstall();
	free(q->device);
	free(q);
}

static struct comm *new_comm(struct clique *q, unsigned rank)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (c) {
		c->clique = q;
		c->rank = rank;
		q->refs++;
	}
	return c;
}

static int init_all(struct comm **comms, int n, const int *list)
{
	struct clique *q = calloc(1, sizeof(*q));
	int err = OK;

	if (!q || !(q->device = calloc((size_t)n, sizeof(int)))) {
		free(q);
		return INTERNAL_ERROR;
	}
	q->refs = 1;
	q->nranks = (unsigned)n;
	for (int i = 0; i < n; i++) {
		q->device[i] = list ? list[i] : i;
		comms[i] = new_comm(q, (unsigned)i);
		if (!comms[i])
			err = INTERNAL_ERROR;
	}
	drop_clique(q);
	return err;
}

int ncclCommInitAll(struct comm **comms, int ndev, const int *devlist)
{
	int err = simcuda_fault("ncclCommInitAll");

	if (err)
		return err;
	if (!comms || ndev < 1)
		return INVALID_ARGUMENT;
	err = check_devices(devlist, ndev);
	return err ? err : init_all(comms, ndev, devlist);
}

static int end(struct comm *comm, bool aborted)
{
	if (!comm)
		return OK;
	pthread_mutex_lock(&lock);
	comm->clique->aborted |= aborted;
	pthread_cond_broadcast(&aborts);
	drop_clique(comm->clique);
	pthread_mutex_unlock(&lock);
	free(comm);
	return OK;
}

int ncclCommDestroy(struct comm *comm)
{
	int err = simcuda_fault("ncclCommDestroy");

	return err ? err : end(comm, false);
}

/* What hangs ends with the last rank: each one has to be aborted. */
int ncclCommAbort(struct comm *comm)
{
	int err = simcuda_fault("ncclCommAbort");

	return err ? err : end(comm, true);
}

int ncclCommFinalize(struct comm *comm)
{
	return comm ? OK : INVALID_ARGUMENT;
}

int ncclCommCount(const struct comm *comm, int *count)
{
	if (!comm || !count)
		return INVALID_ARGUMENT;
	*count = (int)comm->clique->nranks;
	return OK;
}

int ncclCommGetAsyncError(struct comm *comm, int *error)
{
	int fault = simcuda_fault("ncclCommGetAsyncError");

	if (!comm || !error)
		return INVALID_ARGUMENT;
	*error = fault ? fault : comm->failed;
	for (unsigned i = 0; !*error && i < comm->clique->nranks; i++)
		if (simcuda_is_broken(comm->clique->device[i]))
			*error = UNHANDLED_CUDA_ERROR;
	return OK;
}

/* The broadcast that this is a rank's part of. */
static struct pending *find(struct clique *q, uint64_t number, unsigned root)
{
	struct pending *room = NULL;

	for (unsigned i = 0; i < PENDING; i++) {
		struct pending *p = &q->pending[i];

		if (p->coll && p->number == number)
			return p;
		if (!p->coll)
			room = p;
	}
	if (room) {
		room->number = number;
		room->coll = simcuda_coll_create(q->nranks, root);
		room->root = root;
		room->joined = 0;
	}
	return room;
}

static int join(const struct call *k)
{
	struct clique *q = k->comm->clique;
	struct pending *p;
	cudaError_t err;

	p = find(q, k->comm->next++, k->root);
	if (!p || p->root != k->root)
		return INVALID_USAGE;
	err = simcuda_coll_join(p->coll, k->comm->rank, k->send, k->recv,
				k->bytes, k->stream);
	if (++p->joined == q->nranks)
		p->coll = NULL;
	if (err)
		k->comm->failed = UNHANDLED_CUDA_ERROR;
	return k->comm->failed;
}

/* Each call on its own rank's device, as NCCL does itself. */
static int join_on_device(const struct call *k)
{
	int before, err;

	if (cudaGetDevice(&before) != cudaSuccess ||
	    cudaSetDevice(k->comm->clique->device[k->comm->rank]) !=
		    cudaSuccess)
		return UNHANDLED_CUDA_ERROR;
	pthread_mutex_lock(&lock);
	err = join(k);
	pthread_mutex_unlock(&lock);
	if (cudaSetDevice(before) != cudaSuccess)
		return UNHANDLED_CUDA_ERROR;
	return err;
}

int ncclGroupStart(void)
{
	int err = simcuda_fault("ncclGroupStart");

	if (!err)
		depth++;
	return err;
}

/* A group that doesn't get on, until a rank of it is aborted. */
static int await_abort(void)
{
	struct clique *q = queued[0].comm->clique;

	pthread_mutex_lock(&lock);
	q->refs++;
	while (!q->aborted)
		pthread_cond_wait(&aborts, &lock);
	drop_clique(q);
	pthread_mutex_unlock(&lock);
	return REMOTE_ERROR;
}

int ncclGroupEnd(void)
{
	int err = simcuda_fault("ncclGroupEnd");

	if (!depth)
		return INVALID_USAGE;
	if (--depth)
		return err;
	if (!err)
		err = group_error;
	if (!err && nqueued && simcuda_fault("ncclGroup"))
		err = await_abort();
	for (unsigned i = 0; i < nqueued && !err; i++)
		err = join_on_device(&queued[i]);
	nqueued = 0;
	group_error = OK;
	return err;
}

static size_t width(int datatype)
{
	static const size_t widths[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return (unsigned)datatype < 12 ? widths[datatype] : 0;
}

static int enlist(const struct call *k)
{
	if (!depth)
		return join_on_device(k);
	if (nqueued == 256)
		return INTERNAL_ERROR;
	queued[nqueued++] = *k;
	return OK;
}

int ncclBroadcast(const void *send, void *recv, size_t count, int datatype,
		  int root, struct comm *comm, cudaStream_t stream)
{
	struct call k = { send,           recv, count * width(datatype),
			  (unsigned)root, comm, stream };
	int err = simcuda_fault("ncclBroadcast");

	if (!err && (!comm || !recv || !width(datatype) || root < 0 ||
		     (unsigned)root >= comm->clique->nranks))
		err = INVALID_ARGUMENT;
	if (!err && stream && (uintptr_t)stream > 2 &&
	    simcuda_stream_device(stream) != comm->clique->device[comm->rank])
		err = INVALID_USAGE;
	if (!err)
		err = enlist(&k);
	if (err && depth)
		group_error = err;
	return err;
}

int ncclBcast(void *buf, size_t count, int datatype, int root,
	      struct comm *comm, cudaStream_t stream)
{
	return ncclBroadcast(buf, buf, count, datatype, root, comm, stream);
}
