/*
 * vmm.c - GPU memory that crosses processes as a descriptor.
 *
 * Physical memory is made, mapped, exported, and its handle released: mappings
 * and descriptors keep it, so it outlives a producer that was killed.  Others
 * map it read-only where the driver can, and twice in a row if they like, so
 * that what crosses the end of a ring is contiguous.
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
	CUresult r;
	int err = tsi_cuda_driver(&d);

	if (err)
		return err;
	r = d->granularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device,
					   "cuMemGetAllocationGranularity");
	*bytes = g;
	return 0;
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

/*
 * Who may touch the range: this device, and for the producer's own rings every
 * device that can reach it, or copies between them would go by the host.
 */
static CUresult allow(const struct tsi_cuda_driver *d, unsigned device,
		      CUdeviceptr at, uint64_t bytes, CUmemAccess_flags flags,
		      bool peers)
{
	CUmemAccessDesc who[TSI_GPUS];
	unsigned n = 0, count = 0;
	CUresult r;

	memset(who, 0, sizeof(who));
	if (peers)
		(void)tsi_cuda_count(&count);
	for (unsigned i = 0; i < TSI_GPUS; i++) {
		int can = i == device;

		if (!can && i < count &&
		    cudaDeviceCanAccessPeer(&can, (int)i, (int)device) !=
			    cudaSuccess)
			(void)cudaGetLastError();
		if (!can)
			continue;
		who[n].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		who[n].location.id = (int)i;
		who[n++].flags = flags;
	}
	r = d->set_access(at, bytes, who, n);
	if (r == CUDA_SUCCESS || n == 1)
		return r;
	return allow(d, device, at, bytes, flags, false);
}

/* Map all of it times in a row; *out has the first byte. */
static int map(const struct tsi_cuda_driver *d, unsigned device,
	       CUmemGenericAllocationHandle h, uint64_t bytes, unsigned times,
	       CUdeviceptr *out)
{
	CUdeviceptr at;
	unsigned n;
	int err;
	CUresult r = d->reserve(&at, bytes * times, 0, 0, 0);

	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device,
					   "cuMemAddressReserve");
	for (n = 0; n < times; n++) {
		r = d->map(at + n * bytes, bytes, 0, h, 0);
		if (r != CUDA_SUCCESS) {
			err = tsi_cuda_driver_err(r, (int)device, "cuMemMap");
			goto err_unmap;
		}
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

/* On the device: make, map and export. */
static int make(const struct tsi_cuda_driver *d, unsigned device,
		uint64_t bytes, struct tsi_gpu_mem *m)
{
	CUmemAllocationProp p = kind_of(device);
	CUmemGenericAllocationHandle h;
	CUdeviceptr at;
	int fd = -1, err;
	CUresult r = d->create(&h, bytes, &p, 0);

	if (r != CUDA_SUCCESS)
		return tsi_cuda_alloc_err((int)r, device, "cuMemCreate", bytes);
	err = map(d, device, h, bytes, 1, &at);
	if (err)
		goto err_release;
	r = allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		  true);
	if (r != CUDA_SUCCESS) {
		err = tsi_cuda_driver_err(r, (int)device, "cuMemSetAccess");
		goto err_unmap;
	}
	r = d->export_handle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			     0);
	if (r != CUDA_SUCCESS) {
		err = tsi_cuda_driver_err(r, (int)device,
					  "cuMemExportToShareableHandle");
		goto err_unmap;
	}
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)d->release(h);
	m->base = (void *)(uintptr_t)at;
	m->fd = fd;
	return 0;

err_unmap:
	unmap(d, at, bytes, 1);
err_release:
	(void)d->release(h);
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
	const struct tsi_cuda_driver *d;
	struct tsi_cuda_scope scope;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	err = check_bytes(device, bytes);
	if (!err)
		err = tsi_cuda_driver(&d);
	if (!err)
		err = make(d, device, bytes, &m);
	tsi_cuda_leave(&scope);
	if (!err)
		*out = m;
	return err;
}

/* Read-only where the driver can: then a job that writes harms itself alone. */
static int allow_read(const struct tsi_cuda_driver *d, unsigned device,
		      CUdeviceptr at, uint64_t bytes)
{
	CUresult r = allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ,
			   false);

	if (r == CUDA_SUCCESS)
		return 0;
	tsi_log(TSOCK_LOG_DEBUG,
		"GPU %u can't map memory read-only (error %d): batches there "
		"must not be written into",
		device, (int)r);
	r = allow(d, device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		  false);
	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device, "cuMemSetAccess");
	return 0;
}

int tsi_cuda_vmm_open(unsigned device, int fd, uint64_t bytes, bool twice,
		      struct tsi_gpu_mem *out)
{
	unsigned times = twice ? 2 : 1;
	const struct tsi_cuda_driver *d;
	struct tsi_cuda_scope scope;
	CUmemGenericAllocationHandle h;
	CUdeviceptr at;
	CUresult r;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	err = check_bytes(device, bytes);
	if (!err)
		err = tsi_cuda_driver(&d);
	if (err)
		goto leave;
	r = d->import_handle(&h, (void *)(uintptr_t)fd,
			     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (r != CUDA_SUCCESS) {
		err = tsi_cuda_driver_err(r, (int)device,
					  "cuMemImportFromShareableHandle");
		goto leave;
	}
	err = map(d, device, h, bytes, times, &at);
	(void)d->release(h); /* mappings keep the memory */
	if (err)
		goto leave;
	err = allow_read(d, device, at, bytes * times);
	if (err) {
		unmap(d, at, bytes, times);
		goto leave;
	}
	*out = (struct tsi_gpu_mem){ .device = device,
				     .transport = TSOCK_TRANSPORT_VMM,
				     .base = (void *)(uintptr_t)at,
				     .bytes = bytes,
				     .twice = twice,
				     .fd = -1 };
leave:
	tsi_cuda_leave(&scope);
	return err;
}

/* On the device. */
void tsi_cuda_vmm_close(struct tsi_gpu_mem *m)
{
	const struct tsi_cuda_driver *d;

	if (tsi_cuda_driver(&d) == 0)
		unmap(d, (CUdeviceptr)(uintptr_t)m->base, m->bytes,
		      m->twice ? 2 : 1);
}
