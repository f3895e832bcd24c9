/* SPDX-License-Identifier: MIT */
/*
 * state.c - the one state of the simulation, and the way in and out of every
 * public function: the lock, the first use, faults on demand, sticky errors
 * and each thread's last error.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct sim sim = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Set in a child of fork(), where CUDA can't be used and nothing is locked. */
static atomic_bool forked;
static atomic_uint next_thread = 1;
static atomic_uint calls; /* under way */
static atomic_uint torn;  /* by which thread, at exit; 0: not yet */

static _Thread_local struct {
	int ordinal; /* of the context on top */
	int below[16];
	unsigned depth;
	cudaError_t last;
	unsigned number;
	bool entered;
	const char *call;
} me;

/* What simcuda_after() asks for; the lock is held. */
static struct {
	const char *name;
	void (*fn)(void *arg);
	void *arg;
} after;

void sim_say(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "simcuda[%d]: ", (int)getpid());
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s\n", line);
}

void sim_die(const char *fmt, ...)
{
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	sim_say("%s", line);
	abort();
}

void *sim_grow(void *p, size_t len)
{
	void *q = realloc(p, len ? len : 1);

	if (!q)
		sim_die("out of host memory");
	return q;
}

void *sim_alloc(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		sim_die("out of host memory");
	return p;
}

int64_t sim_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint32_t sim_random(void)
{
	sim.rng ^= sim.rng << 13;
	sim.rng ^= sim.rng >> 7;
	sim.rng ^= sim.rng << 17;
	return (uint32_t)(sim.rng >> 16);
}

unsigned sim_thread(void)
{
	if (!me.number)
		me.number = atomic_fetch_add(&next_thread, 1);
	return me.number;
}

unsigned sim_current(void)
{
	return sim.visible[me.ordinal];
}

cudaError_t sim_ordinal(int ordinal, unsigned *device)
{
	if (ordinal < 0 || (unsigned)ordinal >= sim.nvisible)
		return cudaErrorInvalidDevice;
	*device = sim.visible[ordinal];
	return cudaSuccess;
}

int sim_ordinal_of(unsigned device)
{
	for (unsigned i = 0; i < sim.nvisible; i++)
		if (sim.visible[i] == device)
			return (int)i;
	return -1;
}

static void in_child(void)
{
	atomic_store(&forked, true);
}

/* At exit, by what was registered first of all: CUDA is taken apart. */
static void tear_down(void)
{
	if (atomic_load(&forked))
		return;
	sim_thread();
	atomic_store(&torn, me.number);
	if (atomic_load(&calls))
		sim_die("TEARDOWN: %u threads are in CUDA while the process "
			"exits",
			atomic_load(&calls));
}

/* A thread that exits is refused from then on; others have no business here. */
static cudaError_t enter_torn(const char *name)
{
	if (atomic_load(&torn) != sim_thread())
		sim_die("TEARDOWN: %s is called while the process exits", name);
	return cudaErrorCudartUnloading;
}

static void first_use(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sim.done, &attr);
	pthread_cond_init(&sim.work, &attr);
	pthread_condattr_destroy(&attr);
	pthread_atfork(NULL, NULL, in_child);
	atexit(tear_down);
	sim.next_id = SIM_FIRST_ID;
	sim_configure();
	sim_fault_init();
	sim.ready = true;
}

/* A context costs memory and time, and lives until the process ends. */
static cudaError_t make_context(unsigned device)
{
	struct timespec ts = { sim.context_ns / 1000000000,
			       sim.context_ns % 1000000000 };
	struct sim_device *d = &sim.dev[device];

	while (d->making)
		pthread_cond_wait(&sim.done, &sim.lock);
	if (d->context)
		return cudaSuccess;
	if (sim.may_use && !(atomic_load(sim.may_use) >> device & 1))
		sim_die("CONTEXT: %s makes one on device %u, which this "
			"process has no business with",
			me.call, device);
	if (d->total - d->used < sim.context_bytes)
		return cudaErrorMemoryAllocation;
	d->context = d->making = true;
	d->used += sim.context_bytes;
	pthread_mutex_unlock(&sim.lock);
	nanosleep(&ts, NULL);
	pthread_mutex_lock(&sim.lock);
	d->making = false;
	pthread_cond_broadcast(&sim.done);
	return cudaSuccess;
}

void simcuda_may_use(const _Atomic uint32_t *devices)
{
	pthread_mutex_lock(&sim.lock);
	sim.may_use = devices;
	pthread_mutex_unlock(&sim.lock);
}

cudaError_t sim_enter(const char *name, int what)
{
	return sim_enter_on(name, what, me.ordinal);
}

cudaError_t sim_enter_on(const char *name, int what, int ordinal)
{
	unsigned device;
	cudaError_t err;

	me.entered = false;
	me.call = name;
	if (atomic_load(&forked))
		return cudaErrorInitializationError;
	atomic_fetch_add(&calls, 1);
	if (atomic_load(&torn)) {
		atomic_fetch_sub(&calls, 1);
		return enter_torn(name);
	}
	pthread_mutex_lock(&sim.lock);
	me.entered = true;
	if (!sim.ready)
		first_use();
	if (sim.unusable)
		return sim.unusable;
	if (sim_ordinal(ordinal, &device))
		device = sim_current();
	err = sim_fault(name, device);
	if (err)
		return err;
	if (what & SIM_CONTEXT) {
		err = make_context(sim_current());
		if (!err)
			err = sim.dev[sim_current()].sticky;
		if (err)
			return err;
	}
	return what & SIM_UNSAFE ? sim_capture_check() : cudaSuccess;
}

static void leave(void)
{
	void (*fn)(void *arg) = NULL;
	void *arg = NULL;

	if (!me.entered)
		return;
	if (after.name && strcmp(after.name, me.call) == 0) {
		fn = after.fn;
		arg = after.arg;
		after.name = NULL;
	}
	me.entered = false;
	pthread_mutex_unlock(&sim.lock);
	atomic_fetch_sub(&calls, 1);
	if (fn)
		fn(arg);
}

void simcuda_after(const char *name, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&sim.lock);
	after.name = name;
	after.fn = fn;
	after.arg = arg;
	pthread_mutex_unlock(&sim.lock);
}

cudaError_t sim_leave(cudaError_t err)
{
	leave();
	if (err)
		me.last = err;
	return err;
}

CUresult sim_leave_driver(cudaError_t err)
{
	leave();
	return (CUresult)err;
}

/* What the device's broken context says, whatever was read before. */
static cudaError_t sticky(void)
{
	cudaError_t err = cudaSuccess;

	if (atomic_load(&forked))
		return cudaSuccess;
	pthread_mutex_lock(&sim.lock);
	if (sim.ready && !sim.unusable)
		err = sim.dev[sim_current()].sticky;
	pthread_mutex_unlock(&sim.lock);
	return err;
}

cudaError_t cudaPeekAtLastError(void)
{
	cudaError_t err = sticky();

	return err ? err : me.last;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t err = cudaPeekAtLastError();

	me.last = cudaSuccess;
	return err;
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t err = sim_enter_on("cudaSetDevice", SIM_ANYTIME, device);
	unsigned physical;

	if (!err)
		err = sim_ordinal(device, &physical);
	if (!err)
		me.ordinal = device;
	return sim_leave(err);
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t err = sim_enter("cudaGetDevice", SIM_ANYTIME);

	if (!err && !device)
		err = cudaErrorInvalidValue;
	if (!err)
		*device = me.ordinal;
	return sim_leave(err);
}

/* ---- contexts: only primary ones, named by 1 + their device's number ---- */

static CUcontext context_of(int ordinal)
{
	return (CUcontext)(uintptr_t)(ordinal + 1);
}

static bool ordinal_of(CUcontext ctx, int *ordinal)
{
	*ordinal = (int)(uintptr_t)ctx - 1;
	return ctx && (uintptr_t)ctx <= sim.nvisible;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	cudaError_t err =
		sim_enter_on("cuDevicePrimaryCtxRetain", SIM_ANYTIME, dev);
	unsigned physical;

	if (!err)
		err = pctx ? sim_ordinal(dev, &physical)
			   : cudaErrorInvalidValue;
	if (!err)
		err = make_context(physical);
	if (!err)
		*pctx = context_of(dev);
	return sim_leave_driver(err);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	cudaError_t err =
		sim_enter_on("cuDevicePrimaryCtxRelease", SIM_ANYTIME, dev);
	unsigned physical;

	return sim_leave_driver(err ? err : sim_ordinal(dev, &physical));
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	cudaError_t err = sim_enter("cuCtxPushCurrent", SIM_ANYTIME);
	int ordinal;

	if (!err && (!ordinal_of(ctx, &ordinal) || me.depth == 16))
		err = cudaErrorDeviceUninitialized;
	if (!err) {
		me.below[me.depth++] = me.ordinal;
		me.ordinal = ordinal;
	}
	return sim_leave_driver(err);
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	cudaError_t err = sim_enter("cuCtxPopCurrent", SIM_ANYTIME);

	if (!err && !me.depth)
		err = cudaErrorDeviceUninitialized;
	if (!err) {
		if (pctx)
			*pctx = context_of(me.ordinal);
		me.ordinal = me.below[--me.depth];
	}
	return sim_leave_driver(err);
}
