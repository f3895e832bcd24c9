/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_nccl.c - NCCL: broadcasts among GPUs, and the errors of one that is
 * missing, fails, or is given GPUs that it can't take.  On the simulation
 * alone: test/gpu has the real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stage/nccl.h"
#include "test/lib/gpu_refusal.h"

#define LIMIT INT64_C(30000000000)

static int do_nccl(void)
{
	unsigned devices[] = { 0, 1, 2 };
	struct tsi_nccl *c;
	int err = tsi_nccl_open(devices, 3, LIMIT, &c);

	if (!err)
		tsi_nccl_close(c);
	return err;
}

static void child_do(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	say(do_nccl());
}

static void nccl_that_is_missing_is_said(void **state)
{
	(void)state;
	expect("TSOCK_NCCL=/nowhere/libnccl.so", "nccl",
	       "-15 no NCCL: ", "TSOCK_NCCL");
	expect("TSOCK_NCCL=libm.so.6", "nccl",
	       "-15 no NCCL: libm.so.6 has no nccl", "");
}

static void need_nccl(void)
{
	int version;

	if (!getenv("TSOCK_NCCL")) {
		print_message("TSOCK_NCCL must name the simulated NCCL\n");
		skip();
	}
	assert_int_equal(tsi_nccl_version(&version), 0);
}

static void nccl_takes_each_gpu_once_and_no_mig(void **state)
{
	unsigned twice[] = { 0, 1, 0 }, one = 0;
	struct tsi_nccl *c;

	(void)state;
	need_nccl();
	assert_int_equal(tsi_nccl_open(twice, 3, LIMIT, &c), TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "GPU 0 once"));
	assert_int_equal(tsi_nccl_open(&one, 1, LIMIT, &c), TSOCK_ENOTSUP);
	expect("SIMCUDA_MIG=1", "nccl", "-15 GPU 0 is a MIG instance", "");
	expect("SIMCUDA_FAULT=ncclCommInitAll=2", "nccl",
	       "-7 ncclCommInitAll: NCCL error 2", "");
}

static void nccl_gives_every_gpu_the_root_s_bytes(void **state)
{
	enum { n = 3, bytes = 1 << 20 };
	unsigned devices[n] = { 2, 0, 1 };
	uint8_t *want = malloc(bytes), *got = malloc(bytes);
	tsi_gpu_stream s[n];
	struct tsi_nccl *c;
	void *buf[n];

	(void)state;
	need_nccl();
	need_gpus(n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(tsi_gpu_alloc(devices[i], bytes, &buf[i]), 0);
		assert_int_equal(tsi_gpu_stream_create(devices[i], &s[i]), 0);
	}
	assert_int_equal(tsi_nccl_open(devices, n, LIMIT, &c), 0);
	for (unsigned root = 0; root < n; root++) {
		pattern(want, bytes, root);
		assert_int_equal(tsi_gpu_upload(devices[root], s[root],
						buf[root], want, bytes),
				 0);
		assert_int_equal(tsi_nccl_broadcast(c, root, buf, bytes, s), 0);
		for (unsigned i = 0; i < n; i++) {
			fetch(devices[i], s[i], got, buf[i], bytes);
			assert_memory_equal(want, got, bytes);
		}
		assert_int_equal(tsi_nccl_healthy(c), 0);
	}
	assert_int_equal(tsi_nccl_broadcast(c, n, buf, bytes, s), TSOCK_EARG);
	assert_int_equal(tsi_nccl_broadcast(c, 0, buf, 0, s), 0);
	tsi_nccl_close(c);
	tsi_nccl_close(NULL);
	for (unsigned i = 0; i < n; i++) {
		tsi_gpu_free(devices[i], buf[i]);
		tsi_gpu_stream_destroy(devices[i], s[i]);
	}
	free(want);
	free(got);
}

int main(int argc, char **argv)
{
	static const struct child children[] = { { "do", child_do },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nccl_that_is_missing_is_said),
		cmocka_unit_test(nccl_takes_each_gpu_once_and_no_mig),
		cmocka_unit_test(nccl_gives_every_gpu_the_root_s_bytes),
	};

	child_main(argc, argv, children);
	if (lacks_simulation())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
