/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_nccl.c - NCCL: broadcasts among GPUs, and the errors of one that is
 * missing, fails, or is given GPUs that it can't take.  On the simulation
 * alone: test/gpu has the real one.
 */
#include <fcntl.h>
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
		err = tsi_nccl_close(c, LIMIT);
	return err;
}

static void child_do(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	gpu_refusal_say(do_nccl());
}

static void nccl_that_is_missing_is_said(void **state)
{
	(void)state;
	gpu_refusal_expect("TSOCK_NCCL=/nowhere/libnccl.so", "nccl",
			   "-15 no NCCL: ", "TSOCK_NCCL");
	gpu_refusal_expect("TSOCK_NCCL=libm.so.6", "nccl",
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
	gpu_refusal_expect("SIMCUDA_MIG=1", "nccl",
			   "-15 GPU 0 is a MIG instance", "");
	gpu_refusal_expect("SIMCUDA_FAULT=ncclCommInitAll=2", "nccl",
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
	gpu_child_need_gpus(n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(tsi_gpu_alloc(devices[i], bytes, &buf[i]), 0);
		assert_int_equal(tsi_gpu_stream_create(devices[i], &s[i]), 0);
	}
	assert_int_equal(tsi_nccl_open(devices, n, LIMIT, &c), 0);
	for (unsigned root = 0; root < n; root++) {
		gpu_child_pattern(want, bytes, root);
		assert_int_equal(tsi_gpu_upload(devices[root], s[root],
						buf[root], want, bytes),
				 0);
		assert_int_equal(tsi_nccl_add(c, buf, bytes), 0);
		assert_int_equal(tsi_nccl_broadcast(c, root, s, LIMIT), 0);
		for (unsigned i = 0; i < n; i++) {
			gpu_child_fetch(devices[i], s[i], got, buf[i], bytes);
			assert_memory_equal(want, got, bytes);
		}
		assert_int_equal(tsi_nccl_healthy(c), 0);
	}
	assert_int_equal(tsi_nccl_broadcast(c, n, s, LIMIT), TSOCK_EARG);
	assert_int_equal(tsi_nccl_add(c, buf, 0), 0);
	assert_int_equal(tsi_nccl_broadcast(c, 0, s, LIMIT), 0);
	assert_int_equal(tsi_nccl_close(c, LIMIT), 0);
	assert_int_equal(tsi_nccl_close(NULL, LIMIT), 0);
	for (unsigned i = 0; i < n; i++) {
		tsi_gpu_free(devices[i], buf[i]);
		tsi_gpu_stream_destroy(devices[i], s[i]);
	}
	free(want);
	free(got);
}

/* ---- what never returns ---- */

enum { RANKS = 3, BYTES = 4096 };

struct bench {
	unsigned device[RANKS];
	tsi_gpu_stream stream[RANKS];
	struct tsi_gpu_event *event[RANKS];
	void *buf[RANKS];
	struct tsi_nccl *c;
};

static void set_up(struct bench *b, const char *faults)
{
	need_nccl();
	assert_int_equal(tsi_gpu_count(&gpu_child_gpus), 0);
	gpu_child_need_gpus(RANKS);
	for (unsigned i = 0; i < RANKS; i++) {
		b->device[i] = i;
		assert_int_equal(tsi_gpu_alloc(i, BYTES, &b->buf[i]), 0);
		assert_int_equal(tsi_gpu_stream_create(i, &b->stream[i]), 0);
		assert_int_equal(tsi_gpu_event_create(i, true, &b->event[i]),
				 0);
	}
	assert_int_equal(tsi_nccl_open(b->device, RANKS, LIMIT, &b->c), 0);
	assert_int_equal(tsi_nccl_add(b->c, b->buf, BYTES), 0);
	simcuda_set_faults(faults);
}

static void tear_down(struct bench *b)
{
	simcuda_set_faults("");
	for (unsigned i = 0; i < RANKS; i++) {
		tsi_gpu_event_destroy(b->event[i]);
		tsi_gpu_stream_destroy(i, b->stream[i]);
		tsi_gpu_free(i, b->buf[i]);
	}
}

static void a_broadcast_that_hangs_ends_when_it_is_aborted(void **state)
{
	bool queues = true;
	struct bench b;

	(void)state;
	set_up(&b, "ncclGroup=1");
	assert_int_equal(tsi_nccl_broadcast(b.c, 0, b.stream, 1000000),
			 TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "ncclGroupEnd has not"));
	assert_int_equal(tsi_nccl_abort(b.c, LIMIT, &queues), 0);
	assert_false(queues);
	tear_down(&b);
}

/* A call that hangs writes a byte there when it begins; where to read that. */
static int hears_of_hanging(void)
{
	char number[16];
	int tell[2];

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", tell[1]);
	setenv("SIMCUDA_TELL", number, 1);
	return tell[0];
}

static void child_leave(int argc, char **argv)
{
	bool queues = true;
	struct bench b;
	int hangs;
	char byte;

	(void)argc;
	(void)argv;
	set_up(&b, "ncclCommAbort=hang");
	gpu_refusal_say(tsi_nccl_abort(b.c, 1000000, &queues));
	printf(" %d\n", queues);
	tear_down(&b);
	set_up(&b, "ncclCommDestroy=hang");
	gpu_refusal_say(tsi_nccl_close(b.c, 1000000));
	puts("");
	tear_down(&b);
	hangs = hears_of_hanging();
	set_up(&b, "ncclGroupEnd=hang");
	gpu_refusal_say(tsi_nccl_broadcast(b.c, 0, b.stream, 1000000));
	/* Not before that: a thread that isn't in the call yet skips it. */
	assert_int_equal(read(hangs, &byte, 1), 1);
	/* The abort itself returns, on a busy machine, too. */
	gpu_refusal_say(tsi_nccl_abort(b.c, INT64_C(3000000000), &queues));
	printf(" %d\n", queues);
	tear_down(&b);
	fflush(stdout);
	/* The threads that are left are in CUDA. */
	_exit(0);
}

static void what_never_returns_is_left_behind(void **state)
{
	char *argv[] = { (char *)"leave", NULL };
	const char *envs[] = { NULL };
	char out[900];

	(void)state;
	need_nccl();
	assert_int_equal(gpu_child_run(argv, envs, out, sizeof(out)), 0);
	assert_string_equal(
		out, "-7 ncclCommAbort has not returned within 0.0 s 0\n"
		     "-7 ncclCommDestroy has not returned within 0.0 s\n"
		     "-7 ncclGroupEnd has not returned within 0.0 s0  1\n");
}

/* Its rank is aborted, too: the others' work ends with the last one. */
static int lose_a_device(void)
{
	struct bench b;
	bool queues;
	int err;

	set_up(&b, "ncclKernel@0:1=1");
	assert_int_equal(tsi_nccl_broadcast(b.c, 0, b.stream, LIMIT), 0);
	simcuda_set_faults("cudaEventRecord@1=lost");
	assert_int_equal(tsi_gpu_event_record(b.event[1], b.stream[1]),
			 TSOCK_ESTREAM);
	assert_int_equal(tsi_gpu_event_record(b.event[0], b.stream[0]), 0);
	assert_int_equal(tsi_nccl_abort(b.c, LIMIT, &queues), 0);
	err = tsi_gpu_event_wait(b.event[0]);
	tear_down(&b);
	return err;
}

static void child_lose(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	alarm(60);
	gpu_refusal_say(lose_a_device());
}

static void a_lost_device_s_communicator_is_aborted(void **state)
{
	char *argv[] = { (char *)"lose", NULL };
	const char *envs[] = { NULL };
	char out[900];

	(void)state;
	need_nccl();
	assert_int_equal(gpu_child_run(argv, envs, out, sizeof(out)), 0);
	assert_string_equal(out, "0 ");
}

int main(int argc, char **argv)
{
	static const struct child children[] = { { "do", child_do },
						 { "leave", child_leave },
						 { "lose", child_lose },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nccl_that_is_missing_is_said),
		cmocka_unit_test(nccl_takes_each_gpu_once_and_no_mig),
		cmocka_unit_test(nccl_gives_every_gpu_the_root_s_bytes),
		cmocka_unit_test(
			a_broadcast_that_hangs_ends_when_it_is_aborted),
		cmocka_unit_test(what_never_returns_is_left_behind),
		cmocka_unit_test(a_lost_device_s_communicator_is_aborted),
	};

	gpu_child_main(argc, argv, children);
	if (gpu_refusal_lacks_simulation())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
