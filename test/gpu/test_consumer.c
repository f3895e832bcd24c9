/* SPDX-License-Identifier: MIT */
/*
 * test_consumer.c - work that is queued on a batch, contexts that fail, forks,
 * and what a reader takes of the machine.
 */
#include "test/lib/for_each_transport.h"
#include "test/lib/sanitized.h"

/* ---- work that is still queued ---- */

/* The order in which the simulation runs work. */
static const char *mode;

static void read_late(const struct reader_proc *r)
{
	gpu_reader_set("SIMCUDA_MODE", mode);
	gpu_reader_set("SIMCUDA_LATE_MS", "15");
	gpu_reader_set("SIMCUDA_STUCK_MS", "300");
	gpu_reader_read_to_the_end(r);
}

/* Kernels that run late read batches that were released long ago. */
static void late(const struct reader_proc *r, const char *how)
{
	struct reader_proc other = { .src = &transport_small_source,
				     .transport = HOST,
				     .batch = 16,
				     .epochs = 1 };
	pid_t producer, pid[2];

	mode = how;
	pid[0] = gpu_reader_start_as(read_late, r);
	pid[1] = gpu_reader_start(&other);
	producer = stream_start_producer(&transport_small_source);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

static void a_batch_that_queued_work_reads_is_never_overwritten(void **state)
{
	static const char *const modes[] = { "late", "random", "reverse",
					     "stuck", "eager" };
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 1 };

	for (unsigned m = 0; m < (SIMULATED ? 5 : 1); m++) {
		r.floats = m % 2;
		late(&r, modes[m]);
	}
}

static void several_streams_may_use_a_batch(void **state)
{
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 1,
				 .streams = 4 };

	late(&r, "reverse");
	r.streams = 3;
	late(&r, "random");
}

/* Nothing of ours waits for a stream: only what is looked at is forced. */
static void read_without_looking(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_set("SIMCUDA_MODE", "late");
	gpu_reader_set("SIMCUDA_LATE_MS", "40");
	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	for (unsigned i = 0; i < 60; i++) {
		need(tsock_next(s.t, 60000, &b) == 0);
		gpu_reader_leave_to_gpu(&s, b, i);
	}
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void the_same_with_nobody_looking_in_between(void **state)
{
	transport_run_small(read_without_looking, state);
}

static void read_and_leave(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_set("SIMCUDA_LATE_MS", "60");
	gpu_reader_open(&s, r);
	for (unsigned round = 0; round < 4; round++) {
		need(gpu_reader_begin(&s));
		for (unsigned i = 0; i < 5; i++) {
			need(tsock_next(s.t, 60000, &b) == 0);
			gpu_reader_leave_to_gpu(&s, b, i);
		}
		if (round % 2)
			tsock_leave(s.t);
	}
	tsock_close(s.t);
	gpu_reader_settle(&s);
	for (unsigned i = 0; stream_stats("small").consumers; i++) {
		need(i < 12000);
		proc_pause_us(5000);
	}
}

static void readers_that_leave_with_work_queued(void **state)
{
	transport_run_small(read_and_leave, state);
}

static void next_of(struct gpu_reader *s, tsock_batch **b)
{
	int err = tsock_next(s->t, 60000, b);

	if (err == TSOCK_EEPOCH) {
		need(gpu_reader_begin(s));
		err = tsock_next(s->t, 60000, b);
	}
	if (err)
		die("%s: %s", gpu_reader_transport_name[s->r->transport],
		    tsock_errmsg());
}

/*
 * A thread reads two loaders, and the one on the host gets ahead: what work on
 * a slow GPU still uses comes back by itself, so that it is no reason to be
 * told that the two wait for each other.  While the first batch of an epoch is
 * in use, the stream gets no further than the ring from there.
 */
static void read_beside_the_host(const struct reader_proc *r)
{
	const unsigned first = 1000 / 16 + 1; /* batch of the second epoch */
	struct reader_proc beside = { .src = r->src,
				      .transport = HOST,
				      .batch = r->batch };
	struct gpu_reader host, gpu;
	tsock_batch *b;

	/* Each of a batch's four copies. */
	gpu_reader_set("SIMCUDA_FAULT", "slow=100");
	gpu_reader_open(&gpu, r);
	gpu_reader_open(&host, &beside);
	need(gpu_reader_begin(&host) && gpu_reader_begin(&gpu));
	for (unsigned i = 0; i < first + 6; i++) {
		next_of(&host, &b);
		tsock_batch_release(b);
		if (i >= first + 2)
			continue;
		next_of(&gpu, &b);
		if (i >= first) {
			cudaStream_t at = gpu.stream[i - first];

			if (!gpu_reader_as_stored(r->transport))
				need(tsock_batch_use(b, at) == 0);
			gpu_reader_queue_copy(&gpu, b, &gpu.copy[i - first],
					      at);
		}
		tsock_batch_release(b);
	}
	gpu_reader_settle(&gpu);
	gpu_reader_close(&gpu);
	gpu_reader_close(&host);
}

static void a_slow_gpu_is_no_deadlock_of_two_loaders(void **state)
{
	transport_run_small(read_beside_the_host, state);
}

/* ---- errors ---- */

#ifdef SIMCUDA
static void read_till_it_breaks(const struct reader_proc *r)
{
	struct tsock_opts o = gpu_reader_opts(r);
	cudaStream_t stream;
	tsock_batch *b;
	void *dst;
	tsock *t;
	int err;

	/* The 60th piece of work breaks the context. */
	gpu_reader_set("SIMCUDA_FAULT", "work:60=700");
	need(tsock_open(r->src->name, &o, &t) == 0);
	cu(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	cu(cudaMalloc(&dst, 1 << 20));
	need(tsock_begin(t) == 0);
	while ((err = tsock_next(t, 60000, &b)) == 0) {
		if (gpu_reader_as_stored(r->transport))
			tsock_batch_convert(b, 0, dst, stream);
		else if (!tsock_batch_use(b, stream))
			cudaMemsetAsync(dst, 0, 100, stream);
		tsock_batch_release(b);
	}
	need(err == TSOCK_ESTREAM);
	need(strstr(tsock_errmsg(), "IllegalAddress"));
	for (;;)
		pause();
}

static void an_error_in_one_context_is_its_owners_alone(void **state)
{
	struct reader_proc good = { .src = &transport_small_source,
				    .transport = SHARED,
				    .batch = 16,
				    .epochs = 2 };
	struct reader_proc bad = { .src = &transport_small_source,
				   .transport = transport_of_case(state),
				   .batch = 16 };
	pid_t producer = stream_start_producer(&transport_small_source), pid,
	      other;

	pid = gpu_reader_start_as(read_till_it_breaks, &bad);
	other = gpu_reader_start(&good);
	/* The broken one lives on, and holds nobody up. */
	assert_int_equal(proc_ended(other), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
}
#endif

/* ---- what is left, and what is used ---- */

/* Our thread is in the middle of a call when this one exits. */
static void read_and_exit(const struct reader_proc *r)
{
	char fd[16], byte;
	int tell[2];
	tsock_batch *b;
	struct gpu_reader s;

	need(pipe(tell) == 0);
	snprintf(fd, sizeof(fd), "%d", tell[1]);
	gpu_reader_set("SIMCUDA_TELL", fd);
	gpu_reader_set("SIMCUDA_MODE", "late");
	gpu_reader_set("SIMCUDA_LATE_MS", "60000");
	gpu_reader_set("SIMCUDA_FAULT", "cudaEventQuery:4+=200ms");
	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	for (unsigned i = 0; i < 3; i++) {
		need(tsock_next(s.t, 60000, &b) == 0);
		gpu_reader_leave_to_gpu(&s, b, i);
	}
	if (SIMULATED)
		need(read(tell[0], &byte, 1) == 1);
	exit(0);
}

static void a_process_exits_with_batches_pending(void **state)
{
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16 };
	pid_t producer = stream_start_producer(&transport_small_source);

	for (unsigned i = 0; i < (SIMULATED ? 3 : 30); i++)
		assert_int_equal(
			proc_ended(gpu_reader_start_as(read_and_exit, &r)), 0);
	proc_kill_and_reap(producer);
}

#ifdef SIMCUDA
static void read_and_clean_up(const struct reader_proc *r)
{
	gpu_reader_read_to_the_end(r);
	/* The last batch may be given back by our thread. */
	for (unsigned i = 0; !transport_nothing_is_left(); i++) {
		need(i < 12000);
		proc_pause_us(5000);
	}
}

static void nothing_is_left_on_the_gpu(void **state)
{
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 1,
				 .streams = 2 };

	transport_run_as(read_and_clean_up, &r);
}
#endif

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void read_and_rest(const struct reader_proc *r)
{
	struct gpu_reader s;
	double took = 1;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	gpu_reader_some(&s, 5);
	gpu_reader_settle(&s);
	/* Threads may have something to end yet; one that spins never ends. */
	for (unsigned i = 0; i < 100 && took >= 0.05; i++) {
		double before = cpu_s();

		proc_pause_us(300000);
		took = cpu_s() - before;
	}
	need(took < 0.05);
	gpu_reader_close(&s);
}

static void nothing_spins_while_there_is_nothing_to_do(void **state)
{
	transport_run_small(read_and_rest, state);
}

/* ---- forks ---- */

static void be_a_child(struct gpu_reader *s, tsock_batch *held)
{
	tsock_batch *b;
	int k;

	if (!gpu_reader_on_gpu(s->r->transport)) { /* still readable */
		gpu_reader_queue_copy(s, held, &s->copy[0], NULL);
		gpu_reader_finish_copy(s, &s->copy[0]);
	} else {
		need(tsock_batch_use(held, s->stream[0]) == TSOCK_EFORK);
		need(tsock_batch_convert(held, 0, &k, NULL) == TSOCK_EFORK);
	}
	need(tsock_transport(s->t) == TSOCK_EFORK);
	need(tsock_next(s->t, 0, &b) == TSOCK_EFORK);
	need(tsock_begin(s->t) == TSOCK_EFORK);
	tsock_batch_release(held);
	tsock_close(s->t);
	/* Their own ends aren't fork-safe: the sanitizers', and CUDA's. */
	if ((SANITIZED || !SIMULATED) && gpu_reader_on_gpu(s->r->transport))
		_exit(0);
	exit(0); /* with destructors */
}

static void read_and_fork(const struct reader_proc *r)
{
	struct tsock_stats st;
	tsock_batch *held;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	need(tsock_next(s.t, 60000, &held) == 0);
	if (gpu_reader_on_gpu(r->transport))
		need(tsock_batch_use(held, s.stream[0]) == 0);
	for (unsigned i = 0; i < 5; i++) {
		pid_t child = proc_spawn();

		if (child == 0)
			be_a_child(&s, held);
		need(proc_ended(child) == 0);
		gpu_reader_queue_copy(&s, held, &s.copy[0], s.stream[0]);
		gpu_reader_finish_copy(&s, &s.copy[0]);
	}
	st = stream_stats(r->src->name);
	need(st.consumers == 1);
	/* A staged reader has a copy of its batch. */
	if (gpu_reader_transport(r->transport) != TSOCK_TRANSPORT_STAGED)
		need(st.row[0].tail == 0);
	gpu_reader_check(&s, held, 0);
	gpu_reader_some(&s, 30);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_forked_child_that_exits_with_batches_harms_nobody(void **state)
{
	struct source src = transport_small_source;
	struct reader_proc r = { .src = &src,
				 .transport = transport_of_case(state),
				 .batch = 16 };

	src.payload = 5000; /* too much for a copy that nobody asked for */
	transport_run_as(read_and_fork, &r);
	r.writes = true;
	transport_run_as(read_and_fork, &r);
}

/* ---- small print ---- */

static void open_wrongly(const struct reader_proc *r)
{
	struct tsock_opts o = gpu_reader_opts(r);
	tsock *t = NULL;

	o.batch_size = 17;
	need(tsock_open(r->src->name, &o, &t) == TSOCK_EREFUSED);
	need(strstr(tsock_errmsg(), "17") && strstr(tsock_errmsg(), "16"));
	o.batch_size = 0;
	need(tsock_open(r->src->name, &o, &t) == TSOCK_EARG);
	o.batch_size = 4;
	o.timeout_ms = 100;
	need(tsock_open("nobody", &o, &t) == TSOCK_ENOPROD);
	need(strstr(tsock_errmsg(), "nobody"));
	need(tsock_open("../x y", &o, &t) == TSOCK_EARG);
	need(!t);
}

static void wrong_names_and_sizes_are_named(void **state)
{
	transport_run_small(open_wrongly, state);
}

static void calls_that_make_no_sense_are_named(void **state)
{
	struct reader_proc me = { .src = &transport_small_source,
				  .transport = HOST,
				  .batch = 16 };
	pid_t producer = stream_start_producer(&transport_small_source);
	tsock_batch *b;
	struct gpu_reader s;

	(void)state;
	gpu_reader_open(&s, &me);
	assert_int_equal(tsock_transport(NULL), TSOCK_EARG);
	assert_int_equal(tsock_begin(s.t), 0);
	assert_int_equal(tsock_transport(s.t), 0);
	assert_int_equal(tsock_next(s.t, 60000, &b), 0);
	assert_int_equal(tsock_batch_use(b, NULL), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "host memory"));
	assert_int_equal(tsock_batch_convert(b, 0, &s, NULL), TSOCK_EARG);
	assert_int_equal(tsock_batch_use(NULL, NULL), TSOCK_EARG);
	tsock_batch_release(b);
	gpu_reader_close(&s);
	proc_kill_and_reap(producer);
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_GPU_TRANSPORT(
			a_batch_that_queued_work_reads_is_never_overwritten),
		FOR_EACH_GPU_TRANSPORT(several_streams_may_use_a_batch),
		FOR_EACH_GPU_TRANSPORT(the_same_with_nobody_looking_in_between),
		FOR_EACH_GPU_TRANSPORT(readers_that_leave_with_work_queued),
		FOR_EACH_GPU_TRANSPORT(
			a_slow_gpu_is_no_deadlock_of_two_loaders),
#ifdef SIMCUDA
		FOR_EACH_GPU_TRANSPORT(
			an_error_in_one_context_is_its_owners_alone),
		FOR_EACH_GPU_TRANSPORT(nothing_is_left_on_the_gpu),
#endif
		FOR_EACH_GPU_TRANSPORT(a_process_exits_with_batches_pending),
		FOR_EACH_TRANSPORT(
			a_forked_child_that_exits_with_batches_harms_nobody),
		FOR_EACH_TRANSPORT(nothing_spins_while_there_is_nothing_to_do),
		FOR_EACH_TRANSPORT(wrong_names_and_sizes_are_named),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(calls_that_make_no_sense_are_named),
	};

	return transport_run_each("gpu consumers", each,
				  sizeof(each) / sizeof(each[0]), once,
				  sizeof(once) / sizeof(once[0]));
}
