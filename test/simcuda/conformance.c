/* SPDX-License-Identifier: MIT */
/*
 * conformance.c - what libtsock relies on in CUDA, for one process: order
 * within and between streams, events, errors, memory.
 *
 * The simulation must pass in every mode, and so must a real GPU: where they
 * differ, the simulation is wrong.  It never looks into the simulation.
 */
#include "conformance.h"

#include <pthread.h>
#include <sys/mman.h>

#define LEN 300001

/* ---- order ---- */

static void a_stream_runs_in_order(void **state)
{
	cudaStream_t s = new_stream();
	uint8_t *a = device_memory(LEN), *b = device_memory(LEN);
	uint8_t *host = pinned(LEN), *back = pinned(LEN);

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		fill(host, LEN, i);
		OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
		OK(cudaMemcpyAsync(b, a, LEN, cudaMemcpyDeviceToDevice, s));
		OK(cudaMemsetAsync(a, 0xee, LEN, s));
		OK(cudaMemcpyAsync(back, b, LEN, cudaMemcpyDeviceToHost, s));
		OK(cudaMemsetAsync(b, 0xee, LEN, s));
		OK(cudaStreamSynchronize(s));
		verify(back, LEN, i);
	}
	OK(cudaFree(a));
	OK(cudaFree(b));
	OK(cudaFreeHost(host));
	OK(cudaFreeHost(back));
	OK(cudaStreamDestroy(s));
}

static void a_wait_orders_two_streams(void **state)
{
	cudaStream_t s = new_stream(), t = new_stream();
	cudaEvent_t written = new_event(), readback = new_event();
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);
	uint8_t *back = pinned(LEN);

	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		fill(host, LEN, i);
		OK(cudaStreamWaitEvent(s, readback, 0));
		OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
		OK(cudaEventRecord(written, s));
		OK(cudaStreamWaitEvent(t, written, 0));
		OK(cudaMemcpyAsync(back, a, LEN, cudaMemcpyDeviceToHost, t));
		OK(cudaEventRecord(readback, t));
		OK(cudaEventSynchronize(readback));
		verify(back, LEN, i);
	}
	OK(cudaFree(a));
	OK(cudaFreeHost(host));
	OK(cudaFreeHost(back));
	OK(cudaEventDestroy(written));
	OK(cudaEventDestroy(readback));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(t));
}

/* If the wait meant the later record, each stream would wait for the other. */
static void a_wait_means_the_record_before_it(void **state)
{
	cudaStream_t s = new_stream(), t = new_stream();
	cudaEvent_t e = new_event(), f = new_event();
	uint8_t *a = device_memory(LEN);

	(void)state;
	OK(cudaMemsetAsync(a, 1, LEN, s));
	OK(cudaEventRecord(e, s));
	OK(cudaStreamWaitEvent(t, e, 0));
	OK(cudaMemsetAsync(a, 2, LEN, t));
	OK(cudaEventRecord(f, t));
	OK(cudaStreamWaitEvent(s, f, 0));
	OK(cudaEventRecord(e, s));
	OK(cudaStreamSynchronize(t));
	OK(cudaStreamSynchronize(s));
	OK(cudaFree(a));
	OK(cudaEventDestroy(e));
	OK(cudaEventDestroy(f));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(t));
}

static void an_event_never_recorded_is_done(void **state)
{
	cudaStream_t s = new_stream();
	cudaEvent_t e = new_event();

	(void)state;
	OK(cudaEventQuery(e));
	OK(cudaEventSynchronize(e));
	OK(cudaStreamWaitEvent(s, e, 0));
	OK(cudaStreamSynchronize(s));
	OK(cudaEventDestroy(e));
	OK(cudaStreamDestroy(s));
}

static void a_query_turns_ready(void **state)
{
	cudaStream_t s = new_stream();
	cudaEvent_t e = new_event();
	uint8_t *a = device_memory(LEN), *back = pinned(LEN);
	cudaError_t err;

	(void)state;
	upload(a, LEN, 3);
	OK(cudaMemcpyAsync(back, a, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaEventRecord(e, s));
	while ((err = cudaEventQuery(e)) == cudaErrorNotReady)
		usleep(100);
	OK(err);
	verify(back, LEN, 3);
	OK(cudaMemcpyAsync(back, a, LEN, cudaMemcpyDeviceToHost, s));
	while ((err = cudaStreamQuery(s)) == cudaErrorNotReady)
		usleep(100);
	OK(err);
	(void)cudaGetLastError();
	OK(cudaFree(a));
	OK(cudaFreeHost(back));
	OK(cudaEventDestroy(e));
	OK(cudaStreamDestroy(s));
}

static void a_destroyed_stream_ends_its_work(void **state)
{
	cudaStream_t s = new_stream();
	cudaEvent_t e = new_event();
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);

	(void)state;
	fill(host, LEN, 5);
	OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
	OK(cudaEventRecord(e, s));
	OK(cudaStreamDestroy(s));
	OK(cudaEventSynchronize(e));
	verify_device(a, LEN, 5);
	OK(cudaEventDestroy(e));
	OK(cudaFree(a));
	OK(cudaFreeHost(host));
}

static void the_default_stream_waits_for_blocking_ones(void **state)
{
	cudaStream_t s;
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);
	uint8_t *back = pinned(LEN);

	(void)state;
	OK(cudaStreamCreateWithFlags(&s, cudaStreamDefault));
	for (unsigned i = 0; i < 10; i++) {
		fill(host, LEN, i);
		OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
		OK(cudaMemcpyAsync(back, a, LEN, cudaMemcpyDeviceToHost,
				   i % 2 ? cudaStreamLegacy : NULL));
		OK(cudaMemsetAsync(a, 0xee, LEN, s));
		OK(cudaStreamSynchronize(s));
		verify(back, LEN, i);
	}
	OK(cudaStreamDestroy(s));
	OK(cudaFree(a));
	OK(cudaFreeHost(host));
	OK(cudaFreeHost(back));
}

static void each_thread_has_a_default_stream(void **state)
{
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);

	(void)state;
	fill(host, LEN, 9);
	OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice,
			   cudaStreamPerThread));
	OK(cudaStreamSynchronize(cudaStreamPerThread));
	verify_device(a, LEN, 9);
	OK(cudaFree(a));
	OK(cudaFreeHost(host));
}

static void a_freed_block_is_waited_for(void **state)
{
	cudaStream_t s = new_stream();
	uint8_t *a = device_memory(LEN), *back = pinned(LEN);

	(void)state;
	upload(a, LEN, 4);
	OK(cudaMemcpyAsync(back, a, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaFree(a));
	OK(cudaStreamSynchronize(s));
	verify(back, LEN, 4);
	OK(cudaFreeHost(back));
	OK(cudaStreamDestroy(s));
}

/* ---- host memory ---- */

static void pageable_memory_is_read_at_the_call(void **state)
{
	cudaStream_t s = new_stream();
	uint8_t *a = device_memory(LEN), *host = malloc(LEN);

	(void)state;
	assert_non_null(host);
	fill(host, LEN, 6);
	OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
	memset(host, 0xee, LEN);
	OK(cudaStreamSynchronize(s));
	verify_device(a, LEN, 6);
	OK(cudaMemcpyAsync(host, a, LEN, cudaMemcpyDeviceToHost, s));
	verify(host, LEN, 6);
	free(host);
	OK(cudaFree(a));
	OK(cudaStreamDestroy(s));
}

static uint8_t *mapped(size_t len, int prot)
{
	uint8_t *p = mmap(NULL, len, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void registered_memory_is_page_locked(void **state)
{
	size_t len = 8 * 4096;
	uint8_t *p = mapped(2 * len, PROT_READ | PROT_WRITE);
	uint8_t *a = device_memory(2 * len);
	cudaStream_t s = new_stream();

	(void)state;
	fill(p, len, 8);
	OK(cudaHostRegister(p, len, cudaHostRegisterPortable));
	FAILS(cudaHostRegister(p, len, cudaHostRegisterDefault),
	      cudaErrorHostMemoryAlreadyRegistered);
	OK(cudaMemcpyAsync(a, p, len, cudaMemcpyHostToDevice, s));
	OK(cudaStreamSynchronize(s));
	verify_device(a, len, 8);
	FAILS(cudaMemcpyAsync(a, p, len + 1, cudaMemcpyHostToDevice, s),
	      cudaErrorInvalidValue);
	OK(cudaHostUnregister(p));
	FAILS(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	munmap(p, 2 * len);
	OK(cudaFree(a));
	OK(cudaStreamDestroy(s));
}

static void read_only_memory_is_not_page_locked(void **state)
{
	uint8_t *p = mapped(4096, PROT_READ);
	int able = 0;

	(void)state;
	FAILS(cudaHostRegister(p, 4096, cudaHostRegisterDefault),
	      cudaErrorInvalidValue);
	OK(cudaDeviceGetAttribute(&able,
				  cudaDevAttrHostRegisterReadOnlySupported, 0));
	if (able) {
		OK(cudaHostRegister(p, 4096, cudaHostRegisterReadOnly));
		OK(cudaHostUnregister(p));
	} else {
		FAILS(cudaHostRegister(p, 4096, cudaHostRegisterReadOnly),
		      cudaErrorNotSupported);
	}
	munmap(p, 4096);
}

static void the_driver_leaves_no_last_error(void **state)
{
	uint8_t *p = mapped(4096, PROT_READ | PROT_WRITE);

	(void)state;
	OK(cudaFree(0));
	CUFAILS(cuMemHostUnregister, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, p);
	OK(cudaPeekAtLastError());
	munmap(p, 4096);
}

/* ---- device memory ---- */

static void allocations_are_told_apart(void **state)
{
	uint8_t *a = device_memory(1000), *b = device_memory(1000);
	void *none = &none;
	size_t left, total;

	(void)state;
	assert_int_equal((uintptr_t)a % 256, 0);
	assert_true(a + 1000 <= b || b + 1000 <= a);
	upload(a, 1000, 1);
	upload(b, 1000, 2);
	verify_device(a, 1000, 1);
	OK(cudaMalloc(&none, 0));
	assert_null(none);
	OK(cudaFree(NULL));
	FAILS(cudaFree(a + 1), cudaErrorInvalidValue);
	FAILS(cudaMemcpy(a, b, 1000, cudaMemcpyHostToDevice),
	      cudaErrorInvalidValue);
	OK(cudaMemGetInfo(&left, &total));
	assert_true(left <= total);
	FAILS(cudaMalloc(&none, total + 1), cudaErrorMemoryAllocation);
	OK(cudaFree(a));
	OK(cudaFree(b));
	FAILS(cudaMemcpy(a, b, 1000, cudaMemcpyDeviceToDevice),
	      cudaErrorInvalidValue);
}

static CUmemAllocationProp properties(int device)
{
	CUmemAllocationProp p;

	memset(&p, 0, sizeof(p));
	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p.location.id = device;
	return p;
}

static void memory_can_be_mapped_twice_in_a_row(void **state)
{
	CUmemAllocationProp prop = properties(0);
	CUmemAccessDesc rw = { prop.location,
			       CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	size_t len;

	(void)state;
	OK(cudaFree(0));
	CU(cuMemGetAllocationGranularity, &len, &prop,
	   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CUFAILS(cuMemCreate, CUDA_ERROR_INVALID_VALUE, &h, len - 1, &prop, 0);
	CU(cuMemCreate, &h, len, &prop, 0);
	CU(cuMemAddressReserve, &va, 2 * len, 0, 0, 0);
	CU(cuMemMap, va, len, 0, h, 0);
	CU(cuMemMap, va + len, len, 0, h, 0);
	CU(cuMemSetAccess, va, 2 * len, &rw, 1);
	CU(cuMemRelease, h);
	upload((void *)(uintptr_t)(va + len / 2), len, 2);
	verify_device((void *)(uintptr_t)(va + len / 2), len, 2);
	verify_device((void *)(uintptr_t)(va + len + len / 2), len / 2, 2);
	CU(cuMemUnmap, va, 2 * len);
	CU(cuMemAddressFree, va, 2 * len);
}

/* ---- devices ---- */

static void devices_are_known_by_uuid(void **state)
{
	CUuuid a, b;

	(void)state;
	need_devices(2);
	CU(cuDeviceGetUuid, &a, 0);
	CU(cuDeviceGetUuid, &b, 1);
	assert_memory_not_equal(&a, &b, sizeof(a));
	FAILS(cudaSetDevice(devices()), cudaErrorInvalidDevice);
}

static void an_event_belongs_to_its_device(void **state)
{
	cudaEvent_t e = new_event();
	cudaStream_t s;

	(void)state;
	need_devices(2);
	OK(cudaSetDevice(1));
	s = new_stream();
	FAILS(cudaEventRecord(e, s), cudaErrorInvalidResourceHandle);
	OK(cudaStreamWaitEvent(s, e, 0));
	OK(cudaStreamDestroy(s));
	OK(cudaSetDevice(0));
	OK(cudaEventDestroy(e));
}

static void a_context_on_top_is_the_current_device(void **state)
{
	CUcontext ctx;
	int d;

	(void)state;
	need_devices(2);
	CU(cuDevicePrimaryCtxRetain, &ctx, 1);
	CU(cuCtxPushCurrent, ctx);
	OK(cudaGetDevice(&d));
	assert_int_equal(d, 1);
	CU(cuCtxPopCurrent, &ctx);
	OK(cudaGetDevice(&d));
	assert_int_equal(d, 0);
}

static void devices_copy_to_each_other(void **state)
{
	uint8_t *a = device_memory(LEN), *b;
	cudaStream_t s;
	int can;

	(void)state;
	need_devices(2);
	upload(a, LEN, 7);
	OK(cudaDeviceCanAccessPeer(&can, 1, 0));
	OK(cudaSetDevice(1));
	b = device_memory(LEN);
	s = new_stream();
	for (int enabled = 0; enabled <= can; enabled++) {
		if (enabled) {
			OK(cudaDeviceEnablePeerAccess(0, 0));
			FAILS(cudaDeviceEnablePeerAccess(0, 0),
			      cudaErrorPeerAccessAlreadyEnabled);
		}
		OK(cudaMemsetAsync(b, 0, LEN, s));
		OK(cudaMemcpyPeerAsync(b, 1, a, 0, LEN, s));
		OK(cudaStreamSynchronize(s));
		verify_device(b, LEN, 7);
	}
	if (can) {
		OK(cudaDeviceDisablePeerAccess(0));
		FAILS(cudaDeviceDisablePeerAccess(0),
		      cudaErrorPeerAccessNotEnabled);
	}
	OK(cudaFree(b));
	OK(cudaStreamDestroy(s));
	OK(cudaSetDevice(0));
	OK(cudaFree(a));
}

/* ---- errors ---- */

static void *peek(void *out)
{
	*(cudaError_t *)out = cudaPeekAtLastError();
	return NULL;
}

static void the_last_error_stays_until_it_is_fetched(void **state)
{
	cudaError_t elsewhere;
	pthread_t t;
	int n;

	(void)state;
	assert_int_equal(cudaSetDevice(-5), cudaErrorInvalidDevice);
	OK(cudaGetDeviceCount(&n));
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	assert_int_equal(pthread_create(&t, NULL, peek, &elsewhere), 0);
	pthread_join(t, NULL);
	OK(elsewhere);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
	OK(cudaGetLastError());
	assert_string_equal(cudaGetErrorName(cudaErrorInvalidDevice),
			    "cudaErrorInvalidDevice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_runs_in_order),
		cmocka_unit_test(a_wait_orders_two_streams),
		cmocka_unit_test(a_wait_means_the_record_before_it),
		cmocka_unit_test(an_event_never_recorded_is_done),
		cmocka_unit_test(a_query_turns_ready),
		cmocka_unit_test(a_destroyed_stream_ends_its_work),
		cmocka_unit_test(the_default_stream_waits_for_blocking_ones),
		cmocka_unit_test(each_thread_has_a_default_stream),
		cmocka_unit_test(a_freed_block_is_waited_for),
		cmocka_unit_test(pageable_memory_is_read_at_the_call),
		cmocka_unit_test(registered_memory_is_page_locked),
		cmocka_unit_test(read_only_memory_is_not_page_locked),
		cmocka_unit_test(the_driver_leaves_no_last_error),
		cmocka_unit_test(allocations_are_told_apart),
		cmocka_unit_test(memory_can_be_mapped_twice_in_a_row),
		cmocka_unit_test(devices_are_known_by_uuid),
		cmocka_unit_test(an_event_belongs_to_its_device),
		cmocka_unit_test(a_context_on_top_is_the_current_device),
		cmocka_unit_test(devices_copy_to_each_other),
		cmocka_unit_test(the_last_error_stays_until_it_is_fetched),
	};
	int start = conformance_start();

	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
