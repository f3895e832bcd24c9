/* SPDX-License-Identifier: MIT */
/*
 * test_fanout.c - one stream on several GPUs: everybody sees every sample once,
 * whichever way it comes there, and whoever comes and goes meanwhile.
 *
 * Runs on the simulation alone.
 */
#include "test/lib/fanout_producer.h"

#ifdef SIMCUDA

static void in_each_mode(void (*fn)(uint32_t fanout), uint32_t fanout)
{
	const char *only = getenv("FANOUT_MODE");

	for (unsigned m = 0; m < 5; m++) {
		if (only && strcmp(only, modes[m]) != 0)
			continue;
		in_mode(modes[m]);
		fn(fanout);
	}
	unsetenv("SIMCUDA_MODE");
	unsetenv("SIMCUDA_LATE_MS");
	unsetenv("SIMCUDA_STUCK_MS");
}

/* They come one by one, some stay longer, one is killed. */
static void coming_and_going(uint32_t fanout)
{
	struct way w = { .fanout = fanout };
	struct reader_proc r[8] = {
		{ .transport = SHARED, .device = 0 },
		{ .transport = STORED, .device = 1 },
		{ .transport = SHARED, .device = 0, .visible = "2" },
		{ .transport = SHARED, .device = 1, .visible = "0,3" },
		{ .transport = SHARED, .device = 0, .visible = "1" },
		{ .transport = STORED, .device = 2, .visible = "3,2,0" },
		{ .transport = LEGACY, .device = 3 },
		{ .transport = HOST },
	};
	struct reader_proc victim = { .src = &model,
				      .transport = SHARED,
				      .device = 1,
				      .batch = 9,
				      .epochs = 100000 };
	pid_t producer = start_fan(&model, &w), pid[8], dies;

	dies = gpu_reader_start(&victim);
	for (unsigned i = 0; i < 8; i++) {
		r[i].src = &model;
		r[i].batch = 16 - 2 * i;
		r[i].epochs = 1 + i % 2;
		r[i].floats = i % 3 == 0;
		r[i].delay_us = i * 9000;
		pid[i] = gpu_reader_start(&r[i]);
	}
	for (unsigned i = 0; stream_stats("fan").head < 100; i++) {
		assert_true(i < 12000);
		proc_pause_us(5000);
	}
	proc_kill_and_reap(dies);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	/* None of this was an error. */
	assert_int_equal(did->warnings + did->fallbacks, 0);
	proc_kill_and_reap(producer);
}

static void everybody_sees_all_by_auto(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_AUTO);
}

static void everybody_sees_all_by_peer_copies(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_PEER);
}

static void everybody_sees_all_by_nccl(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_NCCL);
}

static void everybody_sees_all_from_the_host(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_HOST);
}

/* ---- rings that end, and begin again ---- */

static void rings_end_while_others_are_broadcast_to(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL };
	struct reader_proc stays[2] = { { .transport = SHARED, .device = 0 },
					{ .transport = SHARED, .device = 3 } };
	struct reader_proc comes[2] = { { .transport = SHARED, .device = 1 },
					{ .transport = STORED, .device = 2 } };
	struct source src = model;
	pid_t producer, pid[2], joiner[2];

	(void)state;
	src.pace_us = 1000;
	producer = start_fan(&src, &w);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 2; i++) {
			comes[i].src = stays[i].src = &src;
			comes[i].batch = stays[i].batch = 16 - i;
			comes[i].epochs = 1;
			stays[i].epochs = 100000;
			joiner[i] = gpu_reader_start(&comes[i]);
			if (!round)
				pid[i] = gpu_reader_start(&stays[i]);
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(proc_ended(joiner[i]), 0);
		/* What nobody reads is kept for five seconds. */
		for (unsigned i = 0; !round && i < 70; i++) {
			proc_pause_us(100000);
			assert_int_equal(stream_stats("fan").consumers, 2);
		}
	}
	assert_int_equal(did->warnings, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], NULL, WNOHANG), 0);
		proc_kill_and_reap(pid[i]);
	}
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_sees_all_by_auto),
		cmocka_unit_test(everybody_sees_all_by_peer_copies),
		cmocka_unit_test(everybody_sees_all_by_nccl),
		cmocka_unit_test(everybody_sees_all_from_the_host),
		cmocka_unit_test(rings_end_while_others_are_broadcast_to),
	};

	fanout_prepare();
	return cmocka_run_group_tests_name("fan-out", tests, NULL, NULL);
}

#else

int main(void)
{
	puts("the simulation's devices are needed: make CUDA=sim");
	return 77;
}

#endif
