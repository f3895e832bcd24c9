/* SPDX-License-Identifier: MIT */
/*
 * test_hanging.c - a GPU that is slow to answer, or never does, delays only the
 * consumers that use it.
 *
 * Calls hang on demand, so this runs on the simulation alone.
 */
#include "test/lib/gpu_reader.h"

#include "ring/pin.h"
#include "serve/view_neighbour.h"

#ifdef SIMCUDA

#include <poll.h>

static const struct source model = { .name = "hang",
				     .n = 300,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 2500,
				     .pace_us = 300,
				     .image = SIDE };

static int told[2]; /* a pipe: the producer is in the call */
static int go[2];   /* a pipe: a call that waits to be told may go on */

static pid_t start_faulty(const struct source *src, const char *fault)
{
	char fd[16];
	pid_t pid;

	need(pipe(told) == 0 && pipe(go) == 0);
	snprintf(fd, sizeof(fd), "%d", told[1]);
	gpu_reader_set("SIMCUDA_TELL", fd);
	snprintf(fd, sizeof(fd), "%d", go[0]);
	gpu_reader_set("SIMCUDA_GO", fd);
	gpu_reader_set("SIMCUDA_FAULT", fault);
	pid = stream_start_producer(src);
	unsetenv("SIMCUDA_FAULT");
	unsetenv("SIMCUDA_GO");
	unsetenv("SIMCUDA_TELL");
	return pid;
}

static void wait_for_the_call(const char *fault)
{
	struct pollfd p = { .fd = told[0], .events = POLLIN };

	if (poll(&p, 1, 60000) != 1)
		fail_msg("%s was never called", fault);
}

static void close_pipes(void)
{
	for (unsigned i = 0; i < 2; i++) {
		close(told[i]);
		close(go[i]);
	}
}

static void stop_faulty(pid_t producer)
{
	proc_kill_and_reap(producer);
	close_pipes();
}

/* ---- for ever ---- */

static void host_jobs_go_on(const char *fault)
{
	struct reader_proc stays = { .src = &model,
				     .batch = 16,
				     .epochs = 100000 };
	struct reader_proc comes = { .src = &model, .batch = 9, .epochs = 1 };
	struct reader_proc gpu = { .src = &model,
				   .transport = SHARED,
				   .floats = true,
				   .batch = 16,
				   .epochs = 1 };
	pid_t producer = start_faulty(&model, fault);
	pid_t there = gpu_reader_start(&stays), hangs, next;

	stream_wait_readers("hang", 1);
	hangs = gpu_reader_start(&gpu);
	wait_for_the_call(fault);
	/* Two that join: one of them has a view made. */
	for (unsigned i = 0; i < 2; i++) {
		comes.floats = i;
		assert_int_equal(proc_ended(gpu_reader_start(&comes)), 0);
	}
	/* Another one for that GPU, which comes and goes. */
	next = gpu_reader_start(&gpu);
	proc_pause_us(50000);
	proc_kill_and_reap(next);
	proc_kill_and_reap(hangs);
	stream_wait_readers("hang", 1);
	assert_int_equal(waitpid(there, NULL, WNOHANG), 0);
	proc_kill_and_reap(there);
	stop_faulty(producer);
}

static void a_gpu_that_hangs_stops_no_host_job(void **state)
{
	static const char *const fault[] = {
		"cuInit=hang",
		"cuDevicePrimaryCtxRetain=hang",
		"cudaMemGetInfo=hang",
		"cuMemCreate=hang",
		"cuMemExportToShareableHandle=hang",
		"cuMemHostRegister=hang",
		"cudaStreamCreateWithFlags=hang",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(fault) / sizeof(fault[0]); i++)
		host_jobs_go_on(fault[i]);
}

static void other_gpus_go_on(const char *fault)
{
	struct reader_proc bad = { .src = &model,
				   .transport = SHARED,
				   .device = 1,
				   .batch = 16,
				   .epochs = 1 };
	struct reader_proc good = bad;
	pid_t producer = start_faulty(&model, fault);
	pid_t hangs = gpu_reader_start(&bad);

	wait_for_the_call(fault);
	good.device = 0;
	assert_int_equal(proc_ended(gpu_reader_start(&good)), 0);
	good.device = 2;
	assert_int_equal(proc_ended(gpu_reader_start(&good)), 0);
	proc_kill_and_reap(hangs);
	stop_faulty(producer);
}

static void a_gpu_that_hangs_stops_no_other_gpu(void **state)
{
	static const char *const fault[] = {
		"cuDevicePrimaryCtxRetain@1=hang",
		"cudaMemGetInfo@1=hang",
		"cuMemCreate@1=hang",
		"cuMemHostRegister@1=hang",
		"cuMemHostRegister@1:2=hang",
		"cudaStreamCreateWithFlags@1=hang",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(fault) / sizeof(fault[0]); i++)
		other_gpus_go_on(fault[i]);
}

/* The producer says so, and ends. */
static void a_producer_ends_although_a_gpu_hangs(void **state)
{
	struct source src = model;
	struct reader_proc stays = { .src = &src, .batch = 16, .epochs = 1 };
	struct reader_proc gpu = {
		.src = &src, .transport = SHARED, .batch = 16, .epochs = 1
	};
	pid_t producer, there, hangs;

	(void)state;
	src.epochs = 1;
	src.n = 2000;
	producer = start_faulty(&src, "cuMemCreate=hang");
	hangs = gpu_reader_start(&gpu);
	wait_for_the_call("cuMemCreate");
	/* Now, for it ends the stream. */
	there = gpu_reader_start(&stays);
	assert_int_equal(proc_ended(there), 0);
	assert_int_equal(proc_ended(producer), 0);
	proc_kill_and_reap(hangs);
	close_pipes();
}

/* ---- for a while ---- */

static int asked[2]; /* a pipe: a reader has asked for the ring in vain */

/* The reader asks before the ring is made; one gives up, and returns. */
static void ask_early(const struct reader_proc *r)
{
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(tsock_begin_timed(s.t, 50) == TSOCK_EAGAIN);
	if (r->batch < 16)
		tsock_leave(s.t);
	need(write(asked[1], "a", 1) == 1);
	need(gpu_reader_begin(&s));
	gpu_reader_epoch(&s);
	gpu_reader_close(&s);
}

static void await_asked(unsigned n)
{
	struct pollfd p = { .fd = asked[0], .events = POLLIN };
	char byte;

	while (n--) {
		/* One that died never will. */
		assert_int_equal(poll(&p, 1, 60000), 1);
		assert_int_equal(read(asked[0], &byte, 1), 1);
	}
}

static void who_waits_for_a_ring(const char *fault)
{
	struct source src = model;
	struct reader_proc r = { .src = &src,
				 .transport = SHARED,
				 .floats = true,
				 .batch = 16,
				 .epochs = 1 };
	pid_t producer, pid[5];

	/* None begins before they were counted. */
	src.min_consumers = 5;
	need(pipe(asked) == 0);
	producer = start_faulty(&src, fault);
	pid[0] = gpu_reader_start_as(ask_early, &r);
	wait_for_the_call(fault);
	pid[1] = gpu_reader_start_as(ask_early, &r);
	r.batch = 9;
	pid[2] = gpu_reader_start_as(ask_early, &r);
	r.transport = STORED;
	pid[3] = gpu_reader_start(&r);
	await_asked(3);
	assert_int_equal(write(go[1], "g", 1), 1);
	stream_wait_readers("hang", 4);
	/* As stored, and as floats. */
	assert_int_equal(stream_stats("hang").views, 2);
	r.transport = HOST;
	pid[4] = gpu_reader_start(&r);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	stop_faulty(producer);
	close(asked[0]);
	close(asked[1]);
}

static void those_who_want_the_same_get_one_ring(void **state)
{
	(void)state;
	who_waits_for_a_ring("cuInit=told");
	who_waits_for_a_ring("cuMemCreate:1=told");
	who_waits_for_a_ring("cuMemHostRegister:1=told");
}

/* The first two are told, or copy for themselves; the third gets its ring. */
static void a_ring_that_fails_late_is_made_anew(void **state)
{
	struct reader_proc r = {
		.src = &model, .transport = SHARED, .batch = 16, .epochs = 1
	};
	pid_t producer = start_faulty(&model, "cuMemCreate:1=300ms,"
					      "cuMemExportToShareableHandle:1="
					      "2");
	pid_t pid[2];
	int rc[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		pid[i] = gpu_reader_start(&r);
	for (unsigned i = 0; i < 2; i++)
		rc[i] = proc_ended(pid[i]);
	/* At least the one that came when nothing failed any more. */
	assert_true(rc[0] == 0 || rc[1] == 0);
	assert_int_equal(proc_ended(gpu_reader_start(&r)), 0);
	stop_faulty(producer);
}

#define hanging(fn) cmocka_unit_test_teardown(fn, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		hanging(a_gpu_that_hangs_stops_no_host_job),
		hanging(a_gpu_that_hangs_stops_no_other_gpu),
		hanging(a_producer_ends_although_a_gpu_hangs),
		hanging(those_who_want_the_same_get_one_ring),
		hanging(a_ring_that_fails_late_is_made_anew),
	};

	proc_own_folder();
	/* The producers, which this process becomes, need not wait so long. */
	tsi_ring_pin_limit(500);
	tsi_view_neighbour_limit(500);
	return cmocka_run_group_tests_name("GPUs that hang", tests, NULL, NULL);
}

#else

int main(void)
{
	puts("calls that hang need the simulation: make CUDA=sim");
	return 77;
}

#endif
