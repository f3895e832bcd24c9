/* SPDX-License-Identifier: MIT */
/*
 * test_fanout_faults.c - one stream on several GPUs, some of which fail: their
 * own readers are told, and nobody else notices.
 *
 * Runs on the simulation alone.
 */
#include "test/lib/fanout_producer.h"

#ifdef SIMCUDA

/* 7 if its GPU failed and it was told so, 0 if it saw the end. */
static pid_t start_witness(const struct reader_proc *r)
{
	pid_t pid = spawn();

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

/* All samples go up to GPU 0, and the others have them from there; a fourth
 * reader is on the host.  Who was told of a failure, a bit for each. */
static unsigned who_fails(uint32_t fanout, const char *fault)
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
			wait_readers("fan", 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		int rc = ended(pid[i]);

		assert_true(rc == 0 || rc == 7);
		failed |= (rc == 7) << i;
	}
	kill_and_reap(producer);
	return failed;
}

static void a_gpu_that_fails_takes_nobody_along(void **state)
{
	unsigned who;

	(void)state;
	who = who_fails(TSOCK_FANOUT_PEER, "cudaMemcpyPeerAsync:60=700");
	assert_true(who == 2 || who == 4);
	who = who_fails(TSOCK_FANOUT_HOST, "cudaMemcpyAsync:90=700");
	assert_true(who == 1 || who == 2 || who == 4);
	/* Of every three calls the second is for the first that receives. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_that_fails_takes_nobody_along),
		cmocka_unit_test(the_gpu_that_feeds_the_others_may_fail),
		cmocka_unit_test(all_gpus_may_fail_and_the_host_goes_on),
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
