/* SPDX-License-Identifier: MIT */
/*
 * call.c - around every call: the device made current, the driver's functions,
 * CUDA's errors as ours.
 *
 * Never leaves another device current than it found, never makes a context on
 * a device that nobody asked for, never leaves an error behind for the
 * application to find.
 */
#include "mem/cuda/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fork.h"
#include "mem/cuda/entry.h"

/* For "%d.%d". */
#define VERSION(number) (number) / 1000, (number) % 1000 / 10

static struct tsi_cuda_driver driver;
static const char *driver_lacks;
static CUresult driver_says;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static unsigned generation;
static _Atomic(CUcontext) context[TSI_GPUS];

/* ---- errors ---- */

/*
 * Does this error end the context?  By number: the oldest toolkit lacks some
 * of the names.
 */
static bool is_lost(int e)
{
	switch (e) {
	case 4:   /* cudaErrorCudartUnloading */
	case 214: /* cudaErrorECCUncorrectable */
	case 220: /* cudaErrorNvlinkUncorrectable */
	case 226: /* cudaErrorContained */
	case 700: /* cudaErrorIllegalAddress */
	case 702: /* cudaErrorLaunchTimeout */
	case 709: /* cudaErrorContextIsDestroyed */
	case 710: /* cudaErrorAssert */
	case 714: /* cudaErrorHardwareStackError */
	case 715: /* cudaErrorIllegalInstruction */
	case 716: /* cudaErrorMisalignedAddress */
	case 717: /* cudaErrorInvalidAddressSpace */
	case 718: /* cudaErrorInvalidPc */
	case 719: /* cudaErrorLaunchFailure */
	case 721: /* cudaErrorTensorMemoryLeak */
	case 805: /* cudaErrorMpsConnectionFailed */
	case 806: /* cudaErrorMpsRpcFailure */
	case 807: /* cudaErrorMpsServerNotReady */
	case 810: /* cudaErrorMpsClientTerminated */
	case 911: /* cudaErrorExternalDevice */
	case 999: /* cudaErrorUnknown */
		return true;
	default:
		return false;
	}
}

static int code_of(int e)
{
	if (e == 2) /* cudaErrorMemoryAllocation */
		return TSOCK_ENOMEM;
	if (e == 71 || e == 801) /* cudaErrorUnsupportedLimit, NotSupported */
		return TSOCK_ENOTSUP;
	return is_lost(e) ? TSOCK_ESTREAM : TSOCK_ESYS;
}

/* The runtime and the driver number their errors alike. */
static int say(int e, int device, const char *call, const char *name,
	       const char *text)
{
	char where[24] = "";

	if (device >= 0)
		snprintf(where, sizeof(where), " on GPU %d", device);
	(void)cudaGetLastError();
	return tsi_err(code_of(e), "%s%s: %s (%s)%s", call, where, name, text,
		       is_lost(e) ? "; this process can't use the GPU any "
				    "more: start it again"
				  : "");
}

int tsi_cuda_err(cudaError_t e, int device, const char *call)
{
	if (e == cudaSuccess)
		return 0;
	return say((int)e, device, call, cudaGetErrorName(e),
		   cudaGetErrorString(e));
}

int tsi_cuda_drop(cudaError_t e)
{
	if (e != cudaSuccess)
		(void)cudaGetLastError();
	return 0;
}

const char *tsi_cuda_name(CUresult r)
{
	const char *name = NULL;

	if (!driver.error_name || driver.error_name(r, &name) != CUDA_SUCCESS)
		return NULL;
	return name;
}

int tsi_cuda_driver_err(CUresult r, int device, const char *call)
{
	const char *name, *text = NULL;

	if (r == CUDA_SUCCESS)
		return 0;
	name = tsi_cuda_name(r);
	if (name && driver.error_string)
		(void)driver.error_string(r, &text);
	return say((int)r, device, call, name ? name : "an unknown error",
		   text ? text : "the driver has no text for it");
}

int tsi_cuda_alloc_err(int e, unsigned device, const char *call, uint64_t bytes)
{
	size_t left = 0, total = 0;

	if (code_of(e) != TSOCK_ENOMEM)
		return tsi_cuda_err((cudaError_t)e, (int)device, call);
	(void)cudaGetLastError();
	(void)tsi_cuda_drop(cudaMemGetInfo(&left, &total));
	return tsi_err(TSOCK_ENOMEM,
		       "%s on GPU %u: %.1f MiB are needed, %.1f of %.1f MiB "
		       "are free: cudaErrorMemoryAllocation (out of memory)",
		       call, device, (double)bytes / 1048576,
		       (double)left / 1048576, (double)total / 1048576);
}

/* ---- the driver's functions ---- */

static void find_function(const char *name, void *out)
{
	void *fn;
	CUresult r = tsi_cuda_entry(name, &fn);

	if (r == CUDA_SUCCESS) {
		memcpy(out, &fn, sizeof(fn));
	} else if (!driver_lacks) {
		driver_lacks = name;
		driver_says = r;
	}
}

static void find_driver(void)
{
	find_function("cuGetErrorName", &driver.error_name);
	find_function("cuGetErrorString", &driver.error_string);
	find_function("cuDeviceGetName", &driver.device_name);
	find_function("cuDeviceGetUuid", &driver.device_uuid);
	find_function("cuDeviceGetAttribute", &driver.device_attribute);
	find_function("cuMemHostRegister", &driver.host_register);
	find_function("cuMemHostUnregister", &driver.host_unregister);
	find_function("cuMemGetAllocationGranularity", &driver.granularity);
	find_function("cuMemCreate", &driver.create);
	find_function("cuMemRelease", &driver.release);
	find_function("cuMemExportToShareableHandle", &driver.export_handle);
	find_function("cuMemImportFromShareableHandle", &driver.import_handle);
	find_function("cuMemAddressReserve", &driver.reserve);
	find_function("cuMemAddressFree", &driver.free_range);
	find_function("cuMemMap", &driver.map);
	find_function("cuMemUnmap", &driver.unmap);
	find_function("cuMemSetAccess", &driver.set_access);
	find_function("cuDevicePrimaryCtxRetain", &driver.retain);
	find_function("cuCtxPushCurrent", &driver.push);
	find_function("cuCtxPopCurrent", &driver.pop);
}

int tsi_cuda_driver(const struct tsi_cuda_driver **out)
{
	int has = 0;

	pthread_once(&driver_once, find_driver);
	if (!driver_lacks) {
		*out = &driver;
		return 0;
	}
	(void)tsi_cuda_drop(cudaDriverGetVersion(&has));
	return tsi_err(TSOCK_ENOTSUP,
		       "the NVIDIA driver, which knows CUDA %d.%d, doesn't "
		       "give its %s as of CUDA %d.%d: %s (%s); this build has "
		       "CUDA %d.%d: update the driver",
		       VERSION(has), driver_lacks, VERSION(TSI_CUDA_API),
		       cudaGetErrorName((cudaError_t)driver_says),
		       cudaGetErrorString((cudaError_t)driver_says),
		       VERSION(CUDART_VERSION));
}

/* ---- processes and devices that can use CUDA ---- */

static void begun(void)
{
	generation = tsi_fork_generation();
}

int tsi_cuda_begin(void)
{
	pthread_once(&fork_once, begun);
	if (tsi_fork_since(generation))
		return tsi_err(TSOCK_EFORK,
			       "this process was forked by one that uses CUDA, "
			       "which can't be used in the child: start it by "
			       "exec (multiprocessing: \"spawn\")");
	return 0;
}

/* The first release for a toolkit; all later ones of its major will do. */
static int first_release(int toolkit)
{
	static const int releases[] = { 450, 525, 580 }; /* CUDA 11, 12, 13 */
	int i = toolkit / 1000 - 11;

	return releases[i < 0 ? 0 : i > 2 ? 2 : i];
}

static int no_driver(void)
{
	int has = 0;

	if (cudaDriverGetVersion(&has) != cudaSuccess) {
		(void)cudaGetLastError();
		has = 0;
	}
	if (!has)
		return tsi_err(TSOCK_ENOTSUP,
			       "no NVIDIA driver: libcuda.so.1 can't be "
			       "loaded (this build has CUDA %d.%d); install "
			       "the driver, or start the container with its "
			       "GPUs",
			       VERSION(CUDART_VERSION));
	return tsi_err(TSOCK_ENOTSUP,
		       "the NVIDIA driver is too old: it knows CUDA %d.%d, and "
		       "this build has %d.%d, which needs driver %d or newer; "
		       "update the driver, or leave device out: batches come "
		       "in host memory then",
		       VERSION(has), VERSION(CUDART_VERSION),
		       first_release(CUDART_VERSION));
}

static int no_device(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	return tsi_err(TSOCK_ENOTSUP,
		       "the NVIDIA driver is there but this process sees no "
		       "GPU%s%.40s%s",
		       visible ? "; CUDA_VISIBLE_DEVICES is \"" : "",
		       visible ? visible : "", visible ? "\"" : "");
}

int tsi_cuda_count(unsigned *n)
{
	int count = 0, err = tsi_cuda_begin();
	cudaError_t e;

	if (err)
		return err;
	e = cudaGetDeviceCount(&count);
	if (e != cudaSuccess)
		(void)cudaGetLastError();
	if (e == cudaErrorInsufficientDriver || e == cudaErrorStubLibrary)
		return no_driver();
	if (e == cudaErrorNoDevice || (e == cudaSuccess && count < 1))
		return no_device();
	if (e != cudaSuccess)
		return tsi_err(TSOCK_ENOTSUP,
			       "the NVIDIA driver is there but refuses: %s "
			       "(%s)",
			       cudaGetErrorName(e), cudaGetErrorString(e));
	*n = (unsigned)count;
	return 0;
}

/* ---- being on a device ---- */

/*
 * The runtime's own context of the device, retained until the process ends.
 * Without a lock: a GPU may hang in this, and nobody who wants another one is
 * to wait for it.  Threads that come at once all get the same context.
 */
static int retain(unsigned device, CUcontext *out)
{
	CUresult r;

	/* Pairs with the release below: what retain() wrote is visible. */
	*out = atomic_load_explicit(&context[device], memory_order_acquire);
	if (*out)
		return 0;
	r = driver.retain(out, (CUdevice)device);
	if (r == CUDA_SUCCESS)
		/* Pairs with the acquire above. */
		atomic_store_explicit(&context[device], *out,
				      memory_order_release);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return tsi_err(TSOCK_ENOMEM,
			       "no room for a context on GPU %u, which takes "
			       "each process some hundred MiB there: end "
			       "another one, or choose another device "
			       "(cuDevicePrimaryCtxRetain)",
			       device);
	return tsi_cuda_driver_err(r, (int)device, "cuDevicePrimaryCtxRetain");
}

bool tsi_cuda_used(unsigned device)
{
	/* A thread that uses it then acquires it in retain(). */
	return device < TSI_GPUS &&
	       atomic_load_explicit(&context[device], memory_order_relaxed);
}

int tsi_cuda_check(unsigned device)
{
	unsigned n;
	int err = tsi_cuda_begin();

	/* First the cheap question. */
	if (err || tsi_cuda_used(device))
		return err;
	err = tsi_cuda_count(&n);
	if (!err && (device >= n || device >= TSI_GPUS))
		err = tsi_err(TSOCK_EARG,
			      "there is no GPU %u; this process sees %u, "
			      "numbered from 0",
			      device, n);
	return err;
}

int tsi_cuda_enter(unsigned device, struct tsi_cuda_scope *s)
{
	const struct tsi_cuda_driver *d;
	/*
	 * No capture may notice what is done here: not another thread's, nor
	 * this thread's own, during which a batch may be released.
	 */
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	CUcontext ctx;
	int err = tsi_cuda_check(device);

	if (!err)
		err = tsi_cuda_driver(&d);
	if (!err)
		err = retain(device, &ctx);
	if (err)
		return err;
	err = tsi_cuda_driver_err(d->push(ctx), (int)device,
				  "cuCtxPushCurrent");
	if (err)
		return err;
	err = tsi_cuda_err(cudaThreadExchangeStreamCaptureMode(&mode),
			   (int)device, "cudaThreadExchangeStreamCaptureMode");
	if (err) {
		(void)d->pop(&ctx);
		return err;
	}
	s->driver = d;
	s->mode = (int)mode;
	return 0;
}

void tsi_cuda_leave(struct tsi_cuda_scope *s)
{
	enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)s->mode;
	CUcontext ctx;

	(void)tsi_cuda_drop(cudaThreadExchangeStreamCaptureMode(&mode));
	(void)s->driver->pop(&ctx);
}

/* ---- host memory ---- */

CUresult tsi_cuda_register(void *p, uint64_t bytes)
{
	return driver.host_register(p, bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

CUresult tsi_cuda_unregister(void *p)
{
	return driver.host_unregister(p);
}
