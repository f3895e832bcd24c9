/* SPDX-License-Identifier: MIT */
/*
 * fanout_producer.h - a producer of a stream for several simulated GPUs, which
 * counts what it copies and what it says.
 *
 * Copies are counted where the producer calls CUDA: of two functions by one
 * name the program's own goes first.  So this is included by test programs,
 * once each, and is no object of its own.  Empty without the simulation.
 */
#ifndef TEST_LIB_FANOUT_PRODUCER_H
#define TEST_LIB_FANOUT_PRODUCER_H

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "stage/broadcast.h"
#include "test/lib/gpu_reader.h"

#ifdef SIMCUDA

#include "test/simcuda/simcuda.h"

/* What the producer did; shared with it. */
static struct {
	_Atomic uint64_t up, across; /* bytes to, and between, GPUs */
	_Atomic uint64_t up_to[16];  /* bytes to each */
	_Atomic uint64_t through_host;
	_Atomic unsigned warnings, choices, fallbacks, spoilt, refused;
} * did;

static bool is_producer;

static void find(const char *name, void *out)
{
	void *fn = dlsym(RTLD_NEXT, name);

	memcpy(out, &fn, sizeof(fn));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
			    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind,
			    cudaStream_t);

	int device;

	find("cudaMemcpyAsync", &real);
	if (is_producer && kind == cudaMemcpyHostToDevice &&
	    cudaGetDevice(&device) == cudaSuccess) {
		atomic_fetch_add(&did->up, count);
		atomic_fetch_add(&did->up_to[device], count);
	}
	return real(dst, src, count, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from,
				size_t count, cudaStream_t stream)
{
	cudaError_t (*real)(void *, int, const void *, int, size_t,
			    cudaStream_t);

	find("cudaMemcpyPeerAsync", &real);
	if (is_producer)
		atomic_fetch_add(&did->across, count);
	return real(dst, to, src, from, count, stream);
}

/* ---- a producer ---- */

struct way {
	uint32_t fanout;
	bool legacy;
	const char *fault;              /* once there are samples */
	const char *name[3], *value[3]; /* of its environment */
	bool from_first; /* GPU 0 is there before the others come */
};

static const char *nccl_path(void)
{
	static char path[PATH_MAX + 40];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	need(n > 0);
	path[n] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		slash = strrchr(path, '/');
		need(slash);
		*slash = '\0';
	}
	strcat(path, "/simcuda/libnccl_sim.so");
	return path;
}

static void note(void *arg, int level, const char *line)
{
	if (level == TSOCK_LOG_WARN && strstr(line, "NCCL"))
		atomic_fetch_add(&did->warnings, 1);
	else
		proc_log_line(arg, level, line);
	if (strstr(line, "from now on, not from GPU"))
		atomic_fetch_add(&did->fallbacks, 1);
	else if (strstr(line, "can't be given access"))
		atomic_fetch_add(&did->refused, 1);
	else if (strstr(line, "with other bytes"))
		atomic_fetch_add(&did->spoilt, 1);
	else if (strstr(line, "is filled from"))
		atomic_fetch_add(&did->choices, 1);
}

/* What is copied before the first sample is there is no sample; from then on
 * GPUs may fail. */
static void produce_counted(tsock_server *s, const struct source *src,
			    const char *fault)
{
	uint64_t first;
	int n = tsock_serve_claim(s, 4, -1, &first);

	did->up = did->across = 0;
	for (unsigned i = 0; i < 16; i++)
		did->up_to[i] = 0;
	if (fault)
		simcuda_set_faults(fault);
	for (int i = 0; i < n; i++) {
		stream_write_sample(s, src, first + (uint64_t)i);
		tsock_serve_commit(s, first + (uint64_t)i, 1);
	}
	stream_produce(s, src);
}

static pid_t start_fan(const struct source *src, const struct way *w)
{
	pid_t pid;

	memset(did, 0, sizeof(*did));
	pid = proc_spawn();
	if (pid == 0) {
		struct source fan = *src;
		struct simcuda_live live;
		tsock_server *s;

		is_producer = true;
		tsi_broadcast_limits(3000, 1500);
		tsock_set_logger(note, NULL);
		setenv("TSOCK_NCCL", nccl_path(), 1);
		for (unsigned i = 0; i < 3 && w->name[i]; i++)
			setenv(w->name[i], w->value[i], 1);
		fan.fanout = w->fanout;
		fan.gpu_transport = w->legacy ? TSOCK_TRANSPORT_LEGACY : 0;
		s = stream_serve(&fan);
		produce_counted(s, src, w->fault);
		while (!tsock_serve_drained(s))
			proc_pause_us(5000);
		simcuda_live(&live);
		did->through_host = live.through_host;
		tsock_serve_close(s);
		_exit(0);
	}
	return pid;
}

static const struct source model = { .name = "fan",
				     .n = 300,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 2500,
				     .image = SIDE };

static const char *const modes[] = { "eager", "late", "random", "reverse",
				     "stuck" };

static inline void in_mode(const char *mode)
{
	setenv("SIMCUDA_MODE", mode, 1);
	setenv("SIMCUDA_LATE_MS", "20", 1);
	setenv("SIMCUDA_STUCK_MS", "150", 1);
}

/* In main(), first. */
static void fanout_prepare(void)
{
	did = mmap(NULL, sizeof(*did), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(did != MAP_FAILED);
	proc_own_folder();
}

#endif

#endif
