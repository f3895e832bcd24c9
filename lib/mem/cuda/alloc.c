/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - memory on GPUs, and page-locked memory made for them.
 *
 * Memory that other processes open has a descriptor (vmm.c) or a handle of
 * legacy IPC.  Such a handle names a whole allocation, can't be opened by the
 * process that made it, and is always mapped for writing.
 *
 * Never frees what queued work may still use: callers see to that.
 */
#include "mem/gpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/vmm.h"

/* CUDA allocates parts of such blocks, and IPC shares whole blocks. */
#define LEGACY_BLOCK ((uint64_t)2 << 20)

/* ---- memory that others open ---- */

/* With the device current. */
static int legacy_make(unsigned device, uint64_t bytes, struct tsi_gpu_mem *m)
{
	cudaIpcMemHandle_t handle;
	int err = tsi_cuda_alloc_err((int)cudaMalloc(&m->base, bytes), device,
				     "cudaMalloc", bytes);

	_Static_assert(sizeof(handle) == TSI_GPU_HANDLE, "CUDA's ABI");
	if (err)
		return err;
	err = tsi_cuda_err(cudaIpcGetMemHandle(&handle, m->base), (int)device,
			   "cudaIpcGetMemHandle");
	if (err)
		(void)cudaFree(m->base);
	else
		memcpy(m->handle, &handle, sizeof(handle));
	return err;
}

static int legacy_create(unsigned device, uint64_t bytes,
			 struct tsi_gpu_mem *out)
{
	struct tsi_gpu_mem m = { .device = device,
				 .transport = TSOCK_TRANSPORT_LEGACY,
				 .bytes = bytes,
				 .ours = true,
				 .fd = -1 };
	uint64_t whole =
		(bytes + LEGACY_BLOCK - 1) / LEGACY_BLOCK * LEGACY_BLOCK;
	int err;

	if (!bytes || whole < bytes)
		return tsi_err(TSOCK_EARG,
			       "%llu bytes of GPU memory make no "
			       "ring",
			       (unsigned long long)bytes);
	err = TSI_CUDA_ON(device, legacy_make(device, whole, &m));
	if (!err)
		*out = m;
	return err;
}

static int legacy_err(cudaError_t e, unsigned device)
{
	if (e != cudaErrorDeviceUninitialized) /* success, too */
		return tsi_cuda_err(e, (int)device, "cudaIpcOpenMemHandle");
	(void)cudaGetLastError();
	return tsi_err(TSOCK_ENOTSUP,
		       "cudaIpcOpenMemHandle on GPU %u: %s (%s); legacy CUDA "
		       "IPC takes this process for the one that made the "
		       "memory: two containers need different process ids "
		       "(--pid=host)",
		       device, cudaGetErrorName(e), cudaGetErrorString(e));
}

static int legacy_open(unsigned device, const uint8_t *handle, uint64_t bytes,
		       struct tsi_gpu_mem *out)
{
	struct tsi_gpu_mem m = { .device = device,
				 .transport = TSOCK_TRANSPORT_LEGACY,
				 .bytes = bytes,
				 .fd = -1 };
	cudaIpcMemHandle_t h;
	int err;

	memcpy(&h, handle, sizeof(h));
	memcpy(m.handle, handle, sizeof(m.handle));
	err = TSI_CUDA_ON(
		device,
		legacy_err(cudaIpcOpenMemHandle(&m.base, h,
						cudaIpcMemLazyEnablePeerAccess),
			   device));
	if (!err)
		*out = m;
	return err;
}

static int not_offered(unsigned device, const char *what)
{
	return tsi_err(TSOCK_ENOTSUP,
		       "GPU %u has no %s; choose another --gpu-transport, or "
		       "auto",
		       device, what);
}

int tsi_gpu_mem_create(unsigned device, enum tsock_transport transport,
		       uint64_t bytes, struct tsi_gpu_mem *out)
{
	struct tsi_gpu_info info;
	int err = tsi_gpu_info(device, &info);

	if (err)
		return err;
	if (transport == TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_EARG,
			       "a staged consumer has no memory of another "
			       "process to open");
	if (transport == TSOCK_TRANSPORT_VMM && !info.vmm_fd)
		return not_offered(device, "memory with a descriptor (VMM)");
	if (transport == TSOCK_TRANSPORT_LEGACY && !info.legacy_ipc)
		return not_offered(device, "legacy CUDA IPC");
	if (transport != TSOCK_TRANSPORT_LEGACY && info.vmm_fd) {
		err = tsi_cuda_vmm_create(device, bytes, out);
		/* Other errors would come with LEGACY, too. */
		if (transport == TSOCK_TRANSPORT_VMM ||
		    (err != TSOCK_ENOTSUP && err != TSOCK_ESYS))
			return err;
	}
	if (!info.legacy_ipc)
		return not_offered(device, "memory that processes can share");
	return legacy_create(device, bytes, out);
}

int tsi_gpu_mem_open(unsigned device, enum tsock_transport transport, int fd,
		     const uint8_t *handle, uint64_t bytes, bool twice,
		     struct tsi_gpu_mem *out)
{
	if (transport == TSOCK_TRANSPORT_VMM && fd >= 0)
		return tsi_cuda_vmm_open(device, fd, bytes, twice, out);
	if (transport == TSOCK_TRANSPORT_LEGACY && handle && !twice)
		return legacy_open(device, handle, bytes, out);
	return tsi_err(TSOCK_EARG,
		       "GPU memory is opened by a descriptor, or once by a "
		       "handle of legacy IPC");
}

/* With that device current: all that it reads is granted at once. */
static int enable_peer(unsigned device, unsigned owner)
{
	cudaError_t e = cudaDeviceEnablePeerAccess((int)owner, 0);

	if (e == cudaErrorPeerAccessAlreadyEnabled)
		return tsi_cuda_drop(e);
	return tsi_cuda_err(e, (int)device, "cudaDeviceEnablePeerAccess");
}

int tsi_gpu_mem_grant(const struct tsi_gpu_mem *m, unsigned device)
{
	if (device == m->device)
		return 0;
	if (m->transport == TSOCK_TRANSPORT_VMM)
		return tsi_cuda_vmm_grant(m, device);
	return TSI_CUDA_ON(device, enable_peer(device, m->device));
}

/* With the device current. */
static int release(struct tsi_gpu_mem *m)
{
	if (m->transport == TSOCK_TRANSPORT_VMM) {
		tsi_cuda_vmm_close(m);
		return 0;
	}
	return tsi_cuda_drop(m->ours ? cudaFree(m->base)
				     : cudaIpcCloseMemHandle(m->base));
}

void tsi_gpu_mem_close(struct tsi_gpu_mem *m)
{
	if (!m || !m->base)
		return;
	if (m->fd >= 0)
		close(m->fd);
	(void)TSI_CUDA_ON(m->device, release(m));
	memset(m, 0, sizeof(*m));
	m->fd = -1;
}

/* ---- page-locked memory of our own ---- */

static int host_err(cudaError_t e, unsigned device, uint64_t bytes)
{
	if (e != cudaErrorMemoryAllocation)
		return tsi_cuda_err(e, (int)device, "cudaHostAlloc");
	(void)cudaGetLastError();
	return tsi_err(TSOCK_ENOMEM,
		       "cudaHostAlloc: no %.1f MiB of page-locked host "
		       "memory; free some, or ask for less (a smaller batch)",
		       (double)bytes / 1048576);
}

int tsi_gpu_host_alloc(unsigned device, uint64_t bytes, void **out)
{
	void *p;
	int err = TSI_CUDA_ON(
		device,
		host_err(cudaHostAlloc(&p, bytes, cudaHostAllocPortable),
			 device, bytes));

	if (!err)
		*out = p;
	return err;
}

void tsi_gpu_host_free(unsigned device, void *p)
{
	if (p)
		TSI_CUDA_DROP(device, cudaFreeHost(p));
}

/* ---- plain device memory ---- */

int tsi_gpu_alloc(unsigned device, uint64_t bytes, void **out)
{
	void *p;
	int err = TSI_CUDA_ON(device,
			      tsi_cuda_alloc_err((int)cudaMalloc(&p, bytes),
						 device, "cudaMalloc", bytes));

	if (!err)
		*out = p;
	return err;
}

void tsi_gpu_free(unsigned device, void *p)
{
	if (p)
		TSI_CUDA_DROP(device, cudaFree(p));
}
