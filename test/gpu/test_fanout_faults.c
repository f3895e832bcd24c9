/* SPDX-License-Identifier: MIT */
/*
 * test_fanout_faults.c - one stream on several GPUs, some of which fail: their
 * own readers are told, and nobody else notices.
 *
 * Runs on the simulation alone.
 */
#include <poll.h>

#include "test/lib/fanout_producer.h"

#ifdef SIMCUDA

/* 7 if its GPU failed and it was told so, 0 if it saw the end. */
static pid_t start_witness(const struct reader_proc *r)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		struct gpu_reader s;
		tsock_batch *b;
		char gpu[32];
		int err = 0;

		gpu_reader_open(&s, r);
		for (unsigned e = 0; e < r->epochs && !err; e++) {
			need(tsock_begin(s.t) == 0);
			for (unsigned i = 0; !err; i++) {
				err = tsock_next(s.t, 60000, &b);
				if (!err)
					gpu_reader_check(&s, b, i);
			}
			if (err == TSOCK_EEPOCH)
				err = 0;
		}
		gpu_reader_settle(&s);
		snprintf(gpu, sizeof(gpu), "on GPU %d: ", r->device);
		if (err && !strstr(tsock_errmsg(), gpu))
			die("%d: %s", err, tsock_errmsg());
		tsock_close(s.t);
		_exit(err ? 7 : 0);
	}
	return pid;
}

/* A GPU's next reader gets a ring all the same, if it is to have one. */
static void come_again(const struct reader_proc *r)
{
	assert_int_equal(proc_ended(start_witness(r)), 0);
}

/* All samples are copied to GPU 0, and from there to the others; a fourth reader
 * is on the host.  Returns a bit for each reader that got an error; again has
 * the bits of those that join once more. */
static unsigned who_fails_of(uint32_t fanout, const char *fault, unsigned again)
{
	struct way w = { .fanout = fanout, .fault = fault };
	struct source src = model;
	struct reader_proc r[4] = { { 0 } };
	pid_t producer, pid[4];
	unsigned failed = 0;

	src.min_consumers = 4;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 4; i++) {
		r[i].src = &src;
		r[i].transport = i == 3 ? HOST : SHARED;
		r[i].device = (int)i;
		r[i].batch = 16;
		r[i].epochs = 3;
		pid[i] = start_witness(&r[i]);
		if (i == 0)
			stream_wait_readers("fan", 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		int rc = proc_ended(pid[i]);

		assert_true(rc == 0 || rc == 7);
		failed |= (rc == 7) << i;
	}
	for (unsigned i = 0; i < 4; i++)
		if (again >> i & 1)
			come_again(&r[i]);
	proc_kill_and_reap(producer);
	return failed;
}

static unsigned who_fails(uint32_t fanout, const char *fault)
{
	return who_fails_of(fanout, fault, 0);
}

static void a_gpu_that_fails_takes_nobody_along(void **state)
{
	unsigned who;

	(void)state;
	who = who_fails(TSOCK_FANOUT_PEER, "cudaMemcpyPeerAsync:60=700");
	assert_true(who == 2 || who == 4);
	who = who_fails(TSOCK_FANOUT_HOST, "cudaMemcpyAsync:90=700");
	assert_true(who == 1 || who == 2 || who == 4);
	/* The second of every three calls is for the first GPU that
	 * receives. */
	who = who_fails(TSOCK_FANOUT_NCCL, "ncclBroadcast:32=700");
	assert_true(who == 2 || who == 4);
}

static void the_gpu_that_feeds_the_others_may_fail(void **state)
{
	static const char *const fault[] = { "cudaMemcpyAsync@0:30=700",
					     "cudaEventRecord@0:9=806",
					     "work@0:50=700",
					     "work@0:70=lost" };

	(void)state;
	for (uint32_t f = TSOCK_FANOUT_PEER; f <= TSOCK_FANOUT_NCCL; f++)
		for (unsigned i = 0; i < 4; i++) {
			in_mode(modes[(i + f) % 5]);
			assert_int_equal(who_fails(f, fault[i]), 1);
		}
}

/* As when the MPS server ends: the host's readers are still served. */
static void all_gpus_may_fail_and_the_host_goes_on(void **state)
{
	(void)state;
	for (uint32_t f = TSOCK_FANOUT_AUTO; f <= TSOCK_FANOUT_HOST; f++) {
		in_mode(modes[f]);
		assert_int_equal(who_fails(f, "work:150=lost"), 7);
	}
}

/* NCCL may write at any time to the rings that it has: nobody reads these,
 * and new ones are filled by copies. */
static void nccl_that_hangs_for_good_takes_its_rings_along(void **state)
{
	static const char *const fault[] = {
		"ncclGroupEnd:20=hang",
		"ncclKernel@2:5=1,ncclCommAbort=hang",
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(who_fails_of(TSOCK_FANOUT_NCCL, fault[i], 15),
				 6);
}

/* ---- one that is slow ---- */

static int reads[2]; /* a pipe: a reader has a batch */

static void await_byte(int fd, char *byte)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(read(fd, byte, 1), 1);
}

static pid_t start_reading(const struct reader_proc *r)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		struct gpu_reader s;
		tsock_batch *b;

		gpu_reader_open(&s, r);
		need(tsock_begin(s.t) == 0);
		for (unsigned i = 0; tsock_next(s.t, 60000, &b) == 0; i++) {
			gpu_reader_check(&s, b, i);
			need(i || write(reads[1], "r", 1) == 1);
		}
		gpu_reader_close(&s);
		_exit(0);
	}
	return pid;
}

/*
 * The first broadcast fails, and a copy to one of the two GPUs takes until it
 * is told: the other GPU has its samples before.
 */
static void copies_after_nccl_failed(unsigned slow)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL };
	struct source src = model;
	struct reader_proc r[3] = { { 0 } };
	pid_t producer, pid[3];
	char fault[80], fd[16], byte;
	int go[2];

	snprintf(fault, sizeof(fault),
		 "ncclBroadcast:1=1,cudaMemcpyPeerAsync@%u=told", slow);
	w.fault = fault;
	src.min_consumers = 3;
	need(pipe(go) == 0 && pipe(reads) == 0);
	snprintf(fd, sizeof(fd), "%d", go[0]);
	w.name[0] = "SIMCUDA_GO";
	w.value[0] = fd;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 3; i++) {
		r[i].src = &src;
		r[i].transport = SHARED;
		r[i].device = (int)i;
		r[i].batch = 16;
		r[i].epochs = 1;
		pid[i] = i ? start_reading(&r[i]) : start_witness(&r[i]);
		if (i < 2)
			stream_wait_readers("fan", i + 1);
	}
	await_byte(reads[0], &byte);
	need(write(go[1], "g", 1) == 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
	for (unsigned i = 0; i < 2; i++) {
		close(go[i]);
		close(reads[i]);
	}
}

static void a_gpu_that_copies_slowly_holds_up_no_other_one(void **state)
{
	(void)state;
	copies_after_nccl_failed(1);
	copies_after_nccl_failed(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_that_fails_takes_nobody_along),
		cmocka_unit_test(the_gpu_that_feeds_the_others_may_fail),
		cmocka_unit_test(all_gpus_may_fail_and_the_host_goes_on),
		cmocka_unit_test(
			nccl_that_hangs_for_good_takes_its_rings_along),
		cmocka_unit_test(
			a_gpu_that_copies_slowly_holds_up_no_other_one),
	};

	fanout_prepare();
	return cmocka_run_group_tests_name("faults in fan-out", tests, NULL,
					   NULL);
}

#else

int main(void)
{
	puts("the simulation's devices are needed: make CUDA=sim");
	return 77;
}

#endif
