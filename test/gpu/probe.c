/* SPDX-License-Identifier: MIT */
/*
 * probe.c - asks a driver what its documents leave open: one line for each
 * question, as it is answered here.
 *
 *   probe          all questions, each in a process of its own
 *   probe NAME     one of them, in this process
 *
 * It asserts nothing: an answer is an error's name, a number, or the signal
 * that ended the process.  Exits with 77 where there is no GPU.
 */
#include "test/gpu/probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 30 /* for a question */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- page-locked memory ---- */

static char *shared_memory(size_t bytes, int prot)
{
	int fd = memfd_create("probe", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes))
		exit(3);
	p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		exit(3);
	return p;
}

static void a_copy_over_two_registrations(void)
{
	char *p = shared_memory(2 * BYTES, PROT_READ | PROT_WRITE);
	cudaStream_t s;
	void *d;
	cudaError_t e;

	must(cudaMalloc(&d, 2 * BYTES));
	must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	must(CU(cuMemHostRegister)(p, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
	must(CU(cuMemHostRegister)(p + BYTES, BYTES,
				   CU_MEMHOSTREGISTER_PORTABLE));
	e = cudaMemcpyAsync(d, p, 2 * BYTES, cudaMemcpyHostToDevice, s);
	printf("the call says %s, ", name_of(e));
	printf("the stream %s", name_of(cudaStreamSynchronize(s)));
}

static void read_only_memory_registered(void)
{
	char *p = shared_memory(BYTES, PROT_READ);
	CUresult plain, ro;

	must(cudaFree(NULL));
	plain = CU(cuMemHostRegister)(p, BYTES, CU_MEMHOSTREGISTER_PORTABLE);
	if (plain == CUDA_SUCCESS)
		must(CU(cuMemHostUnregister)(p));
	ro = CU(cuMemHostRegister)(p, BYTES, cudaHostRegisterReadOnly);
	printf("plainly: %s, as read-only: %s", name_of((cudaError_t)plain),
	       name_of((cudaError_t)ro));
}

static void seconds_to_page_lock(void)
{
	size_t bytes = (size_t)1 << 30;
	char *p = shared_memory(bytes, PROT_READ | PROT_WRITE);
	double t;
	CUresult r;

	must(cudaFree(NULL));
	t = now();
	r = CU(cuMemHostRegister)(p, bytes, CU_MEMHOSTREGISTER_PORTABLE);
	printf("%s, %.3f s for 1 GiB", name_of((cudaError_t)r), now() - t);
	t = now();
	if (r == CUDA_SUCCESS)
		must(CU(cuMemHostUnregister)(p));
	printf(", %.3f s to undo it", now() - t);
}

/* ---- captures and streams ---- */

static void query_in_own_capture(enum cudaStreamCaptureMode mode)
{
	cudaStream_t s, other;
	cudaGraph_t graph = NULL;
	cudaEvent_t v;
	cudaError_t e;

	must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	must(cudaEventCreateWithFlags(&v, cudaEventDisableTiming));
	must(cudaEventRecord(v, other));
	must(cudaStreamSynchronize(other));
	must(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	must(cudaThreadExchangeStreamCaptureMode(&mode));
	e = cudaEventQuery(v);
	printf("the query says %s, ", name_of(e));
	e = cudaEventRecord(v, other);
	printf("recording %s, ", name_of(e));
	must(cudaThreadExchangeStreamCaptureMode(&mode));
	e = cudaStreamEndCapture(s, &graph);
	printf("the capture's end %s", name_of(e));
}

static void query_within_thread_local(void)
{
	query_in_own_capture(cudaStreamCaptureModeThreadLocal);
}

static void query_within_relaxed(void)
{
	query_in_own_capture(cudaStreamCaptureModeRelaxed);
}

static void an_event_in_a_capture(void)
{
	cudaStream_t s;
	cudaGraph_t graph = NULL;
	cudaEvent_t v;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

	must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	must(cudaEventCreateWithFlags(&v, cudaEventDisableTiming));
	must(cudaThreadExchangeStreamCaptureMode(&mode));
	must(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	printf("recording says %s, ", name_of(cudaEventRecord(v, s)));
	printf("a query %s, ", name_of(cudaEventQuery(v)));
	printf("the capture's end %s, ",
	       name_of(cudaStreamEndCapture(s, &graph)));
	printf("a query after it %s, ", name_of(cudaEventQuery(v)));
	must(cudaEventRecord(v, s));
	must(cudaStreamSynchronize(s));
	printf("after a new record %s", name_of(cudaEventQuery(v)));
}

static void a_destroyed_stream(void)
{
	enum cudaStreamCaptureStatus st = cudaStreamCaptureStatusNone;
	cudaStream_t s;
	cudaEvent_t v;

	must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	must(cudaEventCreateWithFlags(&v, cudaEventDisableTiming));
	must(cudaStreamDestroy(s));
	printf("is it captured: %s, ", name_of(cudaStreamIsCapturing(s, &st)));
	fflush(stdout);
	printf("recording %s, ", name_of(cudaEventRecord(v, s)));
	fflush(stdout);
	printf("a query %s, ", name_of(cudaStreamQuery(s)));
	fflush(stdout);
	printf("the device %s", name_of(cudaDeviceSynchronize()));
}

static void a_forked_child(void)
{
	int n = 0, status;
	void *p;
	pid_t pid;

	must(cudaFree(NULL));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		printf("counting devices: %s, ",
		       name_of(cudaGetDeviceCount(&n)));
		fflush(stdout);
		printf("cudaMalloc: %s", name_of(cudaMalloc(&p, 4096)));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("signal %d", WTERMSIG(status));
}

static void attributes(void)
{
	static const struct {
		const char *name;
		int number;
	} all[] = { { "VMM", 102 },
		    { "descriptors", 103 },
		    { "asyncEngineCount", cudaDevAttrAsyncEngineCount },
		    { "HostRegisterSupported",
		      cudaDevAttrHostRegisterSupported },
		    { "HostRegisterReadOnlySupported", 113 },
		    { "pageableMemoryAccessUsesHostPageTables", 100 },
		    { "multiprocessors", cudaDevAttrMultiProcessorCount },
		    { "integrated", cudaDevAttrIntegrated } };
	CUresult r;
	int v;

	must(cudaFree(NULL));
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		r = CU(cuDeviceGetAttribute)(
			&v, (CUdevice_attribute)all[i].number, 0);
		printf("%s%s ", i ? ", " : "", all[i].name);
		if (r == CUDA_SUCCESS)
			printf("%d", v);
		else
			printf("%s", name_of((cudaError_t)r));
	}
}

/* ---- asking ---- */

static const struct {
	const char *name;
	void (*ask)(void);
} questions[] = {
	{ "attributes", attributes },
	{ "write to a read-only import", probe_write_to_read_only },
	{ "VMM after its maker was killed", probe_vmm_after_a_kill },
	{ "legacy memory after its maker was killed",
	  probe_legacy_after_a_kill },
	{ "opening one's own memory", probe_own_memory_opened },
	{ "a copy over two registrations", a_copy_over_two_registrations },
	{ "registering read-only memory", read_only_memory_registered },
	{ "page-locking", seconds_to_page_lock },
	{ "own capture, ThreadLocal", query_within_thread_local },
	{ "own capture, Relaxed", query_within_relaxed },
	{ "an event in a capture", an_event_in_a_capture },
	{ "a destroyed stream", a_destroyed_stream },
	{ "a forked child", a_forked_child },
};
#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* In a process that has its own runtime: after a crash another is as new. */
static void put(const char *name)
{
	int status = 0;
	pid_t pid;

	printf("%s: ", name);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "probe", name, (char *)NULL);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("%s",
		       WTERMSIG(status) == SIGALRM ? "no answer in time" : "");
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM)
		printf("ended by signal %d", WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		printf("ended with %d", WEXITSTATUS(status));
	putchar('\n');
	fflush(stdout);
}

static int answer(const char *name)
{
	for (unsigned i = 0; i < QUESTIONS; i++) {
		if (strcmp(name, questions[i].name) != 0)
			continue;
		alarm(SECONDS);
		questions[i].ask();
		fflush(stdout);
		_exit(0); /* a process's end is not what was asked for */
	}
	fprintf(stderr, "probe: there is no question '%s'\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	cudaError_t e;
	pid_t pid;
	int n = 0, status;

	alarm(argc == 3 ? SECONDS : 0);
	if (argc == 3 && !strcmp(argv[1], "--vmm"))
		probe_serve_vmm(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "--legacy"))
		probe_serve_legacy(atoi(argv[2]));
	if (argc == 2)
		return answer(argv[1]);
	/* A process that forks has not used CUDA. */
	pid = fork();
	if (pid == 0) {
		e = cudaGetDeviceCount(&n);
		if (e != cudaSuccess || !n)
			printf("no GPU here: %s\n", name_of(e));
		fflush(stdout);
		_exit(e == cudaSuccess && n ? 0 : 77);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	if (WEXITSTATUS(status))
		return WEXITSTATUS(status);
	for (unsigned i = 0; i < QUESTIONS; i++)
		put(questions[i].name);
	return 0;
}
