/* SPDX-License-Identifier: MIT */
/*
 * conformance_nccl_sim.c - the simulated NCCL: broadcasts, ranks that wait for
 * others, and what it refuses.
 */
#include "conformance.h"

#include <dlfcn.h>

#define LEN 200000

static void *nccl(const char *name)
{
	static void *so;
	char path[600];
	ssize_t n;
	void *fn;

	n = readlink("/proc/self/exe", path, 500);
	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/libnccl_sim.so");
	if (!so)
		so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		fail_msg("%s", dlerror());
	fn = dlsym(so, name);
	assert_non_null(fn);
	return fn;
}

/* Never linked: what the functions that nccl() finds look like. */
int ncclGetVersion(int *version);
int ncclCommInitAll(void **comms, int ndev, const int *devlist);
int ncclCommDestroy(void *comm);
int ncclCommAbort(void *comm);
int ncclCommGetAsyncError(void *comm, int *error);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclBroadcast(const void *send, void *recv, size_t count, int datatype,
		  int root, void *comm, cudaStream_t stream);

#define NCCL(name, ...) ((__typeof__(&name))nccl(#name))(__VA_ARGS__)

struct ranks {
	void *comm[4];
	cudaStream_t stream[4];
	uint8_t *buf[4];
};

static void init_ranks(struct ranks *r)
{
	const int list[4] = { 0, 1, 2, 3 }, twice[2] = { 1, 1 };

	assert_int_equal(NCCL(ncclCommInitAll, r->comm, 2, twice), 5);
	assert_int_equal(NCCL(ncclCommInitAll, r->comm, 4, list), 0);
	for (int i = 0; i < 4; i++) {
		OK(cudaSetDevice(i));
		r->stream[i] = new_stream();
		r->buf[i] = device_memory(LEN);
	}
}

static void fini_ranks(struct ranks *r)
{
	for (int i = 0; i < 4; i++) {
		OK(cudaSetDevice(i));
		OK(cudaFree(r->buf[i]));
		OK(cudaStreamDestroy(r->stream[i]));
		assert_int_equal(NCCL(ncclCommDestroy, r->comm[i]), 0);
	}
	OK(cudaSetDevice(0));
}

static void every_rank_gets_what_the_root_sends(void **state)
{
	struct ranks r;
	int version, error = -1;

	(void)state;
	need_devices(4);
	assert_int_equal(NCCL(ncclGetVersion, &version), 0);
	init_ranks(&r);
	for (unsigned n = 0; n < 8; n++) {
		int root = (int)n % 4;
		uint8_t *host = pinned(LEN);

		fill(host, LEN, n);
		OK(cudaMemcpyAsync(r.buf[root], host, LEN,
				   cudaMemcpyHostToDevice, r.stream[root]));
		assert_int_equal(NCCL(ncclGroupStart), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(NCCL(ncclBroadcast, r.buf[i], r.buf[i],
					      (size_t)LEN, 1, root, r.comm[i],
					      r.stream[i]),
					 0);
		assert_int_equal(NCCL(ncclGroupEnd), 0);
		/* The root's buffer is the root's again after its part. */
		OK(cudaStreamSynchronize(r.stream[root]));
		for (int i = 0; i < 4; i++) {
			OK(cudaStreamSynchronize(r.stream[i]));
			verify_device(r.buf[i], LEN, n);
		}
		OK(cudaFreeHost(host));
	}
	assert_int_equal(NCCL(ncclCommGetAsyncError, r.comm[0], &error), 0);
	assert_int_equal(error, 0);
	fini_ranks(&r);
}

static void a_rank_alone_waits_until_all_are_aborted(void **state)
{
	struct ranks r;

	(void)state;
	need_devices(4);
	init_ranks(&r);
	assert_int_equal(NCCL(ncclBroadcast, r.buf[1], r.buf[1], (size_t)LEN, 1,
			      0, r.comm[1], r.stream[1]),
			 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(cudaStreamQuery(r.stream[1]),
				 cudaErrorNotReady);
		usleep(200);
	}
	(void)cudaGetLastError();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(cudaStreamQuery(r.stream[1]),
				 cudaErrorNotReady);
		(void)cudaGetLastError();
		assert_int_equal(NCCL(ncclCommAbort, r.comm[i]), 0);
		r.comm[i] = NULL;
	}
	OK(cudaSetDevice(1));
	OK(cudaStreamSynchronize(r.stream[1]));
	fini_ranks(&r);
}

static void nccl_mig(void)
{
	void *comm[2];

	assert_int_equal(NCCL(ncclCommInitAll, comm, 2, NULL), 5);
}

static void nccl_refuses_mig(void **state)
{
	(void)state;
	run_machine("nccl_mig", "SIMCUDA_MIG=1", 0);
}

static void play(void **state)
{
	(void)state;
	nccl_mig();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_gets_what_the_root_sends),
		cmocka_unit_test(a_rank_alone_waits_until_all_are_aborted),
		cmocka_unit_test(nccl_refuses_mig),
	};
	int start;

	if (argc > 1 && strcmp(argv[1], "nccl_mig") == 0)
		return conformance_role(play, argv[1]);
	start = conformance_start();
	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
