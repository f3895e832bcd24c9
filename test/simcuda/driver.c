/* SPDX-License-Identifier: MIT */
/*
 * driver.c - where the driver's functions are, and what errors are called.
 */
#include "sim.h"

#include <string.h>

static const struct entry {
	const char *name;
	void (*fn)(void);
	int since;
} entries[] = {
#define FN(name, since) \
	{ \
#name, (void (*)(void))name, since \
	}
	FN(cuInit, 2000),
	FN(cuDriverGetVersion, 2020),
	FN(cuGetErrorName, 6000),
	FN(cuGetErrorString, 6000),
	FN(cuDeviceGetCount, 2000),
	FN(cuDeviceGet, 2000),
	FN(cuDeviceGetName, 2000),
	{ "cuDeviceGetUuid", (void (*)(void))cuDeviceGetUuid, 9020 },
	FN(cuDeviceGetAttribute, 2000),
	FN(cuDevicePrimaryCtxRetain, 7000),
	{ "cuDevicePrimaryCtxRelease",
	  (void (*)(void))cuDevicePrimaryCtxRelease, 7000 },
	{ "cuCtxPushCurrent", (void (*)(void))cuCtxPushCurrent, 2000 },
	{ "cuCtxPopCurrent", (void (*)(void))cuCtxPopCurrent, 2000 },
	FN(cuMemGetAllocationGranularity, 10020),
	FN(cuMemCreate, 10020),
	FN(cuMemRelease, 10020),
	FN(cuMemExportToShareableHandle, 10020),
	FN(cuMemImportFromShareableHandle, 10020),
	FN(cuMemAddressReserve, 10020),
	FN(cuMemAddressFree, 10020),
	FN(cuMemMap, 10020),
	FN(cuMemUnmap, 10020),
	FN(cuMemSetAccess, 10020),
	FN(cuMemGetAccess, 10020),
	{ "cuMemHostRegister", (void (*)(void))cuMemHostRegister, 4000 },
	FN(cuMemHostUnregister, 4000),
};

/* Newer interfaces than its own a driver doesn't know. */
static CUresult find_entry(const char *symbol, void **fn, int version)
{
	if (!symbol || !fn || version > sim.driver_version)
		return CUDA_ERROR_INVALID_VALUE;
	*fn = NULL;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		const struct entry *e = &entries[i];

		if (strcmp(e->name, symbol) != 0 || e->since > version)
			continue;
		memcpy(fn, &e->fn, sizeof(*fn));
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

/* By dlsym(), from libcuda.so.1, which is this library's other name. */
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
			  uint64_t flags)
{
	cudaError_t err = sim_enter("cuGetProcAddress", SIM_ANYTIME);

	(void)flags;
	return sim_leave_driver(
		err ? err : (cudaError_t)find_entry(symbol, pfn, cudaVersion));
}

static const struct {
	int code;
	const char *runtime, *driver, *text;
} errors[] = {
#define E(name, text) \
	{ \
		cudaError##name, "cudaError" #name, NULL, text \
	}
#define D(name, driver, text) \
	{ \
		cudaError##name, "cudaError" #name, "CUDA_ERROR_" #driver, \
			text \
	}
	{ cudaSuccess, "cudaSuccess", "CUDA_SUCCESS", "no error" },
	D(InvalidValue, INVALID_VALUE, "invalid argument"),
	D(MemoryAllocation, OUT_OF_MEMORY, "out of memory"),
	D(InitializationError, NOT_INITIALIZED, "initialization error"),
	D(CudartUnloading, DEINITIALIZED, "driver shutting down"),
	E(InvalidConfiguration, "invalid configuration argument"),
	E(InvalidSymbol, "invalid device symbol"),
	E(InvalidDevicePointer, "invalid device pointer"),
	E(InvalidMemcpyDirection, "invalid copy direction"),
	D(StubLibrary, STUB_LIBRARY, "the driver is a stub"),
	E(InsufficientDriver, "driver is older than the runtime needs"),
	E(CallRequiresNewerDriver, "function needs a newer driver"),
	D(DevicesUnavailable, DEVICE_UNAVAILABLE, "devices are busy"),
	D(NoDevice, NO_DEVICE, "no device was found"),
	D(InvalidDevice, INVALID_DEVICE, "invalid device ordinal"),
	D(DeviceUninitialized, INVALID_CONTEXT, "invalid device context"),
	D(MapBufferObjectFailed, MAP_FAILED, "mapping failed"),
	D(UnmapBufferObjectFailed, UNMAP_FAILED, "unmapping failed"),
	D(AlreadyMapped, ALREADY_MAPPED, "already mapped"),
	D(NotMapped, NOT_MAPPED, "not mapped"),
	D(NoKernelImageForDevice, NO_BINARY_FOR_GPU,
	  "no kernel image is available for execution on the device"),
	D(ECCUncorrectable, ECC_UNCORRECTABLE, "uncorrectable ECC error"),
	D(PeerAccessUnsupported, PEER_ACCESS_UNSUPPORTED,
	  "no peer access between these devices"),
	D(NvlinkUncorrectable, NVLINK_UNCORRECTABLE,
	  "uncorrectable NVLink error"),
	D(OperatingSystem, OPERATING_SYSTEM, "a system call failed"),
	D(InvalidResourceHandle, INVALID_HANDLE, "invalid resource handle"),
	D(IllegalState, ILLEGAL_STATE, "not possible in this state"),
	D(SymbolNotFound, NOT_FOUND, "symbol not found"),
	D(NotReady, NOT_READY, "device not ready"),
	D(IllegalAddress, ILLEGAL_ADDRESS, "illegal memory access"),
	D(LaunchOutOfResources, LAUNCH_OUT_OF_RESOURCES,
	  "too many resources for a launch"),
	D(LaunchTimeout, LAUNCH_TIMEOUT, "a launch took too long"),
	D(PeerAccessAlreadyEnabled, PEER_ACCESS_ALREADY_ENABLED,
	  "peer access is on already"),
	D(PeerAccessNotEnabled, PEER_ACCESS_NOT_ENABLED, "peer access is off"),
	D(ContextIsDestroyed, CONTEXT_IS_DESTROYED, "context is destroyed"),
	D(Assert, ASSERT, "an assertion failed on the device"),
	D(TooManyPeers, TOO_MANY_PEERS, "peers use it already"),
	D(HostMemoryAlreadyRegistered, HOST_MEMORY_ALREADY_REGISTERED,
	  "host memory is page-locked already"),
	D(HostMemoryNotRegistered, HOST_MEMORY_NOT_REGISTERED,
	  "host memory isn't page-locked"),
	D(MisalignedAddress, MISALIGNED_ADDRESS, "misaligned address"),
	D(LaunchFailure, LAUNCH_FAILED, "a kernel failed"),
	D(NotPermitted, NOT_PERMITTED, "not permitted"),
	D(NotSupported, NOT_SUPPORTED, "not supported"),
	D(SystemNotReady, SYSTEM_NOT_READY, "system not yet initialized"),
	D(MpsConnectionFailed, MPS_CONNECTION_FAILED, "no connection to MPS"),
	D(MpsRpcFailure, MPS_RPC_FAILURE, "call to the MPS server failed"),
	D(MpsClientTerminated, MPS_CLIENT_TERMINATED,
	  "the MPS server ended this client"),
	D(StreamCaptureUnsupported, STREAM_CAPTURE_UNSUPPORTED,
	  "not permitted while a stream is captured"),
	D(StreamCaptureInvalidated, STREAM_CAPTURE_INVALIDATED,
	  "the capture was spoilt by an earlier error"),
	D(StreamCaptureIsolation, STREAM_CAPTURE_ISOLATION,
	  "a captured stream can't depend on uncaptured work"),
	D(StreamCaptureImplicit, STREAM_CAPTURE_IMPLICIT,
	  "the default stream would depend on a captured one"),
	D(CapturedEvent, CAPTURED_EVENT,
	  "not permitted on an event recorded in a capture"),
	D(StreamCaptureWrongThread, STREAM_CAPTURE_WRONG_THREAD,
	  "the capture was begun by another thread"),
	D(Unknown, UNKNOWN, "unknown error"),
};

static int find_error(int code)
{
	for (int i = 0; i < (int)(sizeof(errors) / sizeof(*errors)); i++)
		if (errors[i].code == code)
			return i;
	return -1;
}

const char *cudaGetErrorName(cudaError_t error)
{
	int i = find_error((int)error);

	return i < 0 ? "unrecognized error code" : errors[i].runtime;
}

const char *cudaGetErrorString(cudaError_t error)
{
	int i = find_error((int)error);

	return i < 0 ? "unrecognized error code" : errors[i].text;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	int i = find_error((int)error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].driver;
	return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	int i = find_error((int)error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].text;
	return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
