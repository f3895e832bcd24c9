/* SPDX-License-Identifier: MIT */
/*
 * check_headers.c - the simulation's headers agree with those of every toolkit
 * that we build with: this file must compile against all of them.  Never linked
 * into anything.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#define SAME(name, value) _Static_assert((long long)(name) == (value), #name)

SAME(cudaSuccess, 0);
SAME(cudaErrorInvalidValue, 1);
SAME(cudaErrorMemoryAllocation, 2);
SAME(cudaErrorInitializationError, 3);
SAME(cudaErrorCudartUnloading, 4);
SAME(cudaErrorInvalidConfiguration, 9);
SAME(cudaErrorInvalidSymbol, 13);
SAME(cudaErrorInvalidDevicePointer, 17);
SAME(cudaErrorInvalidMemcpyDirection, 21);
SAME(cudaErrorStubLibrary, 34);
SAME(cudaErrorInsufficientDriver, 35);
SAME(cudaErrorCallRequiresNewerDriver, 36);
SAME(cudaErrorDevicesUnavailable, 46);
SAME(cudaErrorIncompatibleDriverContext, 49);
SAME(cudaErrorInvalidDeviceFunction, 98);
SAME(cudaErrorNoDevice, 100);
SAME(cudaErrorInvalidDevice, 101);
SAME(cudaErrorStartupFailure, 127);
SAME(cudaErrorInvalidKernelImage, 200);
SAME(cudaErrorDeviceUninitialized, 201);
SAME(cudaErrorMapBufferObjectFailed, 205);
SAME(cudaErrorUnmapBufferObjectFailed, 206);
SAME(cudaErrorAlreadyMapped, 208);
SAME(cudaErrorNoKernelImageForDevice, 209);
SAME(cudaErrorNotMapped, 211);
SAME(cudaErrorECCUncorrectable, 214);
SAME(cudaErrorDeviceAlreadyInUse, 216);
SAME(cudaErrorPeerAccessUnsupported, 217);
SAME(cudaErrorNvlinkUncorrectable, 220);
SAME(cudaErrorOperatingSystem, 304);
SAME(cudaErrorInvalidResourceHandle, 400);
SAME(cudaErrorIllegalState, 401);
SAME(cudaErrorSymbolNotFound, 500);
SAME(cudaErrorNotReady, 600);
SAME(cudaErrorIllegalAddress, 700);
SAME(cudaErrorLaunchOutOfResources, 701);
SAME(cudaErrorLaunchTimeout, 702);
SAME(cudaErrorPeerAccessAlreadyEnabled, 704);
SAME(cudaErrorPeerAccessNotEnabled, 705);
SAME(cudaErrorSetOnActiveProcess, 708);
SAME(cudaErrorContextIsDestroyed, 709);
SAME(cudaErrorAssert, 710);
SAME(cudaErrorTooManyPeers, 711);
SAME(cudaErrorHostMemoryAlreadyRegistered, 712);
SAME(cudaErrorHostMemoryNotRegistered, 713);
SAME(cudaErrorHardwareStackError, 714);
SAME(cudaErrorIllegalInstruction, 715);
SAME(cudaErrorMisalignedAddress, 716);
SAME(cudaErrorInvalidAddressSpace, 717);
SAME(cudaErrorInvalidPc, 718);
SAME(cudaErrorLaunchFailure, 719);
SAME(cudaErrorNotPermitted, 800);
SAME(cudaErrorNotSupported, 801);
SAME(cudaErrorSystemNotReady, 802);
SAME(cudaErrorSystemDriverMismatch, 803);
SAME(cudaErrorCompatNotSupportedOnDevice, 804);
SAME(cudaErrorMpsConnectionFailed, 805);
SAME(cudaErrorMpsRpcFailure, 806);
SAME(cudaErrorMpsServerNotReady, 807);
SAME(cudaErrorMpsMaxClientsReached, 808);
SAME(cudaErrorMpsMaxConnectionsReached, 809);
SAME(cudaErrorMpsClientTerminated, 810);
SAME(cudaErrorStreamCaptureUnsupported, 900);
SAME(cudaErrorStreamCaptureInvalidated, 901);
SAME(cudaErrorStreamCaptureMerge, 902);
SAME(cudaErrorStreamCaptureUnmatched, 903);
SAME(cudaErrorStreamCaptureUnjoined, 904);
SAME(cudaErrorStreamCaptureIsolation, 905);
SAME(cudaErrorStreamCaptureImplicit, 906);
SAME(cudaErrorCapturedEvent, 907);
SAME(cudaErrorStreamCaptureWrongThread, 908);
SAME(cudaErrorTimeout, 909);
SAME(cudaErrorExternalDevice, 911);
SAME(cudaErrorUnknown, 999);
SAME(cudaMemcpyHostToHost, 0);
SAME(cudaMemcpyHostToDevice, 1);
SAME(cudaMemcpyDeviceToHost, 2);
SAME(cudaMemcpyDeviceToDevice, 3);
SAME(cudaMemcpyDefault, 4);
SAME(cudaStreamCaptureStatusNone, 0);
SAME(cudaStreamCaptureStatusActive, 1);
SAME(cudaStreamCaptureStatusInvalidated, 2);
SAME(cudaStreamCaptureModeGlobal, 0);
SAME(cudaStreamCaptureModeThreadLocal, 1);
SAME(cudaStreamCaptureModeRelaxed, 2);
SAME(cudaDevAttrMaxThreadsPerBlock, 1);
SAME(cudaDevAttrMultiProcessorCount, 16);
SAME(cudaDevAttrIntegrated, 18);
SAME(cudaDevAttrCanMapHostMemory, 19);
SAME(cudaDevAttrComputeMode, 20);
SAME(cudaDevAttrConcurrentKernels, 31);
SAME(cudaDevAttrPciBusId, 33);
SAME(cudaDevAttrPciDeviceId, 34);
SAME(cudaDevAttrAsyncEngineCount, 40);
SAME(cudaDevAttrUnifiedAddressing, 41);
SAME(cudaDevAttrPciDomainId, 50);
SAME(cudaDevAttrComputeCapabilityMajor, 75);
SAME(cudaDevAttrComputeCapabilityMinor, 76);
SAME(cudaDevAttrPageableMemoryAccess, 88);
SAME(cudaDevAttrCanUseHostPointerForRegisteredMem, 91);
SAME(cudaDevAttrHostRegisterSupported, 99);
SAME(cudaDevAttrPageableMemoryAccessUsesHostPageTables, 100);
SAME(cudaDevAttrHostRegisterReadOnlySupported, 113);
SAME(cudaDevAttrMemoryPoolsSupported, 115);
SAME(CUDART_VERSION, CUDA_VERSION);
SAME(cudaStreamDefault, 0x00);
SAME(cudaStreamNonBlocking, 0x01);
SAME(cudaEventDefault, 0x00);
SAME(cudaEventBlockingSync, 0x01);
SAME(cudaEventDisableTiming, 0x02);
SAME(cudaEventInterprocess, 0x04);
SAME(cudaHostAllocDefault, 0x00);
SAME(cudaHostAllocPortable, 0x01);
SAME(cudaHostAllocMapped, 0x02);
SAME(cudaHostAllocWriteCombined, 0x04);
SAME(cudaHostRegisterDefault, 0x00);
SAME(cudaHostRegisterPortable, 0x01);
SAME(cudaHostRegisterMapped, 0x02);
SAME(cudaHostRegisterIoMemory, 0x04);
SAME(cudaHostRegisterReadOnly, 0x08);
SAME(cudaIpcMemLazyEnablePeerAccess, 0x01);
SAME(cudaEnableDefault, 0x0);
SAME(cudaEnableLegacyStream, 0x1);
SAME(cudaEnablePerThreadDefaultStream, 0x2);
SAME(CUDA_IPC_HANDLE_SIZE, 64);
SAME(CUDA_SUCCESS, 0);
SAME(CUDA_ERROR_INVALID_VALUE, 1);
SAME(CUDA_ERROR_OUT_OF_MEMORY, 2);
SAME(CUDA_ERROR_NOT_INITIALIZED, 3);
SAME(CUDA_ERROR_DEINITIALIZED, 4);
SAME(CUDA_ERROR_STUB_LIBRARY, 34);
SAME(CUDA_ERROR_NO_DEVICE, 100);
SAME(CUDA_ERROR_INVALID_DEVICE, 101);
SAME(CUDA_ERROR_INVALID_CONTEXT, 201);
SAME(CUDA_ERROR_MAP_FAILED, 205);
SAME(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217);
SAME(CUDA_ERROR_OPERATING_SYSTEM, 304);
SAME(CUDA_ERROR_INVALID_HANDLE, 400);
SAME(CUDA_ERROR_NOT_FOUND, 500);
SAME(CUDA_ERROR_NOT_READY, 600);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS, 700);
SAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712);
SAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713);
SAME(CUDA_ERROR_LAUNCH_FAILED, 719);
SAME(CUDA_ERROR_NOT_PERMITTED, 800);
SAME(CUDA_ERROR_NOT_SUPPORTED, 801);
SAME(CUDA_ERROR_UNKNOWN, 999);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16);
SAME(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76);
SAME(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99);
SAME(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102);
SAME(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103);
SAME(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 113);
SAME(CU_MEM_HANDLE_TYPE_NONE, 0x0);
SAME(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0x1);
SAME(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0x0);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READ, 0x1);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 0x3);
SAME(CU_MEM_LOCATION_TYPE_INVALID, 0x0);
SAME(CU_MEM_LOCATION_TYPE_DEVICE, 0x1);
SAME(CU_MEM_ALLOCATION_TYPE_INVALID, 0x0);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED, 0x1);
SAME(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0x0);
SAME(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 0x1);
SAME(CU_MEMHOSTREGISTER_PORTABLE, 0x01);
SAME(CU_MEMHOSTREGISTER_DEVICEMAP, 0x02);
SAME(CU_MEMHOSTREGISTER_IOMEMORY, 0x04);
SAME(CU_MEMHOSTREGISTER_READ_ONLY, 0x08);

SAME(sizeof(cudaIpcMemHandle_t), 64);
SAME(sizeof(CUuuid), 16);
SAME(sizeof(CUdeviceptr), 8);
SAME(sizeof(CUmemLocation), 8);
SAME(sizeof(CUmemAllocationProp), 32);
SAME(offsetof(CUmemAllocationProp, requestedHandleTypes), 4);
SAME(offsetof(CUmemAllocationProp, location), 8);
SAME(offsetof(CUmemAllocationProp, allocFlags.usage), 26);
SAME(sizeof(CUmemAccessDesc), 12);

/* Conflicting types don't compile. */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDriverGetVersion(int *driverVersion);
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
				   int device);
cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device,
				    int peerDevice);
cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peerDevice);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **devPtr, size_t size);
cudaError_t cudaFree(void *devPtr);
cudaError_t cudaMallocHost(void **ptr, size_t size);
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr);
cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
				 unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *devPtr);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
		       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
			    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src,
				int srcDevice, size_t count,
				cudaStream_t stream);
cudaError_t cudaMemset(void *devPtr, int value, size_t count);
cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
			    cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream,
				      unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned int flags);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
				  enum cudaStreamCaptureStatus *pCaptureStatus);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
				   enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
CUresult cuInit(unsigned int Flags);
CUresult cuDriverGetVersion(int *driverVersion);
CUresult cuGetErrorName(CUresult error, const char **pStr);
CUresult cuGetErrorString(CUresult error, const char **pStr);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int len, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev);
CUresult cuMemGetAllocationGranularity(size_t *granularity,
				       const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemExportToShareableHandle(void *shareableHandle,
				      CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType handleType,
				      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					void *osHandle,
					CUmemAllocationHandleType shHandleType);
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
			     CUdeviceptr addr, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size);
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
		  CUmemGenericAllocationHandle handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size,
			const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(unsigned long long *flags,
			const CUmemLocation *location, CUdeviceptr ptr);
CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev);
CUresult cuDevicePrimaryCtxRelease(CUdevice dev);
CUresult cuCtxPushCurrent(CUcontext ctx);
CUresult cuCtxPopCurrent(CUcontext *pctx);

/* What older ones don't have or have otherwise. */
#if CUDART_VERSION >= 12000
SAME(cudaDevAttrIpcEventSupport, 125);
SAME(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122);
SAME(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 125);
#endif

#if CUDART_VERSION >= 12020
SAME(CU_MEM_LOCATION_TYPE_HOST, 0x2);
SAME(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0x3);
#endif
