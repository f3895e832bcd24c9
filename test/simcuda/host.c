/* SPDX-License-Identifier: MIT */
/*
 * host.c - page-locked host memory: allocated here, or the caller's,
 * registered.
 *
 * The engine reads and writes it when work runs, and so sees what the caller
 * did to it in the meantime; work still queued for memory that was given back
 * ends the process with a report.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum sim_where sim_where(const void *p, size_t len)
{
	const char *at = p;

	if (sim_region_find(p))
		return SIM_DEVICE;
	for (unsigned i = 0; i < sim.nhost; i++) {
		const struct sim_host *h = &sim.host[i];

		if (at + len <= h->p || at >= h->p + h->len)
			continue;
		return at >= h->p && at + len <= h->p + h->len ? SIM_PINNED
							       : SIM_STRADDLES;
	}
	return SIM_PAGEABLE;
}

static void add(char *p, size_t len, bool ours, bool read_only)
{
	sim.host = sim_grow(sim.host, (sim.nhost + 1) * sizeof(*sim.host));
	sim.host[sim.nhost++] = (struct sim_host){ p, len, ours, read_only };
}

/* The number of the range that starts there; -1: none does. */
static int find(const void *p, bool ours)
{
	for (unsigned i = 0; i < sim.nhost; i++)
		if (sim.host[i].p == p && sim.host[i].ours == ours)
			return (int)i;
	return -1;
}

static void forget(int i)
{
	sim.host[i] = sim.host[--sim.nhost];
}

/* Is all of it mapped, and writable if it must be? */
static bool mapped(const char *p, size_t len, bool writable)
{
	uintptr_t at = (uintptr_t)p, end = at + len;
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	char line[512], mode[8];

	while (f && at < end && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to,
			   mode) != 3 ||
		    to <= at)
			continue;
		if (from > at || mode[0] != 'r' || (writable && mode[1] != 'w'))
			break;
		at = to;
	}
	if (f)
		fclose(f);
	return at >= end;
}

static cudaError_t enlist(char *p, size_t len, unsigned flags)
{
	bool ro = flags & cudaHostRegisterReadOnly;

	if (!p || !len || flags > 15)
		return cudaErrorInvalidValue;
	if (sim.no_register || (ro && !sim.ro_register))
		return cudaErrorNotSupported;
	switch (sim_where(p, len)) {
	case SIM_PAGEABLE:
		break;
	case SIM_PINNED:
	case SIM_STRADDLES:
		return cudaErrorHostMemoryAlreadyRegistered;
	default:
		return cudaErrorInvalidValue;
	}
	if (len >= sim.register_max)
		return cudaErrorMemoryAllocation;
	if (!mapped(p, len, !ro))
		return cudaErrorInvalidValue;
	add(p, len, false, ro);
	return cudaSuccess;
}

static cudaError_t delist(const void *p)
{
	int i;

	sim_quiesce();
	i = find(p, false);
	if (i < 0)
		return p ? cudaErrorHostMemoryNotRegistered
			 : cudaErrorInvalidValue;
	forget(i);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	cudaError_t err =
		sim_enter("cudaHostRegister", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : enlist(ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	cudaError_t err =
		sim_enter("cudaHostUnregister", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : delist(ptr));
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	cudaError_t err =
		sim_enter("cuMemHostRegister", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave_driver(err ? err : enlist(p, bytesize, Flags));
}

CUresult cuMemHostUnregister(void *p)
{
	cudaError_t err =
		sim_enter("cuMemHostUnregister", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave_driver(err ? err : delist(p));
}

static cudaError_t host_alloc(const char *name, void **out, size_t size)
{
	cudaError_t err = sim_enter(name, SIM_CONTEXT | SIM_UNSAFE);
	void *p;

	if (!err && !out)
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave(err);
	*out = NULL;
	if (!size)
		return sim_leave(cudaSuccess);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return sim_leave(cudaErrorMemoryAllocation);
	add(p, size, true, false);
	*out = p;
	return sim_leave(cudaSuccess);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return host_alloc("cudaMallocHost", ptr, size);
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	(void)flags;
	return host_alloc("cudaHostAlloc", pHost, size);
}

/* Waits for all work, as the real one does. */
cudaError_t cudaFreeHost(void *ptr)
{
	cudaError_t err = sim_enter("cudaFreeHost", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_host h;
	int i;

	if (err || !ptr)
		return sim_leave(err);
	if (find(ptr, true) < 0)
		return sim_leave(cudaErrorInvalidValue);
	for (unsigned d = 0; d < sim.ndev; d++)
		sim_device_finish(d);
	sim_quiesce();
	i = find(ptr, true);
	if (i < 0)
		return sim_leave(cudaErrorInvalidValue);
	h = sim.host[i];
	forget(i);
	munmap(h.p, h.len);
	return sim_leave(cudaSuccess);
}
