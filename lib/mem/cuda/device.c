/* SPDX-License-Identifier: MIT */
/*
 * device.c - devices: how many, which, what they can do.
 *
 * Looking at a device makes no context on it, which would cost hundreds of
 * megabytes of its memory; only asking how much memory it has left makes one.
 */
#include "mem/cuda/device.h"

#include <string.h>

#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/vmm.h"
#include "mem/gpu.h"

int tsi_gpu_count(unsigned *n)
{
	return tsi_cuda_count(n);
}

/* Without a context: a job may look for its GPU among those of others. */
static int driver_of(unsigned device, const struct tsi_cuda_driver **d)
{
	int err = tsi_cuda_check(device);

	return err ? err : tsi_cuda_driver(d);
}

int tsi_cuda_attribute(unsigned device, int attribute, int *value)
{
	const struct tsi_cuda_driver *d;
	int err = driver_of(device, &d);

	if (err)
		return err;
	return tsi_cuda_driver_err(
		d->device_attribute(value, (CUdevice_attribute)attribute,
				    (CUdevice)device),
		(int)device, "cuDeviceGetAttribute");
}

static int get_name(unsigned device, char *name, int len)
{
	const struct tsi_cuda_driver *d;
	int err = driver_of(device, &d);

	if (err)
		return err;
	return tsi_cuda_driver_err(d->device_name(name, len, (CUdevice)device),
				   (int)device, "cuDeviceGetName");
}

/* CUDA has no attribute for MIG: "NVIDIA A100-SXM4-40GB MIG 1g.5gb". */
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
	int err = driver_of(device, &d);

	if (!err)
		err = tsi_cuda_driver_err(d->device_uuid(&u, (CUdevice)device),
					  (int)device, "cuDeviceGetUuid");
	if (!err)
		memcpy(uuid, u.bytes, TSI_UUID);
	return err;
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
	/* No attribute says so; CUDA's manual excludes integrated GPUs. */
	info->legacy_ipc = !integrated;
	return 0;
}

int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out)
{
	struct tsi_gpu_info info = { .granularity = 0 };
	size_t left, total;
	int err = get_name(device, info.name, sizeof(info.name));

	if (!err)
		err = get_uuid(device, info.uuid);
	if (!err)
		err = tsi_cuda_is_mig(device, &info.mig);
	if (!err)
		err = get_transports(device, &info);
	if (!err)
		err = TSI_CUDA_CALL(device, cudaMemGetInfo(&left, &total),
				    "cudaMemGetInfo");
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
	int can = from == to;

	if (!can && !tsi_cuda_check(from) && !tsi_cuda_check(to))
		(void)tsi_cuda_drop(
			cudaDeviceCanAccessPeer(&can, (int)from, (int)to));
	return can;
}

/* Querying any stream shows an error of the context. */
static cudaError_t query_context(void)
{
	cudaError_t e = cudaStreamQuery(cudaStreamPerThread);

	return e == cudaErrorNotReady ? cudaSuccess : e;
}

int tsi_gpu_healthy(unsigned device)
{
	return TSI_CUDA_CALL(device, query_context(), "the GPU");
}

int tsi_gpu_finish(unsigned device)
{
	return TSI_CUDA_CALL(device, cudaDeviceSynchronize(),
			     "cudaDeviceSynchronize");
}
