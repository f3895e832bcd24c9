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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
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

struct tsi_nccl {
	unsigned n;
	int device[TSI_GPUS];
	nccl_comm comm[TSI_GPUS];
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

static void load(void)
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
	pthread_once(&once, load);
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

/* NCCL being started, which waits for GPUs: one may hang. */
struct opening {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct tsi_nccl *c;
	bool done, left; /* left: nobody waits for it any more */
	struct tsi_err_saved result;
};

static void free_opening(struct opening *o)
{
	pthread_cond_destroy(&o->ended);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static void *open_thread(void *arg)
{
	struct opening *o = arg;
	struct tsi_nccl *c = o->c;
	bool left;
	int err;

	tsi_thread_name("tsock-nccl");
	err = TSI_CUDA_ON((unsigned)c->device[0],
			  nccl_err(nccl.init_all(c->comm, (int)c->n, c->device),
				   "ncclCommInitAll"));
	pthread_mutex_lock(&o->lock);
	o->result = tsi_err_save(err);
	o->done = true;
	left = o->left;
	pthread_cond_signal(&o->ended);
	pthread_mutex_unlock(&o->lock);
	if (!left)
		return NULL;
	if (err)
		free(c);
	else
		tsi_nccl_abort(c);
	free_opening(o);
	return NULL;
}

/* Takes c if it fails. */
static int open_within(struct tsi_nccl *c, int64_t limit_ns)
{
	struct opening *o = calloc(1, sizeof(*o));
	int64_t until = tsi_now_ns() + limit_ns;
	pthread_t thread;
	int err;

	if (!o) {
		free(c);
		return tsi_err(TSOCK_ENOMEM, "no memory to start NCCL");
	}
	pthread_mutex_init(&o->lock, NULL);
	tsi_thread_cond_init(&o->ended);
	o->c = c;
	err = tsi_thread_start(&thread, open_thread, o);
	if (err) {
		free(c);
		free_opening(o);
		return err;
	}
	pthread_detach(thread);
	pthread_mutex_lock(&o->lock);
	while (!o->done && tsi_now_ns() < until)
		tsi_thread_wait(&o->ended, &o->lock, until);
	o->left = !o->done;
	pthread_mutex_unlock(&o->lock);
	if (o->left)
		return tsi_err(TSOCK_ESYS,
			       "ncclCommInitAll has not returned within %.1f s",
			       (double)limit_ns / 1e9);
	err = tsi_err_restore(&o->result);
	free_opening(o);
	if (err)
		free(c);
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
	c->n = n;
	for (unsigned i = 0; i < n; i++)
		c->device[i] = (int)devices[i];
	err = open_within(c, limit_ns);
	if (!err)
		*out = c;
	return err;
}

/* Nobody could do anything about an error. */
static int end_rank(nccl_comm comm, nccl_result (*how)(nccl_comm comm))
{
	if (how(comm) != NCCL_SUCCESS)
		(void)cudaGetLastError();
	return 0;
}

static void end_all(struct tsi_nccl *c, nccl_result (*how)(nccl_comm comm))
{
	if (!c)
		return;
	/* Also where the device is lost: the other ranks wait for that. */
	for (unsigned i = 0; i < c->n; i++)
		if (TSI_CUDA_ON((unsigned)c->device[i],
				end_rank(c->comm[i], how)))
			(void)end_rank(c->comm[i], how);
	free(c);
}

void tsi_nccl_close(struct tsi_nccl *c)
{
	end_all(c, nccl.destroy);
}

void tsi_nccl_abort(struct tsi_nccl *c)
{
	end_all(c, nccl.abort);
}

/* ---- work ---- */

/* Queue every rank's part with its own device current. */
static int queue(struct tsi_nccl *c, unsigned root, void *const *buf,
		 uint64_t bytes, const tsi_gpu_stream *stream)
{
	int err = 0;

	for (unsigned i = 0; i < c->n && !err; i++)
		err = TSI_CUDA_ON(
			(unsigned)c->device[i],
			nccl_err(nccl.broadcast(buf[i], buf[i], bytes,
						NCCL_UINT8, (int)root,
						c->comm[i], stream[i]),
				 "ncclBroadcast"));
	return err;
}

/* NCCL queues the work when the group ends.  Root's device is current. */
static int queue_group(struct tsi_nccl *c, unsigned root, void *const *buf,
		       uint64_t bytes, const tsi_gpu_stream *stream)
{
	nccl_result r;
	int err = nccl_err(nccl.group_start(), "ncclGroupStart");

	if (err)
		return err;
	err = queue(c, root, buf, bytes, stream);
	r = nccl.group_end();
	return err ? err : nccl_err(r, "ncclGroupEnd");
}

int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root, void *const *buf,
		       uint64_t bytes, const tsi_gpu_stream *stream)
{
	int err = loaded();

	if (err)
		return err;
	if (root >= c->n)
		return tsi_err(TSOCK_EARG, "there is no rank %u of %u", root,
			       c->n);
	if (!bytes)
		return 0;
	return TSI_CUDA_ON((unsigned)c->device[root],
			   queue_group(c, root, buf, bytes, stream));
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
