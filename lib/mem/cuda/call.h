/* SPDX-License-Identifier: MIT */
/*
 * call.h - what the files that name CUDA share: a device made current and put
 * back, errors made ours, the driver's own functions.
 *
 * Only the files of this folder, convert/gpu.c and stage/nccl.c include it.
 */
#ifndef TSI_MEM_CUDA_CALL_H
#define TSI_MEM_CUDA_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define TSI_GPUS 64 /* of one process; CUDA's own tables end far below */

/*
 * Functions of the driver that the runtime has no equal for, found by entry.h:
 * nothing links to libcuda.
 */
struct tsi_cuda_driver {
	__typeof__(cuDeviceGetName) *device_name;
	__typeof__(cuDeviceGetUuid) *device_uuid;
	__typeof__(cuDeviceGetAttribute) *device_attribute;
	__typeof__(cuGetErrorName) *error_name;
	__typeof__(cuGetErrorString) *error_string;
	__typeof__(cuMemHostRegister) *host_register;
	__typeof__(cuMemHostUnregister) *host_unregister;
	__typeof__(cuMemGetAllocationGranularity) *granularity;
	__typeof__(cuMemCreate) *create;
	__typeof__(cuMemRelease) *release;
	__typeof__(cuMemExportToShareableHandle) *export_handle;
	__typeof__(cuMemImportFromShareableHandle) *import_handle;
	__typeof__(cuMemAddressReserve) *reserve;
	__typeof__(cuMemAddressFree) *free_range;
	__typeof__(cuMemMap) *map;
	__typeof__(cuMemUnmap) *unmap;
	__typeof__(cuMemSetAccess) *set_access;
	__typeof__(cuDevicePrimaryCtxRetain) *retain;
	__typeof__(cuCtxPushCurrent) *push;
	__typeof__(cuCtxPopCurrent) *pop;
};

/* After a device was counted.  TSOCK_ENOTSUP names what is missing. */
int tsi_cuda_driver(const struct tsi_cuda_driver **out);

/*
 * A device made current for one call.  Its context is pushed on this thread's
 * stack and popped again.  (To restore the previous device by cudaSetDevice()
 * would make a context on that device if it had none.)
 */
struct tsi_cuda_scope {
	const struct tsi_cuda_driver *driver;
	int mode; /* of stream capture: the thread's before the call */
};

int tsi_cuda_enter(unsigned device, struct tsi_cuda_scope *s);
void tsi_cuda_leave(struct tsi_cuda_scope *s);

/*
 * The value of expr, 0 or an error of ours, with the device current while it is
 * evaluated; or why the device can't be made current.
 */
#define TSI_CUDA_ON(device, expr) \
	({ \
		struct tsi_cuda_scope scope_; \
		int err_ = tsi_cuda_enter(device, &scope_); \
\
		if (!err_) { \
			err_ = (expr); \
			tsi_cuda_leave(&scope_); \
		} \
		err_; \
	})

/* One call of the runtime with the device current; returns 0 or our error. */
#define TSI_CUDA_CALL(device, call, name) \
	TSI_CUDA_ON(device, tsi_cuda_err(call, (int)(device), name))

/* A call of the runtime whose failure couldn't be handled in any way. */
#define TSI_CUDA_DROP(device, call) \
	((void)TSI_CUDA_ON(device, tsi_cuda_drop(call)))

/* Has this process made a context there? */
bool tsi_cuda_used(unsigned device);

/* TSOCK_EFORK in a child of the process that began with CUDA. */
int tsi_cuda_begin(void);

/* The number of devices, and errors, of tsi_gpu_count(). */
int tsi_cuda_count(unsigned *n);

/* TSOCK_EARG where there is no such device.  Makes no context. */
int tsi_cuda_check(unsigned device);

/*
 * 0 for success; else our error for e, with a message that names the call, the
 * device (-1: none in particular) and CUDA's text, and CUDA's last error is
 * cleared.  Out of memory is ENOMEM, what the device can't do ENOTSUP, a
 * context that is lost for this process ESTREAM, and everything else ESYS.
 */
int tsi_cuda_err(cudaError_t e, int device, const char *call);
int tsi_cuda_driver_err(CUresult r, int device, const char *call);

/*
 * With some device current: page-lock host memory for every device, and undo
 * that.  Both return the driver's error, which tsi_cuda_name() names.
 */
CUresult tsi_cuda_register(void *p, uint64_t bytes);
CUresult tsi_cuda_unregister(void *p);

/* The driver's name of an error; NULL: it has none. */
const char *tsi_cuda_name(CUresult r);

/* For an allocation of bytes: out of memory is told with what is free. */
int tsi_cuda_alloc_err(int e, unsigned device, const char *call,
		       uint64_t bytes);

/* Returns 0.  If e is an error, CUDA's last error is cleared. */
int tsi_cuda_drop(cudaError_t e);

#endif
