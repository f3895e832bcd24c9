/* SPDX-License-Identifier: MIT */
/*
 * nccl.c - one buffer to several GPUs of this process at once, by NCCL.
 *
 * NCCL is loaded at run time, with all functions that are needed or not at all.
 * Its interface is declared here: only nine functions and no struct are used.
 *
 * Never spans processes, never runs two ranks on one GPU.
 */
#include "stage/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage/caller.h"
#include "base/clock.h"
#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/device.h"

/* As in nccl.h since 2.0. */
typedef void *nccl_comm;
typedef int nccl_result;
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_UINT8 = 1 };

static struct {
	nccl_result (*version)(int *version);
	const char *(*text)(nccl_result r);
	nccl_result (*init_all)(nccl_comm *comm, int n, const int *devices);
	nccl_result (*destroy)(nccl_comm comm);
	nccl_result (*abort)(nccl_comm comm);
	nccl_result (*async_error)(nccl_comm comm, nccl_result *r);
	nccl_result (*group_start)(void);
	nccl_result (*group_end)(void);
	nccl_result (*broadcast)(const void *src, void *dst, size_t count,
				 int type, int root, nccl_comm comm,
				 void *stream);
} nccl;

/* One buffer: where each rank has it. */
struct part {
	void *at[TSI_GPUS];
	uint64_t bytes;
};

/*
 * NCCL's calls are made in a thread that may be left in one of them, so all
 * that they use is in here, and stays until they have returned.
 */
struct tsi_nccl {
	_Atomic unsigned refs; /* the owner, and each thread */
	struct tsi_caller *caller;
	unsigned n;
	int device[TSI_GPUS];
	nccl_comm comm[TSI_GPUS];
	bool opened;
	_Atomic bool ended;            /* no communicator is of use any more */
	nccl_result (*how)(nccl_comm); /* ... to end them by */
	struct part *part;             /* to broadcast */
	unsigned parts, room;
	unsigned root;
	tsi_gpu_stream stream[TSI_GPUS];
};

/* ---- loading ---- */

static char lacks[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_function(void *lib, const char *path, const char *name,
			  void *out)
{
	void *fn = dlsym(lib, name);

	if (!fn && !*lacks)
		snprintf(lacks, sizeof(lacks), "%.160s has no %s", path, name);
	memcpy(out, &fn, sizeof(fn));
}

static void load_nccl(void)
{
	const char *path = getenv("TSOCK_NCCL");
	const char *why;
	void *lib;

	if (!path || !*path)
		path = "libnccl.so.2";
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		why = dlerror();
		snprintf(lacks, sizeof(lacks),
			 "%.200s; install NCCL, or name it in TSOCK_NCCL",
			 why ? why : path);
		return;
	}
	find_function(lib, path, "ncclGetVersion", &nccl.version);
	find_function(lib, path, "ncclGetErrorString", &nccl.text);
	find_function(lib, path, "ncclCommInitAll", &nccl.init_all);
	find_function(lib, path, "ncclCommDestroy", &nccl.destroy);
	find_function(lib, path, "ncclCommAbort", &nccl.abort);
	find_function(lib, path, "ncclCommGetAsyncError", &nccl.async_error);
	find_function(lib, path, "ncclGroupStart", &nccl.group_start);
	find_function(lib, path, "ncclGroupEnd", &nccl.group_end);
	find_function(lib, path, "ncclBroadcast", &nccl.broadcast);
	if (*lacks)
		dlclose(lib);
}

static int loaded(void)
{
	int err = tsi_cuda_begin();

	if (err)
		return err;
	pthread_once(&once, load_nccl);
	return *lacks ? tsi_err(TSOCK_ENOTSUP, "no NCCL: %s", lacks) : 0;
}

/* 0, or our error; CUDA's last error is cleared. */
static int nccl_err(nccl_result r, const char *call)
{
	if (r == NCCL_SUCCESS)
		return 0;
	(void)cudaGetLastError();
	return tsi_err(TSOCK_ESYS, "%s: NCCL error %d (%s)", call, r,
		       nccl.text(r));
}

int tsi_nccl_version(int *version)
{
	int err = loaded();

	return err ? err : nccl_err(nccl.version(version), "ncclGetVersion");
}

/* ---- communicators ---- */

static int check_devices(const unsigned *devices, unsigned n)
{
	bool mig;
	int err;

	if (n < 2 || n > TSI_GPUS)
		return tsi_err(TSOCK_ENOTSUP, "NCCL needs 2 to %d GPUs, not %u",
			       TSI_GPUS, n);
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < i; k++)
			if (devices[i] == devices[k])
				return tsi_err(TSOCK_ENOTSUP,
					       "NCCL takes GPU %u once, not "
					       "twice",
					       devices[i]);
		err = tsi_cuda_is_mig(devices[i], &mig);
		if (err)
			return err;
		if (mig)
			return tsi_err(TSOCK_ENOTSUP,
				       "GPU %u is a MIG instance, which NCCL "
				       "doesn't support",
				       devices[i]);
	}
	return 0;
}

/* Nobody could do anything about an error. */
static int end_rank(nccl_comm comm, nccl_result (*how)(nccl_comm comm))
{
	if (how(comm) != NCCL_SUCCESS)
		(void)cudaGetLastError();
	return 0;
}

static int end_all(void *arg)
{
	struct tsi_nccl *c = arg;

	/* Also where the device is lost: the other ranks wait for that. */
	for (unsigned i = 0; i < c->n; i++)
		if (TSI_CUDA_ON((unsigned)c->device[i],
				end_rank(c->comm[i], c->how)))
			(void)end_rank(c->comm[i], c->how);
	return 0;
}

static void drop(void *arg)
{
	struct tsi_nccl *c = arg;

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	/* These were opened when nobody waited for them any more. */
	if (c->opened && !c->ended) {
		c->how = nccl.abort;
		end_all(c);
	}
	free(c->part);
	free(c);
}

static int start_caller(struct tsi_nccl *c, struct tsi_caller **out)
{
	int err;

	atomic_fetch_add(&c->refs, 1);
	err = tsi_caller_start("tsock-nccl", drop, c, out);
	if (err)
		atomic_fetch_sub(&c->refs, 1);
	return err;
}

static int too_long(const char *call, int64_t limit_ns)
{
	return tsi_err(TSOCK_ESYS, "%s has not returned within %.1f s", call,
		       (double)limit_ns / 1e9);
}

/* It waits for every GPU, and one may hang. */
static int init_all(void *arg)
{
	struct tsi_nccl *c = arg;
	int err = TSI_CUDA_ON(
		(unsigned)c->device[0],
		nccl_err(nccl.init_all(c->comm, (int)c->n, c->device),
			 "ncclCommInitAll"));

	c->opened = !err;
	return err;
}

int tsi_nccl_open(const unsigned *devices, unsigned n, int64_t limit_ns,
		  struct tsi_nccl **out)
{
	struct tsi_nccl *c;
	int err = loaded();

	if (!err)
		err = check_devices(devices, n);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for a communicator");
	c->refs = 1;
	c->n = n;
	for (unsigned i = 0; i < n; i++)
		c->device[i] = (int)devices[i];
	err = start_caller(c, &c->caller);
	if (!err && !tsi_caller_call(c->caller, init_all, limit_ns, &err))
		err = too_long("ncclCommInitAll", limit_ns);
	if (!err) {
		*out = c;
		return 0;
	}
	tsi_caller_end(c->caller);
	drop(c);
	return err;
}

/* One thread may hang in a broadcast: another one ends it. */
static int end_within(struct tsi_nccl *c, nccl_result (*how)(nccl_comm),
		      const char *name, int64_t limit_ns, bool *queues)
{
	int64_t until = tsi_now_ns() + limit_ns;
	struct tsi_caller *ender = c->caller, *other = NULL;
	int err = 0;

	c->how = how;
	c->ended = true;
	*queues = !tsi_caller_is_free(c->caller, 0);
	if (*queues) {
		err = start_caller(c, &other);
		ender = other;
	}
	if (!err && !tsi_caller_call(ender, end_all, limit_ns, &err))
		err = too_long(name, limit_ns);
	if (*queues)
		*queues = !tsi_caller_is_free(c->caller, until);
	tsi_caller_end(other);
	tsi_caller_end(c->caller);
	drop(c);
	return err;
}

int tsi_nccl_close(struct tsi_nccl *c, int64_t limit_ns)
{
	bool queues;

	return c ? end_within(c, nccl.destroy, "ncclCommDestroy", limit_ns,
			      &queues)
		 : 0;
}

int tsi_nccl_abort(struct tsi_nccl *c, int64_t limit_ns, bool *queues)
{
	return end_within(c, nccl.abort, "ncclCommAbort", limit_ns, queues);
}

/* ---- work ---- */

int tsi_nccl_add(struct tsi_nccl *c, void *const *at, uint64_t bytes)
{
	unsigned room = c->room ? 2 * c->room : 16;
	struct part *more;

	if (!bytes)
		return 0;
	if (c->parts == c->room) {
		more = realloc(c->part, room * sizeof(*more));
		if (!more)
			return tsi_err(TSOCK_ENOMEM, "no memory to broadcast");
		c->part = more;
		c->room = room;
	}
	memcpy(c->part[c->parts].at, at, c->n * sizeof(*at));
	c->part[c->parts++].bytes = bytes;
	return 0;
}

/* Queue every rank's part with its own device current. */
static int queue(struct tsi_nccl *c, const struct part *p)
{
	int err = 0;

	for (unsigned i = 0; i < c->n && !err; i++)
		err = TSI_CUDA_ON(
			(unsigned)c->device[i],
			nccl_err(nccl.broadcast(p->at[i], p->at[i], p->bytes,
						NCCL_UINT8, (int)c->root,
						c->comm[i], c->stream[i]),
				 "ncclBroadcast"));
	return err;
}

/* NCCL queues the work when the group ends. */
static int queue_group(struct tsi_nccl *c, const struct part *p)
{
	nccl_result r;
	int err = nccl_err(nccl.group_start(), "ncclGroupStart");

	if (err)
		return err;
	err = queue(c, p);
	r = nccl.group_end();
	return err ? err : nccl_err(r, "ncclGroupEnd");
}

static int queue_all(void *arg)
{
	struct tsi_nccl *c = arg;
	int err = 0;

	for (unsigned i = 0; i < c->parts && !err && !c->ended; i++)
		err = TSI_CUDA_ON((unsigned)c->device[c->root],
				  queue_group(c, &c->part[i]));
	return err;
}

int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root,
		       const tsi_gpu_stream *stream, int64_t limit_ns)
{
	int err = 0;

	if (root >= c->n)
		return tsi_err(TSOCK_EARG, "there is no rank %u of %u", root,
			       c->n);
	if (!c->parts)
		return 0;
	c->root = root;
	memcpy(c->stream, stream, c->n * sizeof(*stream));
	if (!tsi_caller_call(c->caller, queue_all, limit_ns, &err))
		return too_long("ncclGroupEnd", limit_ns);
	c->parts = 0;
	return err;
}

int tsi_nccl_healthy(struct tsi_nccl *c)
{
	nccl_result r, now;
	int err = loaded();

	for (unsigned i = 0; !err && i < c->n; i++) {
		r = nccl.async_error(c->comm[i], &now);
		if (r == NCCL_SUCCESS)
			r = now;
		if (r != NCCL_IN_PROGRESS)
			err = nccl_err(r, "a broadcast by NCCL");
	}
	return err;
}
