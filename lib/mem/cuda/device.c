/*
 * device.c - devices: how many, which, what they can do.
 *
 * Looking at one makes no context on it, which would cost hundreds of
 * megabytes there; asking how much memory it has left does.
 */
#include "mem/cuda/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/vmm.h"
#include "mem/gpu.h"

int tsi_gpu_count(unsigned *n)
{
	return tsi_cuda_count(n);
}

static char about[512];
static pthread_once_t about_once = PTHREAD_ONCE_INIT;

static void write_about(void)
{
	int has = 0;
	unsigned n;

	if (tsi_gpu_count(&n)) {
		snprintf(about, sizeof(about), "no GPU: %s", tsock_errmsg());
		return;
	}
	(void)cudaDriverGetVersion(&has);
	snprintf(about, sizeof(about),
		 "CUDA %d.%d in this build, %d.%d in the driver, %u GPU%s",
		 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, has / 1000,
		 has % 1000 / 10, n, n == 1 ? "" : "s");
}

const char *tsi_gpu_about(void)
{
	pthread_once(&about_once, write_about);
	return about;
}

/* Without a context: a job may look for its GPU among those of others. */
static int check(unsigned device, const struct tsi_cuda_driver **d)
{
	int err = tsi_cuda_check(device);

	return err ? err : tsi_cuda_driver(d);
}

int tsi_cuda_attribute(unsigned device, int attribute, int *value)
{
	const struct tsi_cuda_driver *d;
	CUresult r;
	int err = check(device, &d);

	if (err)
		return err;
	r = d->device_attribute(value, (CUdevice_attribute)attribute,
				(CUdevice)device);
	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device,
					   "cuDeviceGetAttribute");
	return 0;
}

static int get_name(unsigned device, char *name, int len)
{
	const struct tsi_cuda_driver *d;
	CUresult r;
	int err = check(device, &d);

	if (err)
		return err;
	r = d->device_name(name, len, (CUdevice)device);
	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device, "cuDeviceGetName");
	return 0;
}

/* CUDA has no attribute for it: "NVIDIA A100-SXM4-40GB MIG 1g.5gb". */
int tsi_cuda_is_mig(unsigned device, bool *mig)
{
	char name[128] = "";
	int err = get_name(device, name, sizeof(name));

	if (!err)
		*mig = strstr(name, " MIG ") != NULL;
	return err;
}

static int get_uuid(unsigned device, uint8_t *uuid)
{
	const struct tsi_cuda_driver *d;
	CUuuid u;
	CUresult r;
	int err = check(device, &d);

	if (err)
		return err;
	r = d->device_uuid(&u, (CUdevice)device);
	if (r != CUDA_SUCCESS)
		return tsi_cuda_driver_err(r, (int)device, "cuDeviceGetUuid");
	memcpy(uuid, u.bytes, TSI_UUID);
	return 0;
}

static int get_transports(unsigned device, struct tsi_gpu_info *info)
{
	int vmm, fd, integrated;
	int err = tsi_cuda_attribute(
		device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		&vmm);

	if (!err)
		err = tsi_cuda_attribute(
			device,
			CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
			&fd);
	if (!err)
		err = tsi_cuda_attribute(device, cudaDevAttrIntegrated,
					 &integrated);
	if (!err && vmm && fd)
		err = tsi_cuda_vmm_granularity(device, &info->granularity);
	if (err)
		return err;
	info->vmm_fd = vmm && fd;
	/* Nobody says so beforehand; CUDA's manual excludes these alone. */
	info->legacy_ipc = !integrated;
	return 0;
}

int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out)
{
	struct tsi_gpu_info info = { .granularity = 0 };
	struct tsi_cuda_scope scope;
	size_t left, total;
	cudaError_t e;
	int err = get_name(device, info.name, sizeof(info.name));

	if (!err)
		err = get_uuid(device, info.uuid);
	if (!err)
		err = tsi_cuda_is_mig(device, &info.mig);
	if (!err)
		err = get_transports(device, &info);
	if (!err)
		err = tsi_cuda_enter(device, &scope);
	if (err)
		return err;
	e = cudaMemGetInfo(&left, &total);
	if (e != cudaSuccess)
		err = tsi_cuda_err(e, (int)device, "cudaMemGetInfo");
	tsi_cuda_leave(&scope);
	if (err)
		return err;
	info.free_bytes = left;
	info.total_bytes = total;
	*out = info;
	return 0;
}

int tsi_gpu_find(const uint8_t *uuid, unsigned *device)
{
	uint8_t other[TSI_UUID];
	unsigned n;
	int err = tsi_gpu_count(&n);

	for (unsigned i = 0; !err && i < n && i < TSI_GPUS; i++) {
		err = get_uuid(i, other);
		if (!err && memcmp(uuid, other, TSI_UUID) == 0) {
			*device = i;
			return 0;
		}
	}
	if (err)
		return err;
	return tsi_err(TSOCK_EARG,
		       "this process can't see the GPU with UUID "
		       "%02x%02x%02x%02x-%02x%02x-...; look at "
		       "CUDA_VISIBLE_DEVICES, or choose another device",
		       uuid[0], uuid[1], uuid[2], uuid[3], uuid[4], uuid[5]);
}

bool tsi_gpu_peer(unsigned from, unsigned to)
{
	struct tsi_cuda_scope scope;
	int can = 0;
	cudaError_t e;

	if (from == to || tsi_cuda_enter(from, &scope))
		return from == to;
	e = cudaDeviceCanAccessPeer(&can, (int)from, (int)to);
	if (e != cudaSuccess)
		can = 0;
	if (can) {
		e = cudaDeviceEnablePeerAccess((int)to, 0);
		can = e == cudaSuccess ||
		      e == cudaErrorPeerAccessAlreadyEnabled;
	}
	if (e != cudaSuccess)
		(void)cudaGetLastError();
	tsi_cuda_leave(&scope);
	return can;
}

int tsi_gpu_healthy(unsigned device)
{
	struct tsi_cuda_scope scope;
	cudaError_t e;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	/* A stream that nothing waits for, asked for the context's sake. */
	e = cudaStreamQuery(cudaStreamPerThread);
	if (e != cudaSuccess && e != cudaErrorNotReady)
		err = tsi_cuda_err(e, (int)device, "the GPU");
	tsi_cuda_leave(&scope);
	return err;
}

int tsi_gpu_finish(unsigned device)
{
	struct tsi_cuda_scope scope;
	cudaError_t e;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	e = cudaDeviceSynchronize();
	if (e != cudaSuccess)
		err = tsi_cuda_err(e, (int)device, "cudaDeviceSynchronize");
	tsi_cuda_leave(&scope);
	return err;
}
