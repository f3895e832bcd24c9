/* SPDX-License-Identifier: MIT */
/*
 * conformance_sim.c - what the simulation adds to CUDA: work that runs late
 * and out of order, kernels that are host functions, faults on demand, and a
 * machine by environment variables.
 *
 * Each of the tests' machines is a child with its own environment.  On a real
 * runtime there is nothing to test here.
 */
#include "conformance.h"

#ifdef SIMCUDA
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "simcuda.h"

#define LEN 200000

/* ---- when work runs ---- */

/* Nothing has run: the source is what it is at the time of the wait. */
static void late_source(void)
{
	cudaStream_t s = new_stream(), t = new_stream();
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);

	fill(host, LEN, 1);
	OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
	OK(cudaMemsetAsync(a, 0, LEN, t));
	OK(cudaStreamSynchronize(t));
	fill(host, LEN, 2);
	OK(cudaStreamSynchronize(s));
	verify_device(a, LEN, 2);
}

static void late_work_reads_its_source_when_it_runs(void **state)
{
	(void)state;
	run_machine("late_source", "SIMCUDA_MODE=late", 0);
}

/* Without an event between two streams the later one's work comes first. */
static void reversed(void)
{
	cudaStream_t s = new_stream(), t = new_stream();
	uint8_t *a = device_memory(LEN), *host = pinned(LEN);

	upload(a, LEN, 5);
	fill(host, LEN, 1);
	OK(cudaMemcpyAsync(a, host, LEN, cudaMemcpyHostToDevice, s));
	OK(cudaMemsetAsync(a, 0, LEN, t));
	OK(cudaStreamSynchronize(s));
	verify_device(a, LEN, 1);
}

static void reversed_streams_run_the_newest_first(void **state)
{
	(void)state;
	run_machine("reversed", "SIMCUDA_MODE=reverse", 0);
}

static void unregister_early(void)
{
	uint8_t *a = device_memory(LEN);
	size_t len = (LEN + 4095) / 4096 * 4096;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cudaStream_t s = new_stream();

	OK(cudaHostRegister(p, len, cudaHostRegisterDefault));
	OK(cudaMemcpyAsync(a, p, LEN, cudaMemcpyHostToDevice, s));
	OK(cudaHostUnregister(p));
	cudaStreamSynchronize(s);
}

static void host_memory_given_back_too_early_is_reported(void **state)
{
	(void)state;
	run_machine("unregister_early", "SIMCUDA_MODE=late", -SIGABRT);
}

/* ---- kernels ---- */

static void add_one(void *arg, char *const *range, unsigned step)
{
	const size_t *len = arg;
	size_t n = *len / 4;

	for (size_t i = n * step; i < n * (step + 1); i++)
		range[1][i] = (char)(range[0][i] + 1);
}

static struct simcuda_kernel kernel(const void *src, void *dst, size_t *len)
{
	struct simcuda_kernel k = { .nranges = 2,
				    .steps = 4,
				    .range = { { src, *len, false },
					       { dst, *len, true } },
				    .run = add_one,
				    .arg = len };

	return k;
}

static void a_kernel_runs_in_order(void **state)
{
	size_t len = LEN;
	uint8_t *a = device_memory(LEN), *b = device_memory(LEN);
	uint8_t *back = pinned(LEN);
	cudaStream_t s = new_stream();
	struct simcuda_kernel k = kernel(a, b, &len);

	(void)state;
	OK(cudaMemsetAsync(a, 5, LEN, s));
	OK(simcuda_launch(s, &k));
	OK(cudaMemsetAsync(a, 9, LEN, s));
	OK(cudaMemcpyAsync(back, b, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaStreamSynchronize(s));
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(back[i], 6);
	OK(cudaFree(a));
	OK(cudaFree(b));
	OK(cudaFreeHost(back));
	OK(cudaStreamDestroy(s));
}

/* Memory of device 0, used by a kernel on device 1. */
static cudaError_t foreign(void)
{
	size_t len = LEN;
	uint8_t *a = device_memory(LEN), *b;
	struct simcuda_kernel k;

	OK(cudaSetDevice(1));
	b = device_memory(LEN);
	k = kernel(a, b, &len);
	OK(simcuda_launch(NULL, &k));
	return cudaDeviceSynchronize();
}

static void foreign_denied(void)
{
	assert_int_equal(foreign(), cudaErrorIllegalAddress);
}

static void foreign_enabled(void)
{
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	OK(cudaSetDevice(0));
	OK(foreign());
}

static void a_kernel_needs_peer_access(void **state)
{
	(void)state;
	run_machine("foreign_denied", NULL, 0);
	run_machine("foreign_enabled", NULL, 0);
}

static void overrun(void)
{
	size_t len = LEN + 4;
	uint8_t *a = device_memory(LEN + 8), *b = device_memory(LEN);
	struct simcuda_kernel k = kernel(a, b, &len);

	OK(simcuda_launch(NULL, &k));
	FAILS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

static void a_kernel_may_not_leave_its_memory(void **state)
{
	(void)state;
	run_machine("overrun", NULL, 0);
}

/* ---- faults ---- */

static void third_malloc(void)
{
	void *p = device_memory(1), *q = device_memory(1), *r;

	FAILS(cudaMalloc(&r, 1), cudaErrorMemoryAllocation);
	OK(cudaMalloc(&r, 1));
	OK(cudaFree(p));
	OK(cudaFree(q));
	OK(cudaFree(r));
}

static void a_call_fails_on_demand(void **state)
{
	(void)state;
	run_machine("third_malloc", "SIMCUDA_FAULT=cudaMalloc:3=2", 0);
}

static void broken_work(void)
{
	cudaStream_t s = new_stream();
	cudaEvent_t e = new_event();
	uint8_t *a = device_memory(LEN);
	cudaError_t err;
	void *p;

	OK(cudaMemsetAsync(a, 0, LEN, s));
	/* The work may have failed by now, or not. */
	err = cudaEventRecord(e, s);
	if (!err)
		err = cudaEventSynchronize(e);
	assert_int_equal(err, cudaErrorLaunchFailure);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
	assert_int_equal(cudaMalloc(&p, 1), cudaErrorLaunchFailure);
	assert_int_equal(cudaEventQuery(e), cudaErrorLaunchFailure);
	OK(cudaSetDevice(1));
	(void)cudaGetLastError();
	OK(cudaMalloc(&p, 1));
	OK(cudaFree(p));
}

static void a_broken_context_stays_broken(void **state)
{
	(void)state;
	run_machine("broken_work", "SIMCUDA_FAULT=work:1=719", 0);
}

static void broken_elsewhere(void)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	void *p;

	OK(cudaMalloc(&p, 1));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&p, 1));
	FAILS(cudaMalloc(&p, 1), cudaErrorIllegalAddress);
	FAILS(cudaMalloc(&p, 1), cudaErrorIllegalAddress);
	OK(cudaSetDevice(0));
	(void)cudaGetLastError();
	OK(cudaMalloc(&p, 1));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	OK(cudaSetDevice(1));
	FAILS(cudaThreadExchangeStreamCaptureMode(&mode),
	      cudaErrorIllegalAddress);
	OK(cudaSetDevice(0));
}

/* The device that the call names, whichever is current. */
static void retained_elsewhere(void)
{
	CUcontext ctx;

	CU(cuDevicePrimaryCtxRetain, &ctx, 0);
	CUFAILS(cuDevicePrimaryCtxRetain, CUDA_ERROR_OUT_OF_MEMORY, &ctx, 1);
	CU(cuDevicePrimaryCtxRetain, &ctx, 2);
}

static void a_fault_may_be_one_devices_own(void **state)
{
	(void)state;
	run_machine("broken_elsewhere", "SIMCUDA_FAULT=cudaMalloc@1:2=700", 0);
	run_machine("retained_elsewhere",
		    "SIMCUDA_FAULT=cuDevicePrimaryCtxRetain@1=2", 0);
}

static void lost(void)
{
	void *p = device_memory(1);

	FAILS(cudaFree(p), cudaErrorUnknown);
	OK(cudaSetDevice(1));
	FAILS(cudaMalloc(&p, 1), cudaErrorUnknown);
}

static void a_lost_device_stays_lost(void **state)
{
	(void)state;
	run_machine("lost", "SIMCUDA_FAULT=cudaFree:1=lost", 0);
}

/* ---- machines ---- */

static void no_driver(void)
{
	int n = -1;

	FAILS(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
	assert_int_equal(n, 0);
	OK(cudaDriverGetVersion(&n));
	assert_int_equal(n, 0);
}

static void old_driver(void)
{
	int n = -1, runtime;

	FAILS(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
	OK(cudaDriverGetVersion(&n));
	OK(cudaRuntimeGetVersion(&runtime));
	assert_true(n > 0 && n < runtime);
}

static void no_device(void)
{
	int n;

	FAILS(cudaGetDeviceCount(&n), cudaErrorNoDevice);
}

static void no_vmm(void)
{
	CUdeviceptr va;

	CUFAILS(cuMemAddressReserve, CUDA_ERROR_NOT_SUPPORTED, &va, 2 << 20, 0,
		0, 0);
}

static void small_memory(void)
{
	void *p;

	assert_int_equal(setenv("SIMCUDA_CONTEXT_MEM", "0", 1), 0);
	FAILS(cudaMalloc(&p, 5 << 20), cudaErrorMemoryAllocation);
	OK(cudaMalloc(&p, 4 << 20));
	FAILS(cudaMalloc(&p, 1), cudaErrorMemoryAllocation);
}

static void contexts(void)
{
	struct timespec begun, made;
	size_t left, total;
	CUcontext ctx;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	OK(cudaMemGetInfo(&left, &total));
	clock_gettime(CLOCK_MONOTONIC, &made);
	assert_true((made.tv_sec - begun.tv_sec) * 1000 +
			    (made.tv_nsec - begun.tv_nsec) / 1000000 >=
		    200);
	assert_int_equal(total - left, 300 << 20);
	/* There is one in a process, whoever asks for it. */
	CU(cuDevicePrimaryCtxRetain, &ctx, 0);
	OK(cudaMemGetInfo(&left, &total));
	assert_int_equal(total - left, 300 << 20);
}

static void no_context(void)
{
	size_t left, total;
	CUcontext ctx;
	int n;

	OK(cudaGetDeviceCount(&n));
	FAILS(cudaMemGetInfo(&left, &total), cudaErrorMemoryAllocation);
	CUFAILS(cuDevicePrimaryCtxRetain, CUDA_ERROR_OUT_OF_MEMORY, &ctx, 0);
}

static void context_elsewhere(void)
{
	static const _Atomic uint32_t first = 1;
	CUcontext ctx;

	simcuda_may_use(&first);
	CU(cuDevicePrimaryCtxRetain, &ctx, 0);
	CU(cuDevicePrimaryCtxRetain, &ctx, 1);
}

static void destroyed_stream(void)
{
	cudaStream_t s = new_stream();

	OK(cudaStreamDestroy(s));
	(void)cudaStreamQuery(s);
}

static void mig(void)
{
	char name[64];
	int n;

	OK(cudaGetDeviceCount(&n));
	assert_int_equal(n, 1);
	CU(cuDeviceGetName, name, sizeof(name), 0);
	assert_non_null(strstr(name, " MIG "));
}

static void a_machine_is_made_by_its_environment(void **state)
{
	(void)state;
	run_machine("no_driver", "SIMCUDA_DRIVER=none", 0);
	run_machine("old_driver", "SIMCUDA_DRIVER=old", 0);
	run_machine("no_device", "SIMCUDA_DEVICES=0", 0);
	run_machine("no_device", "CUDA_VISIBLE_DEVICES=", 0);
	run_machine("no_device", "CUDA_VISIBLE_DEVICES=7,0", 0);
	run_machine("no_vmm", "SIMCUDA_NO_VMM=1", 0);
	run_machine("small_memory", "SIMCUDA_MEM=4194304", 0);
	run_machine("contexts", "SIMCUDA_CONTEXT_MS=200", 0);
	run_machine("no_context", "SIMCUDA_CONTEXT_MEM=4294967297", 0);
	run_machine("context_elsewhere", NULL, -SIGABRT);
	run_machine("destroyed_stream", "SIMCUDA_MODE=late", -SIGABRT);
	run_machine("mig", "SIMCUDA_MIG=0", 0);
	run_machine("mig", "SIMCUDA_MIG=2", 0);
	run_machine("mig", "SIMCUDA_MIG=all", 0);
}

static void everything_given_back_is_counted_so(void **state)
{
	struct simcuda_live before, now;
	void *p, *q;

	(void)state;
	simcuda_live(&before);
	p = device_memory(LEN);
	q = pinned(LEN);
	simcuda_live(&now);
	assert_int_equal(now.allocations, before.allocations + 1);
	assert_int_equal(now.pinned, before.pinned + 1);
	assert_true(now.contexts & 1);
	OK(cudaFree(p));
	OK(cudaFreeHost(q));
	simcuda_live(&now);
	assert_memory_equal(&now.allocations, &before.allocations,
			    sizeof(unsigned) * 8);
	assert_int_equal(now.bytes, before.bytes);
}

/* ---- */

static void (*role(const char *name))(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} roles[] = {
#define ROLE(name) { #name, name }
		ROLE(late_source),        ROLE(reversed),
		ROLE(unregister_early),   ROLE(foreign_denied),
		ROLE(foreign_enabled),    ROLE(overrun),
		ROLE(third_malloc),       ROLE(broken_work),
		ROLE(broken_elsewhere),   ROLE(lost),
		ROLE(no_driver),          ROLE(old_driver),
		ROLE(no_device),          ROLE(no_vmm),
		ROLE(small_memory),       ROLE(mig),
		ROLE(contexts),           ROLE(no_context),
		ROLE(destroyed_stream),   ROLE(context_elsewhere),
		ROLE(retained_elsewhere),
	};

	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (strcmp(roles[i].name, name) == 0)
			return roles[i].run;
	return NULL;
}

static void play(void **state)
{
	role (*state)();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_work_reads_its_source_when_it_runs),
		cmocka_unit_test(reversed_streams_run_the_newest_first),
		cmocka_unit_test(host_memory_given_back_too_early_is_reported),
		cmocka_unit_test(a_kernel_runs_in_order),
		cmocka_unit_test(a_kernel_needs_peer_access),
		cmocka_unit_test(a_kernel_may_not_leave_its_memory),
		cmocka_unit_test(a_call_fails_on_demand),
		cmocka_unit_test(a_broken_context_stays_broken),
		cmocka_unit_test(a_fault_may_be_one_devices_own),
		cmocka_unit_test(a_lost_device_stays_lost),
		cmocka_unit_test(a_machine_is_made_by_its_environment),
		cmocka_unit_test(everything_given_back_is_counted_so),
	};
	int start;

	if (argc > 1 && role(argv[1]))
		return conformance_role(play, argv[1]);
	start = conformance_start();
	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
#else
int main(void)
{
	printf("skipped: built for a real CUDA runtime\n");
	return 77;
}
#endif
