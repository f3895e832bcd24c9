/* SPDX-License-Identifier: MIT */
/*
 * vmm.c - virtual memory management: memory by handle, addresses by
 * reservation, and a device's right to one through the other.  A descriptor
 * of the memory is its memfd: it goes through sockets and outlives its maker.
 *
 * Errors are numbered alike in runtime and driver; nothing here sets the
 * runtime's last error.
 */
#include "sim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cudaError_t enter(const char *name)
{
	cudaError_t err = sim_enter(name, SIM_CONTEXT);

	return !err && sim.no_vmm ? cudaErrorNotSupported : err;
}

static cudaError_t check_prop(const CUmemAllocationProp *prop, unsigned *device)
{
	unsigned type;

	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return cudaErrorInvalidValue;
	type = (unsigned)prop->requestedHandleTypes;
	if (type & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cudaErrorNotSupported;
	if (type && sim.no_fd)
		return cudaErrorNotSupported;
	return sim_ordinal(prop->location.id, device);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity,
				       const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	cudaError_t err =
		sim_enter("cuMemGetAllocationGranularity", SIM_ANYTIME);
	unsigned device;

	(void)option;
	if (!err && sim.no_vmm)
		err = cudaErrorNotSupported;
	if (!err)
		err = granularity ? check_prop(prop, &device)
				  : cudaErrorInvalidValue;
	if (!err)
		*granularity = SIM_BLOCK;
	return sim_leave_driver(err);
}

static CUmemGenericAllocationHandle new_handle(struct sim_phys *p)
{
	sim.handle =
		sim_grow(sim.handle, (sim.nhandle + 1) * sizeof(*sim.handle));
	sim.handle[sim.nhandle].phys = p;
	sim.handle[sim.nhandle].id = ++sim.next_handle;
	return sim.handle[sim.nhandle++].id;
}

static int find_handle(CUmemGenericAllocationHandle id)
{
	for (unsigned i = 0; i < sim.nhandle; i++)
		if (sim.handle[i].id == id)
			return (int)i;
	return -1;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	cudaError_t err = enter("cuMemCreate");
	struct sim_phys *p;
	unsigned device;

	if (!err && (!handle || !size || size % SIM_BLOCK || flags))
		err = cudaErrorInvalidValue;
	if (!err)
		err = check_prop(prop, &device);
	if (!err)
		err = sim_phys_create(device, size, true,
				      (unsigned)prop->requestedHandleTypes, &p);
	if (!err)
		*handle = new_handle(p);
	return sim_leave_driver(err);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	cudaError_t err = enter("cuMemRelease");
	int i = err ? -1 : find_handle(handle);

	if (!err && i < 0)
		err = cudaErrorInvalidValue;
	if (!err) {
		sim_phys_put(sim.handle[i].phys);
		sim.handle[i] = sim.handle[--sim.nhandle];
	}
	return sim_leave_driver(err);
}

CUresult cuMemExportToShareableHandle(void *shareableHandle,
				      CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType handleType,
				      unsigned long long flags)
{
	cudaError_t err = enter("cuMemExportToShareableHandle");
	int i = err ? -1 : find_handle(handle);
	int fd;

	if (!err && (i < 0 || !shareableHandle || flags ||
		     handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		     !(sim.handle[i].phys->ctrl->exportable & handleType)))
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave_driver(err);
	fd = fcntl(sim.handle[i].phys->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return sim_leave_driver(cudaErrorOperatingSystem);
	memcpy(shareableHandle, &fd, sizeof(fd));
	return sim_leave_driver(cudaSuccess);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					void *osHandle,
					CUmemAllocationHandleType shHandleType)
{
	cudaError_t err = enter("cuMemImportFromShareableHandle");
	struct sim_phys *p = NULL;
	int fd;

	if (!err && (!handle ||
		     shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		err = cudaErrorInvalidValue;
	if (!err && sim.no_fd)
		err = cudaErrorNotSupported;
	if (err)
		return sim_leave_driver(err);
	fd = fcntl((int)(intptr_t)osHandle, F_DUPFD_CLOEXEC, 0);
	err = fd < 0 ? cudaErrorInvalidValue : sim_phys_adopt(fd, &p);
	if (!err && !(p->ctrl->vmm && p->ctrl->exportable & shHandleType)) {
		sim_phys_put(p);
		err = cudaErrorInvalidValue;
	}
	if (!err)
		*handle = new_handle(p);
	return sim_leave_driver(err);
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
			     CUdeviceptr addr, unsigned long long flags)
{
	cudaError_t err = enter("cuMemAddressReserve");
	struct sim_region *r;

	(void)addr; /* a wish */
	if (!err && (!ptr || !size || size % SIM_BLOCK || flags ||
		     (alignment & (alignment - 1))))
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave_driver(err);
	r = sim_region_create(SIM_VMM, size,
			      alignment > SIM_BLOCK ? alignment : SIM_BLOCK);
	if (!r)
		return sim_leave_driver(cudaErrorMemoryAllocation);
	*ptr = (CUdeviceptr)(uintptr_t)r->va;
	return sim_leave_driver(cudaSuccess);
}

/* The reservation that has all of it. */
static struct sim_region *reservation(CUdeviceptr ptr, size_t size, size_t *off)
{
	struct sim_region *r = sim_region_find((void *)(uintptr_t)ptr);

	if (!r || r->kind != SIM_VMM)
		return NULL;
	*off = (size_t)((char *)(uintptr_t)ptr - r->va);
	return size && size <= r->size - *off ? r : NULL;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	cudaError_t err = enter("cuMemAddressFree");
	struct sim_region *r;
	size_t off;

	if (err)
		return sim_leave_driver(err);
	sim_quiesce();
	r = reservation(ptr, size, &off);
	if (!r || off || size != r->size || r->nmap)
		return sim_leave_driver(cudaErrorInvalidValue);
	sim_region_destroy(r);
	return sim_leave_driver(cudaSuccess);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	cudaError_t err = enter("cuMemMap");
	int i = err ? -1 : find_handle(handle);
	struct sim_region *r = NULL;
	size_t off;

	if (err)
		return sim_leave_driver(err);
	if (i >= 0)
		r = reservation(ptr, size, &off);
	if (!r || offset || flags || off % SIM_BLOCK ||
	    size != sim.handle[i].phys->size)
		return sim_leave_driver(cudaErrorInvalidValue);
	return sim_leave_driver(sim_region_map(r, off, sim.handle[i].phys));
}

/* The pieces that make up exactly [off, off + size): first and end. */
static bool pieces(const struct sim_region *r, size_t off, size_t size,
		   unsigned *first, unsigned *end)
{
	size_t to = off + size;
	unsigned i = 0;

	while (i < r->nmap && r->map[i].off < off)
		i++;
	*first = i;
	for (; i < r->nmap && off < to && r->map[i].off == off; i++)
		off += r->map[i].len;
	*end = i;
	return off == to;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	cudaError_t err = enter("cuMemUnmap");
	struct sim_region *r;
	unsigned first, end;
	size_t off;

	if (err)
		return sim_leave_driver(err);
	sim_quiesce();
	r = reservation(ptr, size, &off);
	if (!r || !pieces(r, off, size, &first, &end))
		return sim_leave_driver(cudaErrorInvalidValue);
	while (end > first)
		sim_region_unmap(r, --end);
	return sim_leave_driver(cudaSuccess);
}

static cudaError_t check_access(const struct sim_map *m,
				const CUmemAccessDesc *d, unsigned *device)
{
	unsigned peers = 0;
	cudaError_t err;

	if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	     d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	     d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return cudaErrorInvalidValue;
	err = sim_ordinal(d->location.id, device);
	if (err || *device == m->phys->device)
		return err;
	if (!sim.p2p[*device][m->phys->device])
		return cudaErrorPeerAccessUnsupported;
	for (unsigned i = 0; i < sim.ndev; i++)
		peers += i != *device && i != m->phys->device && m->access[i];
	return d->flags && peers >= sim.peers_max ? cudaErrorTooManyPeers
						  : cudaSuccess;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size,
			const CUmemAccessDesc *desc, size_t count)
{
	cudaError_t err = enter("cuMemSetAccess");
	struct sim_region *r;
	unsigned first, end, device;
	size_t off;

	if (err)
		return sim_leave_driver(err);
	r = reservation(ptr, size, &off);
	if (!r || !desc || !count || !pieces(r, off, size, &first, &end))
		return sim_leave_driver(cudaErrorInvalidValue);
	for (size_t k = 0; k < count; k++) {
		for (unsigned i = first; i < end && !err; i++)
			err = check_access(&r->map[i], &desc[k], &device);
		for (unsigned i = first; i < end && !err; i++)
			r->map[i].access[device] = (uint8_t)desc[k].flags;
	}
	return sim_leave_driver(err);
}

CUresult cuMemGetAccess(unsigned long long *flags,
			const CUmemLocation *location, CUdeviceptr ptr)
{
	cudaError_t err = enter("cuMemGetAccess");
	struct sim_region *r = NULL;
	unsigned device;
	size_t off;

	if (!err && (!flags || !location ||
		     location->type != CU_MEM_LOCATION_TYPE_DEVICE))
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_ordinal(location->id, &device);
	if (err)
		return sim_leave_driver(err);
	r = reservation(ptr, 1, &off);
	for (unsigned i = 0; r && i < r->nmap; i++)
		if (off - r->map[i].off < r->map[i].len) {
			*flags = r->map[i].access[device];
			return sim_leave_driver(cudaSuccess);
		}
	return sim_leave_driver(cudaErrorInvalidValue);
}
