/* SPDX-License-Identifier: MIT */
/*
 * vmm.c - GPU memory that crosses processes as a descriptor.
 *
 * Physical memory is made, mapped and exported, and its handle is released:
 * mappings and descriptors keep the memory, so it outlives a producer that was
 * killed.  Other processes map it read-only where the driver can, and twice in
 * a row if asked, so that a batch that crosses the end of a ring is contiguous.
 *
 * A device that is to copy from it, or into it, is granted that one by one.
 *
 * Never maps a part of an allocation, never writes by two mappings.
 */
#include "mem/cuda/vmm.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "mem/cuda/call.h"

static CUmemAllocationProp kind_of(unsigned device)
{
	CUmemAllocationProp p;

	memset(&p, 0, sizeof(p));
	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p.location.id = (int)device;
	return p;
}

int tsi_cuda_vmm_granularity(unsigned device, uint64_t *bytes)
{
	CUmemAllocationProp p = kind_of(device);
	const struct tsi_cuda_driver *d;
	size_t g;
	int err = tsi_cuda_driver(&d);

	if (err)
		return err;
	err = tsi_cuda_driver_err(
		d->granularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		(int)device, "cuMemGetAllocationGranularity");
	if (!err)
		*bytes = g;
	return err;
}

static int check_bytes(unsigned device, uint64_t bytes)
{
	uint64_t g;
	int err = tsi_cuda_vmm_granularity(device, &g);

	if (err)
		return err;
	if (!bytes || bytes % g)
		return tsi_err(TSOCK_EARG,
			       "%llu bytes are no multiple of GPU %u's "
			       "granularity of %llu",
			       (unsigned long long)bytes, device,
			       (unsigned long long)g);
	return 0;
}

/* Let a device use the range. */
static CUresult allow(const struct tsi_cuda_driver *d, unsigned device,
		      CUdeviceptr at, uint64_t bytes, CUmemAccess_flags flags)
{
	CUmemAccessDesc who;

	memset(&who, 0, sizeof(who));
	who.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	who.location.id = (int)device;
	who.flags = flags;
	return d->set_access(at, bytes, &who, 1);
}

/* Map the whole allocation several times in a row; *out is the first byte. */
static int map(const struct tsi_cuda_driver *d, unsigned device,
	       CUmemGenericAllocationHandle h, uint64_t bytes, unsigned times,
	       CUdeviceptr *out)
{
	CUdeviceptr at;
	unsigned n;
	CUresult r;
	int err = tsi_cuda_driver_err(d->reserve(&at, bytes * times, 0, 0, 0),
				      (int)device, "cuMemAddressReserve");

	if (err)
		return err;
	for (n = 0; n < times; n++) {
		r = d->map(at + n * bytes, bytes, 0, h, 0);
		err = tsi_cuda_driver_err(r, (int)device, "cuMemMap");
		if (err)
			goto err_unmap;
	}
	*out = at;
	return 0;

err_unmap:
	while (n--)
		(void)d->unmap(at + n * bytes, bytes);
	(void)d->free_range(at, bytes * times);
	return err;
}

static void unmap(const struct tsi_cuda_driver *d, CUdeviceptr at,
		  uint64_t bytes, unsigned times)
{
	for (unsigned n = 0; n < times; n++)
		(void)d->unmap(at + n * bytes, bytes);
	(void)d->free_range(at, bytes * times);
}

/* With the device current: map and export what was made. */
static int share(const struct tsi_cuda_driver *d, unsigned device,
		 CUmemGenericAllocationHandle h, uint64_t bytes,
		 struct tsi_gpu_mem *m)
{
	CUdeviceptr at;
	int fd = -1, err = map(d, device, h, bytes, 1, &at);

	if (err)
		return err;
	err = tsi_cuda_driver_err(
		allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
		(int)device, "cuMemSetAccess");
	if (!err)
		err = tsi_cuda_driver_err(
			d->export_handle(
				&fd, h,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			(int)device, "cuMemExportToShareableHandle");
	if (err) {
		unmap(d, at, bytes, 1);
		return err;
	}
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	m->base = (void *)(uintptr_t)at;
	m->fd = fd;
	return 0;
}

static int make_memory(unsigned device, uint64_t bytes, struct tsi_gpu_mem *m)
{
	CUmemAllocationProp p = kind_of(device);
	CUmemGenericAllocationHandle h;
	const struct tsi_cuda_driver *d;
	int err = check_bytes(device, bytes);

	if (!err)
		err = tsi_cuda_driver(&d);
	if (!err)
		err = tsi_cuda_alloc_err((int)d->create(&h, bytes, &p, 0),
					 device, "cuMemCreate", bytes);
	if (err)
		return err;
	err = share(d, device, h, bytes, m);
	(void)d->release(h); /* mappings and descriptors keep the memory */
	return err;
}

int tsi_cuda_vmm_create(unsigned device, uint64_t bytes,
			struct tsi_gpu_mem *out)
{
	struct tsi_gpu_mem m = { .device = device,
				 .transport = TSOCK_TRANSPORT_VMM,
				 .bytes = bytes,
				 .ours = true,
				 .fd = -1 };
	int err = TSI_CUDA_ON(device, make_memory(device, bytes, &m));

	if (!err)
		*out = m;
	return err;
}

static int grant(const struct tsi_gpu_mem *m, unsigned device)
{
	const struct tsi_cuda_driver *d;
	int err = tsi_cuda_driver(&d);

	return err ? err
		   : tsi_cuda_driver_err(
			     allow(d, device, (CUdeviceptr)(uintptr_t)m->base,
				   m->bytes,
				   CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
			     (int)device, "cuMemSetAccess");
}

int tsi_cuda_vmm_grant(const struct tsi_gpu_mem *m, unsigned device)
{
	return TSI_CUDA_ON(m->device, grant(m, device));
}

/* Read-only where the driver can: else a job that writes harms all others. */
static int allow_read(const struct tsi_cuda_driver *d, unsigned device,
		      CUdeviceptr at, uint64_t bytes)
{
	CUresult r = allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);

	if (r == CUDA_SUCCESS)
		return 0;
	tsi_log(TSOCK_LOG_DEBUG,
		"GPU %u can't map memory read-only (error %d): batches there "
		"must not be written into",
		device, (int)r);
	r = allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	return tsi_cuda_driver_err(r, (int)device, "cuMemSetAccess");
}

/* With the device current: map what fd stands for, several times in a row. */
static int import(unsigned device, int fd, uint64_t bytes, unsigned times,
		  CUdeviceptr *at)
{
	const struct tsi_cuda_driver *d;
	CUmemGenericAllocationHandle h;
	int err = check_bytes(device, bytes);

	if (!err)
		err = tsi_cuda_driver(&d);
	if (!err)
		err = tsi_cuda_driver_err(
			d->import_handle(
				&h, (void *)(uintptr_t)fd,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			(int)device, "cuMemImportFromShareableHandle");
	if (err)
		return err;
	err = map(d, device, h, bytes, times, at);
	(void)d->release(h); /* mappings keep the memory */
	if (err)
		return err;
	err = allow_read(d, device, *at, bytes * times);
	if (err)
		unmap(d, *at, bytes, times);
	return err;
}

int tsi_cuda_vmm_open(unsigned device, int fd, uint64_t bytes, bool twice,
		      struct tsi_gpu_mem *out)
{
	CUdeviceptr at;
	int err = TSI_CUDA_ON(device,
			      import(device, fd, bytes, twice ? 2 : 1, &at));

	if (!err)
		*out = (struct tsi_gpu_mem){ .device = device,
					     .transport = TSOCK_TRANSPORT_VMM,
					     .base = (void *)(uintptr_t)at,
					     .bytes = bytes,
					     .twice = twice,
					     .fd = -1 };
	return err;
}

void tsi_cuda_vmm_close(struct tsi_gpu_mem *m)
{
	const struct tsi_cuda_driver *d;

	if (tsi_cuda_driver(&d) == 0)
		unmap(d, (CUdeviceptr)(uintptr_t)m->base, m->bytes,
		      m->twice ? 2 : 1);
}
