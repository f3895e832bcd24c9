/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_errors.c - every way in which a GPU can refuse: drivers that are
 * missing or old, calls that fail, devices that are lost.  Each gives one of
 * our errors, a sentence that names the call, and leaves CUDA's last error
 * clear.  On the simulation alone: a real GPU doesn't fail on demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "base/err.h"
#include "convert/gpu.h"
#include "test/lib/gpu_refusal.h"

/* ---- what a child does, by name; each prints "CODE MESSAGE" ---- */

static void child_count(int argc, char **argv)
{
	unsigned n = 0;
	int err = tsi_gpu_count(&n);

	(void)argc;
	(void)argv;
	if (err)
		gpu_refusal_say(err);
	else
		printf("%u GPUs", n);
}

static void print_line(void *arg, const char *line)
{
	(void)arg;
	printf("%s\n", line);
}

static void child_devices(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("%d devices: ", tsock_devices(print_line, NULL));
}

static int do_info(void)
{
	struct tsi_gpu_info info;

	return tsi_gpu_info(0, &info);
}

static int do_mem(enum tsock_transport transport)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m;
	int err = tsi_gpu_info(0, &info);

	if (err)
		return err;
	err = tsi_gpu_mem_create(
		0, transport, info.granularity ? info.granularity : 4096, &m);
	if (!err) {
		printf("transport %d: ", (int)m.transport);
		tsi_gpu_mem_close(&m);
	}
	return err;
}

static int do_vmm(void)
{
	return do_mem(TSOCK_TRANSPORT_VMM);
}

static int do_legacy(void)
{
	return do_mem(TSOCK_TRANSPORT_LEGACY);
}

static int do_auto(void)
{
	return do_mem(TSOCK_TRANSPORT_AUTO);
}

/* A process may open its own memory by descriptor. */
static int do_open(void)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m, again;
	int err = tsi_gpu_info(0, &info);

	if (!err)
		err = tsi_gpu_mem_create(0, TSOCK_TRANSPORT_VMM,
					 info.granularity * 2, &m);
	if (err)
		return err;
	err = tsi_gpu_mem_open(0, TSOCK_TRANSPORT_VMM, m.fd, NULL, m.bytes,
			       true, &again);
	if (!err)
		tsi_gpu_mem_close(&again);
	tsi_gpu_mem_close(&m);
	return err;
}

static int do_pin(void)
{
	size_t n = ((size_t)2 << 30) + 4096;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char why[400];
	int err, again;

	if (p == MAP_FAILED)
		exit(97);
	err = tsi_gpu_pin(0, p, n);
	snprintf(why, sizeof(why), "%s", tsock_errmsg());
	tsi_gpu_unpin(p);
	if (!err)
		return 0;
	/* Nothing of it is pinned now: the next try finds it free. */
	again = tsi_gpu_pin(0, p, n);
	printf("then %d: ", again);
	tsi_gpu_unpin(p);
	return tsi_err(err, "%s", why);
}

static int do_host(void)
{
	void *p;
	int err = tsi_gpu_host_alloc(0, 4096, &p);

	if (!err)
		tsi_gpu_host_free(0, p);
	return err;
}

static int do_alloc(void)
{
	void *p;
	int err = tsi_gpu_alloc(0, 4096, &p);

	if (!err)
		tsi_gpu_free(0, p);
	return err;
}

static int do_work(void)
{
	struct tsi_view_spec spec = { .dtype = TSOCK_F32 };
	struct tsi_gpu_event *e = NULL;
	tsi_gpu_stream s = NULL;
	void *a = NULL, *b = NULL;
	static char host[4096];
	const uint64_t shape[] = { 10, 10, 3 };
	char why[500];
	int err = tsi_gpu_alloc(0, 4096, &a);

	if (!err)
		err = tsi_gpu_alloc(0, 4096 * 4, &b);
	if (!err)
		err = tsi_gpu_stream_create(0, &s);
	if (!err)
		err = tsi_gpu_event_create(0, true, &e);
	if (!err)
		err = tsi_gpu_upload(0, s, a, host, sizeof(host));
	if (!err)
		err = tsi_convert_gpu(0, s, &spec, a, 1, shape, b);
	if (!err)
		err = tsi_gpu_event_record(e, s);
	while (!err && (err = tsi_gpu_event_query(e)) == TSOCK_EAGAIN)
		err = 0, usleep(100);
	if (!err)
		err = tsi_gpu_event_wait(e);
	if (!err)
		err = tsi_gpu_healthy(0);
	snprintf(why, sizeof(why), "%s", tsock_errmsg());
	tsi_gpu_event_destroy(e);
	tsi_gpu_stream_destroy(0, s);
	tsi_gpu_free(0, a);
	tsi_gpu_free(0, b);
	return err ? tsi_err(err, "%s", why) : 0;
}

static int do_lost(void)
{
	int err = do_work();

	printf("healthy %d: ", tsi_gpu_healthy(0));
	return err;
}

static int do_peer(void)
{
	printf("%d%d", tsi_gpu_peer(0, 1), tsi_gpu_peer(1, 2));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} doings[] = {
	{ "info", do_info }, { "vmm", do_vmm },     { "legacy", do_legacy },
	{ "auto", do_auto }, { "open", do_open },   { "pin", do_pin },
	{ "host", do_host }, { "alloc", do_alloc }, { "work", do_work },
	{ "lost", do_lost }, { "peer", do_peer },
};

static void child_do(int argc, char **argv)
{
	(void)argc;
	for (size_t i = 0; i < sizeof(doings) / sizeof(doings[0]); i++) {
		if (strcmp(argv[0], doings[i].name) != 0)
			continue;
		gpu_refusal_say(doings[i].run());
		return;
	}
	exit(96);
}

/* ---- drivers ---- */

static void a_missing_driver_is_said(void **state)
{
	(void)state;
	gpu_refusal_expect("SIMCUDA_DRIVER=none", "count",
			   "-15 no NVIDIA driver",
			   "(this build has CUDA 13.0)");
	gpu_refusal_expect("SIMCUDA_DRIVER=none", "devices", "no NVIDIA driver",
			   "0 devices: ");
	gpu_refusal_expect("SIMCUDA_DRIVER=none", "alloc",
			   "-15 no NVIDIA driver", "");
	gpu_refusal_expect("SIMCUDA_DRIVER=none", "pin",
			   "then -15: -15 no NVIDIA", "");
}

static void an_old_driver_is_said_with_both_versions(void **state)
{
	(void)state;
	gpu_refusal_expect(
		"SIMCUDA_DRIVER=old", "count",
		"-15 the NVIDIA driver is too old: it knows CUDA 11.4, and "
		"this build has 13.0",
		"needs driver 580 or newer");
	gpu_refusal_expect("SIMCUDA_DRIVER=old", "info",
			   "-15 the NVIDIA driver is too old",
			   "update the driver");
}

/* The driver is older than the toolkit, and of the same major version. */
static void an_older_driver_serves_if_it_knows_11_8(void **state)
{
	static const char *const what[] = { "info", "vmm", "pin", "work" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		gpu_refusal_expect("SIMCUDA_DRIVER=11080", what[i], "", "0 ");
		gpu_refusal_expect("SIMCUDA_DRIVER=12020", what[i], "", "0 ");
		gpu_refusal_expect(
			"SIMCUDA_DRIVER=11070", what[i], "",
			"-15 the NVIDIA driver, which knows CUDA 11.7, doesn't "
			"give its cuGetErrorName as of CUDA 11.8: "
			"cudaErrorInvalidValue (invalid argument); this build "
			"has CUDA 13.0: update the driver");
	}
	gpu_refusal_expect(
		"SIMCUDA_FAULT=cuGetProcAddress:9=500", "info",
		"-15 the NVIDIA driver, which knows CUDA 13.0, doesn't give "
		"its "
		"cuMemCreate as of CUDA 11.8: cudaErrorSymbolNotFound",
		"");
}

static void no_device_is_said(void **state)
{
	(void)state;
	gpu_refusal_expect(
		"SIMCUDA_DEVICES=0", "count",
		"-15 the NVIDIA driver is there but this process sees no GPU",
		"");
	gpu_refusal_expect(
		"CUDA_VISIBLE_DEVICES=", "count",
		"-15 the NVIDIA driver is there but this process sees no GPU",
		"CUDA_VISIBLE_DEVICES is \"\"");
	gpu_refusal_expect("CUDA_VISIBLE_DEVICES=2", "count", "1 GPUs", "");
	gpu_refusal_expect("SIMCUDA_FAULT=cudaGetDeviceCount=802", "count",
			   "-15 the NVIDIA driver is there but refuses",
			   "cudaErrorSystemNotReady");
}

/* ---- transports ---- */

static void the_transport_is_what_the_device_has(void **state)
{
	(void)state;
	gpu_refusal_expect("A=", "auto", "transport 1: 0 ", "");
	gpu_refusal_expect("SIMCUDA_NO_VMM=1", "auto", "transport 2: 0 ", "");
	gpu_refusal_expect("SIMCUDA_NO_FD=1", "auto", "transport 2: 0 ", "");
	gpu_refusal_expect("SIMCUDA_NO_VMM=1", "vmm",
			   "-15 GPU 0 has no memory with a", "");
	gpu_refusal_expect("SIMCUDA_FAULT=cuMemExportToShareableHandle=801",
			   "auto", "transport 2: 0 ", "");
	gpu_refusal_expect("SIMCUDA_FAULT=cuMemExportToShareableHandle=304",
			   "auto", "transport 2: 0 ", "");
	gpu_refusal_expect("SIMCUDA_NO_P2P=0-1", "peer", "010 ", "");
}

/* ---- calls that fail ---- */

static const struct {
	const char *what, *fault, *code, *text;
} faults[] = {
	{ "info", "cudaMemGetInfo=1",
	  "-7 cudaMemGetInfo on GPU 0: ", "cudaErrorInvalidValue" },
	{ "vmm", "cuMemCreate=2", "-6 cuMemCreate on GPU 0: ", "are free" },
	{ "auto", "cuMemCreate=2", "-6 cuMemCreate on GPU 0: ", "are free" },
	{ "vmm", "cuMemAddressReserve=2", "-6 cuMemAddressReserve on GPU 0",
	  "CUDA_ERROR_OUT_OF_MEMORY" },
	{ "vmm", "cuMemMap=1",
	  "-7 cuMemMap on GPU 0: ", "CUDA_ERROR_INVALID_VALUE" },
	{ "vmm", "cuMemSetAccess=1", "-7 cuMemSetAccess on GPU 0", "" },
	{ "vmm", "cuMemExportToShareableHandle=304",
	  "-7 cuMemExportToShareableHandle on GPU 0", "OPERATING_SYSTEM" },
	{ "open", "cuMemImportFromShareableHandle=304",
	  "-7 cuMemImportFromShareableHandle on GPU 0", "" },
	{ "open", "cuMemMap:3=1", "-7 cuMemMap on GPU 0", "" },
	/* The second time it is asked for read and write. */
	{ "open", "cuMemSetAccess:2=801", "0 ", "" },
	{ "legacy", "cudaMalloc=2", "-6 cudaMalloc on GPU 0: ", "are needed" },
	{ "legacy", "cudaIpcGetMemHandle=1", "-7 cudaIpcGetMemHandle on GPU",
	  "" },
	{ "host", "cudaHostAlloc=2", "-6 cudaHostAlloc: no ", "free some" },
	{ "pin", "cuMemHostRegister:1=2", "then 0: -6 page-locking 2048.0 MiB",
	  "after 0.0 MiB" },
	{ "pin", "cuMemHostRegister:3=2", "then 0: -6 page-locking 2048.0 MiB",
	  "after 2048.0 MiB" },
	{ "pin", "cuMemHostRegister:2=801", "then 0: -15 page-locking",
	  "after 1024.0 MiB" },
	{ "pin", "cuMemHostRegister=712", "then -7: -7 page-locking",
	  "ALREADY_REGISTERED" },
	{ "alloc", "cudaMalloc=2", "-6 cudaMalloc on GPU 0", "are needed" },
	{ "alloc", "cudaMalloc=46", "-7 cudaMalloc on GPU 0",
	  "cudaErrorDevicesUnavailable" },
	{ "work", "cudaStreamCreateWithFlags=2", "-6 cudaStreamCreate on", "" },
	{ "work", "cudaEventCreateWithFlags=2", "-6 cudaEventCreate on", "" },
	{ "work", "cudaMemcpyAsync=1", "-7 cudaMemcpyAsync to the device on",
	  "" },
	{ "work", "cudaEventRecord=400", "-5 cudaEventRecord on GPU 0",
	  "the stream was destroyed" },
	/* As some drivers say it; the context is well. */
	{ "work", "cudaEventRecord=709", "-5 cudaEventRecord on GPU 0",
	  "the stream was destroyed" },
	{ "work", "cudaEventRecord=709,cudaFree:1=700", "-13 cudaEventRecord",
	  "start it again" },
	{ "work", "cudaEventQuery=999", "-13 cudaEventQuery on GPU 0",
	  "start it again" },
	{ "work", "cudaEventSynchronize=1", "-7 cudaEventSynchronize", "" },
	{ "work", "cudaStreamIsCapturing=906", "-15 the stream on GPU 0", "" },
	{ "work", "cudaEventRecord=901", "-15 the stream on GPU 0", "" },
	{ "work", "cudaEventQuery=907", "-15 the stream on GPU 0", "" },
	/* The job queues work that fails when it runs. */
	{ "lost", "work:1=700", "healthy -13: -13 ",
	  "cudaErrorIllegalAddress" },
	{ "lost", "work:2=719", "healthy -13: -13 ", "cudaErrorLaunchFailure" },
	{ "lost", "cudaEventRecord=lost", "healthy -13: -13 ", "on GPU 0" },
	{ "lost", "cudaMemcpyAsync=806", "healthy -13: -13 ", "Mps" },
};

static void a_call_that_fails_is_named(void **state)
{
	char env[128];

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		snprintf(env, sizeof(env), "SIMCUDA_FAULT=%s", faults[i].fault);
		gpu_refusal_expect(env, faults[i].what, faults[i].code,
				   faults[i].text);
	}
}

static void a_context_without_room_is_named(void **state)
{
	static const char *const what[] = { "alloc", "info", "work", "vmm" };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		gpu_refusal_expect("SIMCUDA_CONTEXT_MEM=5000000000", what[i],
				   "-6 no room for a context on GPU 0",
				   "hundred MiB");
}

static void a_gpu_without_kernels_is_named(void **state)
{
	(void)state;
	gpu_refusal_expect("SIMCUDA_NO_IMAGE=all", "work",
			   "-15 GPU 0 has compute capability 9.0",
			   "for 7.5, 8.0, 9.0");
	gpu_refusal_expect("SIMCUDA_NO_IMAGE=1", "work", "0 ", "");
}

static void pinning_is_refused_where_there_is_none(void **state)
{
	(void)state;
	gpu_refusal_expect("SIMCUDA_NO_REGISTER=1", "pin",
			   "then -15: -15 this system's",
			   "page-locked afterwards");
	/* Large registrations go in chunks. */
	gpu_refusal_expect("SIMCUDA_REGISTER_MAX=1073741825", "pin", "0 ", "");
}

int main(int argc, char **argv)
{
	static const struct child children[] = { { "do", child_do },
						 { "count", child_count },
						 { "devices", child_devices },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_driver_is_said),
		cmocka_unit_test(an_old_driver_is_said_with_both_versions),
		cmocka_unit_test(an_older_driver_serves_if_it_knows_11_8),
		cmocka_unit_test(no_device_is_said),
		cmocka_unit_test(the_transport_is_what_the_device_has),
		cmocka_unit_test(a_call_that_fails_is_named),
		cmocka_unit_test(a_context_without_room_is_named),
		cmocka_unit_test(a_gpu_without_kernels_is_named),
		cmocka_unit_test(pinning_is_refused_where_there_is_none),
	};

	gpu_child_main(argc, argv, children);
	if (gpu_refusal_lacks_simulation())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
