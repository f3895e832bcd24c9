/* SPDX-License-Identifier: MIT */
/*
 * test_fanout_uploads.c - one stream on several GPUs: each sample is uploaded
 * as often as the way that is chosen needs it, and a way that fails, or that
 * arrives with other bytes, is done without.
 *
 * Runs on the simulation alone.
 */
#include "test/lib/fanout_producer.h"

#ifdef SIMCUDA

static uint64_t sample_bytes(const struct source *src)
{
	return src->payload + 8 + 8 + PIXELS;
}

/* A whole stream on four GPUs: how often each of its bytes went up, and from
 * GPU to GPU, in hundredths. */
static void whole_stream(const struct way *w, unsigned *up, unsigned *across)
{
	struct source src = model;
	struct reader_proc r[4] = { { 0 } };
	pid_t producer, pid[4];
	uint64_t bytes;

	src.epochs = 3;
	src.ring = 256;
	src.min_consumers = 4;
	producer = start_fan(&src, w);
	for (unsigned i = 0; i < 4; i++) {
		r[i].src = &src;
		r[i].transport = w->legacy ? i % 2 ? LEGACY_STORED : LEGACY
				 : i % 2   ? STORED
					   : SHARED;
		r[i].device = (int)i;
		r[i].batch = 16 - 3 * i;
		r[i].epochs = 3;
		pid[i] = gpu_reader_start(&r[i]);
		if (!i && w->from_first)
			stream_wait_readers("fan", 1);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	assert_int_equal(proc_ended(producer), 0);
	bytes = src.n * src.epochs * sample_bytes(&src);
	*up = (unsigned)(did->up * 100 / bytes);
	*across = (unsigned)(did->across * 100 / bytes);
}

/* The margin is copied, too: a sixteenth. */
static void goes_up(const struct way *w, unsigned times)
{
	unsigned up, across;

	whole_stream(w, &up, &across);
	assert_int_equal(did->fallbacks, 0);
	assert_int_equal(did->refused, 0);
	assert_int_equal(did->through_host, 0);
	assert_in_range(up, times * 100, times * 115);
	if (times == 4)
		assert_int_equal(across, 0);
	else if (w->fanout == TSOCK_FANOUT_PEER)
		assert_in_range(across, 300, 345);
}

static void one_upload_is_enough_for_all_gpus(void **state)
{
	struct way peer = { .fanout = TSOCK_FANOUT_PEER };
	struct way nccl = { .fanout = TSOCK_FANOUT_NCCL };
	unsigned up, across;

	(void)state;
	goes_up(&peer, 1);
	peer.legacy = true;
	goes_up(&peer, 1);
	whole_stream(&nccl, &up, &across);
	assert_in_range(up, 100, 115);
	assert_in_range(across, 0, 30);
	assert_int_equal(did->warnings + did->fallbacks, 0);
}

static void from_the_host_there_is_one_for_each(void **state)
{
	struct way host = { .fanout = TSOCK_FANOUT_HOST };

	(void)state;
	goes_up(&host, 4);
}

static void gpus_that_cant_reach_each_other_take_the_host(void **state)
{
	(void)state;
	for (uint32_t f = TSOCK_FANOUT_AUTO; f <= TSOCK_FANOUT_NCCL; f++) {
		struct way w = { .fanout = f,
				 .name = { "SIMCUDA_NO_P2P" },
				 .value = { "all" } };

		goes_up(&w, 4);
		assert_int_equal(did->warnings, 0);
		assert_int_equal(did->choices, 0);
	}
}

/*
 * One other GPU may use each ring: GPU 1 has it from GPU 0, and 3 from 2, and
 * no copy from GPU to GPU goes by the host.
 */
static void a_gpu_that_gets_no_right_to_a_ring_has_another_source(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_PEER,
			 .name = { "SIMCUDA_PEERS_MAX" },
			 .value = { "1" } };
	unsigned up, across;

	(void)state;
	for (unsigned legacy = 0; legacy < 2; legacy++) {
		w.legacy = legacy;
		whole_stream(&w, &up, &across);
		assert_in_range(did->refused, legacy ? 0 : 1, 6);
		assert_int_equal(did->through_host, 0);
		assert_int_equal(did->fallbacks, 0);
		assert_in_range(up, 100, legacy ? 330 : 230);
		assert_true(across > 90);
	}
}

/* GPU 0 reaches them all, but 1 and 2 don't reach each other. */
static void nccl_needs_every_gpu_s_right_to_every_ring(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL,
			 .name = { "SIMCUDA_NO_P2P" },
			 .value = { "1-2,2-3,1-3" },
			 .from_first = true };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_int_equal(did->warnings, 1);
	assert_int_equal(did->fallbacks, 0);
	assert_int_equal(did->through_host, 0);
	assert_true(across > 90);
}

/* A GPU that can't be believed is not used, and named once for each pair. */
static void copies_that_arrive_with_other_bytes_are_found_out(void **state)
{
	unsigned up, across;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct way w = { .fanout = TSOCK_FANOUT_AUTO + i,
				 .legacy = i == 1,
				 .name = { "SIMCUDA_LIES" },
				 .value = { "all" } };

		goes_up(&w, 4);
		assert_in_range(did->spoilt, 3, 6);
		assert_int_equal(did->warnings, 0);
		w.value[0] = "0-1,2-3";
		whole_stream(&w, &up, &across);
		assert_int_equal(did->fallbacks, 0);
	}
}

static void broadcasts_that_arrive_with_other_bytes_are_found_out(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL,
			 .name = { "SIMCUDA_NCCL_LIES" },
			 .value = { "1" } };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_in_range(up, 100, 115);
	assert_true(across > 250);
	assert_int_equal(did->warnings, 1);
	assert_int_equal(did->fallbacks, 0);
}

static void auto_measures_and_says_so(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_AUTO };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_int_equal(did->choices, 3);
	assert_int_equal(did->through_host, 0);
}

static void nccl_that_fails_is_done_without(void **state)
{
	static const char *const how[][2] = {
		{ "TSOCK_NCCL", "/none/libnccl" },
		{ "TSOCK_NCCL", "libm.so.6" },
		{ "SIMCUDA_FAULT", "ncclCommInitAll=3" },
		{ "SIMCUDA_FAULT", "ncclBroadcast:70=1" },
		{ "SIMCUDA_FAULT", "ncclGroupEnd:20=3" },
		{ "SIMCUDA_FAULT", "ncclCommGetAsyncError:30=3" },
		/* Without an error. */
		{ "SIMCUDA_FAULT", "ncclCommInitAll:1=hang" },
		{ "SIMCUDA_FAULT", "ncclKernel@2:5=1" },
		{ "SIMCUDA_FAULT", "ncclGroup:20=1" },
		/* A communicator whose abort hangs is given up, too. */
		{ "SIMCUDA_FAULT", "ncclBroadcast:70=1,ncclCommAbort=hang" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct way w = { .fanout = TSOCK_FANOUT_NCCL,
				 .name = { how[i][0] },
				 .value = { how[i][1] } };
		unsigned up, across;

		whole_stream(&w, &up, &across);
		assert_in_range(up, 100, 115);
		assert_true(across > 50);
		assert_int_equal(did->warnings, 1);
	}
}

/* A communicator is done without when GPUs come and go. */
static void nccl_that_does_not_end_is_left_behind(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL,
			 .name = { "SIMCUDA_FAULT" },
			 .value = { "ncclCommDestroy=hang" } };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_in_range(up, 100, 115);
	assert_int_equal(did->warnings + did->fallbacks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_upload_is_enough_for_all_gpus),
		cmocka_unit_test(from_the_host_there_is_one_for_each),
		cmocka_unit_test(gpus_that_cant_reach_each_other_take_the_host),
		cmocka_unit_test(
			a_gpu_that_gets_no_right_to_a_ring_has_another_source),
		cmocka_unit_test(nccl_needs_every_gpu_s_right_to_every_ring),
		cmocka_unit_test(
			copies_that_arrive_with_other_bytes_are_found_out),
		cmocka_unit_test(
			broadcasts_that_arrive_with_other_bytes_are_found_out),
		cmocka_unit_test(auto_measures_and_says_so),
		cmocka_unit_test(nccl_that_fails_is_done_without),
		cmocka_unit_test(nccl_that_does_not_end_is_left_behind),
	};

	fanout_prepare();
	return cmocka_run_group_tests_name("uploads for fan-out", tests, NULL,
					   NULL);
}

#else

int main(void)
{
	puts("the simulation's devices are needed: make CUDA=sim");
	return 77;
}

#endif
