/*
 * test_consumer.c - consumers on GPUs: each sees every sample exactly once,
 * whichever way it comes there, and no byte changes while anything reads it.
 */
#include "onboard.h"

#ifdef SIMCUDA
#include "simcuda.h"
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void run(const struct source *src, struct rider *r, unsigned n)
{
	pid_t producer = start_producer(src), pid[32];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = start_rider(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ended(pid[i]), 0);
	kill_and_reap(producer);
}

static void crowd(enum kind kind, unsigned n)
{
	static const uint32_t size[] = { 16, 7, 1, 12, 5, 16, 3, 10 };
	struct source src = { .name = "crowd",
			      .n = 203,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = n == 2 ? 65536 : 1500,
			      .image = SIDE };
	struct rider r[8] = { { 0 } };

	for (unsigned i = 0; i < n; i++) {
		r[i].kind = kind;
		r[i].batch = size[i];
		r[i].epochs = 2;
		r[i].floats = i % 2 == 0;
		r[i].streams = 1 + i % 2;
		r[i].delay_us = i * 5000;
	}
	run(&src, r, n);
}

#define CROWD(name, kind) \
	static void name##_alone(void **state) \
	{ \
		(void)state; \
		crowd(kind, 1); \
	} \
	static void name##_by_two(void **state) \
	{ \
		(void)state; \
		crowd(kind, 2); \
	} \
	static void name##_by_eight(void **state) \
	{ \
		(void)state; \
		crowd(kind, 8); \
	}

CROWD(host, HOST)
CROWD(staged, STAGED)
CROWD(staged_private, STAGED_PRIVATE)
CROWD(shared, SHARED)
CROWD(private, PRIVATE)
CROWD(legacy, LEGACY)
CROWD(legacy_private, LEGACY_PRIVATE)

/* ---- work that is still queued ---- */

static const struct source small = { .name = "small",
				     .n = 1000,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 4000,
				     .image = SIDE };

static void set(const char *name, const char *value)
{
	need(setenv(name, value, 1) == 0);
}

/* Kernels that run late read batches that were released long ago. */
static void late(enum kind kind, const char *mode, unsigned streams)
{
	struct rider me = { .src = &small,
			    .kind = kind,
			    .batch = 16,
			    .epochs = 1,
			    .streams = streams };
	struct rider other = {
		.src = &small, .kind = HOST, .batch = 16, .epochs = 1
	};
	pid_t producer, pid[2];

	pid[0] = spawn();
	if (pid[0] == 0) {
		set("SIMCUDA_MODE", mode);
		set("SIMCUDA_LATE_MS", "15");
		set("SIMCUDA_STUCK_MS", "300");
		ride_all(&me);
		_exit(0);
	}
	pid[1] = start_rider(&other);
	producer = start_producer(&small);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ended(pid[i]), 0);
	kill_and_reap(producer);
}

static void a_batch_that_queued_work_reads_is_never_overwritten(void **state)
{
	static const char *const mode[] = { "late", "random", "reverse",
					    "stuck", "eager" };

	(void)state;
	for (unsigned m = 0; m < 5; m++)
		for (enum kind k = STAGED; k < KINDS; k++)
			late(k, mode[m], 1);
}

static void several_streams_may_use_a_batch(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		late(k, "reverse", 4);
		late(k, "random", 3);
	}
}

/* Nothing of ours waits for a stream: only what is looked at is forced. */
static void the_same_with_nobody_looking_in_between(void **state)
{
	struct rider me = { .src = &small, .kind = SHARED, .batch = 16 };
	pid_t pid = spawn(), producer;

	(void)state;
	if (pid == 0) {
		struct seat s;
		tsock_batch *b;

		set("SIMCUDA_MODE", "late");
		set("SIMCUDA_LATE_MS", "40");
		board(&s, &me);
		need(tsock_begin(s.t) == 0);
		for (unsigned i = 0; i < 60; i++) {
			need(tsock_next(s.t, 20000, &b) == 0);
			leave_to_gpu(&s, b, i);
		}
		settle(&s);
		alight(&s);
		_exit(0);
	}
	producer = start_producer(&small);
	assert_int_equal(ended(pid), 0);
	kill_and_reap(producer);
}

static void readers_that_leave_with_work_queued(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		struct rider me = { .src = &small, .kind = k, .batch = 16 };
		pid_t pid = spawn(), producer;

		if (pid == 0) {
			struct seat s;
			tsock_batch *b;

			set("SIMCUDA_LATE_MS", "60");
			board(&s, &me);
			for (unsigned round = 0; round < 4; round++) {
				need(tsock_begin(s.t) == 0);
				for (unsigned i = 0; i < 5; i++) {
					need(tsock_next(s.t, 20000, &b) == 0);
					leave_to_gpu(&s, b, i);
				}
				if (round % 2)
					tsock_leave(s.t);
			}
			tsock_close(s.t);
			settle(&s);
			for (unsigned i = 0; stats_of("small").consumers; i++) {
				need(i < 1000);
				pause_us(5000);
			}
			_exit(0);
		}
		producer = start_producer(&small);
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}

/* ---- captures ---- */

static void ride_capture(enum kind kind)
{
	struct rider me = { .src = &small, .kind = kind, .batch = 16 };
	struct look *l;
	cudaGraph_t graph;
	tsock_batch *b;
	struct seat s;
	uint64_t tail;
	int err;

	board(&s, &me);
	need(tsock_begin(s.t) == 0);
	need(tsock_next(s.t, 20000, &b) == 0);
	l = &s.look[0];
	cu(cudaStreamBeginCapture(s.stream[1], cudaStreamCaptureModeGlobal));
	if (separate(kind))
		err = tsock_batch_convert(b, 0, l->device[0], s.stream[1]);
	else
		err = tsock_batch_use(b, s.stream[1]);
	need(err == TSOCK_ENOTSUP && strstr(tsock_errmsg(), "captur"));
	/* What was refused left nothing behind. */
	cu(cudaStreamEndCapture(s.stream[1], &graph));
	cu(cudaGraphDestroy(graph));
	tail = tsock_batch_seq(b) + tsock_batch_count(b);
	ride(&s, b, 0);
	settle(&s);

	/* Named before a capture, and released within it. */
	need(tsock_next(s.t, 20000, &b) == 0);
	need(tsock_batch_use(b, s.stream[1]) == 0);
	cu(cudaStreamBeginCapture(s.stream[1], cudaStreamCaptureModeGlobal));
	tsock_batch_release(b);
	pause_us(30000);
	if (kind != STAGED && kind != STAGED_PRIVATE)
		need(stats_of("small").row[0].tail <= tail);
	cu(cudaStreamEndCapture(s.stream[1], &graph));
	cu(cudaGraphDestroy(graph));
	for (unsigned i = 0; i < 20; i++) {
		need(tsock_next(s.t, 20000, &b) == 0);
		ride(&s, b, i);
	}
	settle(&s);
	alight(&s);
}

static void a_stream_that_is_captured_is_left_alone(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		pid_t producer = start_producer(&small), pid = spawn();

		if (pid == 0) {
			ride_capture(k);
			_exit(0);
		}
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}

/* ---- holding ---- */

static void ride_hoard(enum kind kind)
{
	struct rider me = { .src = &small, .kind = kind, .batch = 16 };
	tsock_batch *b[80];
	unsigned n = 0;
	struct seat s;
	int err;

	set("SIMCUDA_LATE_MS", "30");
	board(&s, &me);
	need(tsock_begin(s.t) == 0);
	while ((err = tsock_next(s.t, 2000, &b[n])) == 0)
		need(++n < 79);
	need(kind == STAGED || kind == STAGED_PRIVATE ? err == TSOCK_EEPOCH
						      : err == TSOCK_EHELD);
	if (err == TSOCK_EHELD)
		need(strstr(tsock_errmsg(), "samples 0 to"));
	need(tsock_batch_data_mut(b[0], 0) == NULL);
	for (unsigned i = 0; i < n; i++)
		ride(&s, b[i], i);
	/* Given back, and not done yet: that is waited for. */
	if (err == TSOCK_EHELD)
		need(tsock_next(s.t, 20000, &b[0]) == 0);
	else
		b[0] = NULL;
	tsock_batch_release(b[0]);
	settle(&s);
	alight(&s);
}

static void who_holds_too_much_is_told_so(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		pid_t producer = start_producer(&small), pid = spawn();

		if (pid == 0) {
			ride_hoard(k);
			_exit(0);
		}
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}

/* ---- deaths and errors ---- */

static void readers_that_are_killed_while_their_kernels_read(void **state)
{
	struct source src = small;
	struct rider good[2] = {
		{ .src = &src, .kind = SHARED, .batch = 16, .epochs = 100000 },
		{ .src = &src, .kind = HOST, .batch = 7, .epochs = 100000 }
	};
	pid_t producer, survivor[2];
	unsigned seed = 7;

	(void)state;
	src.name = "killed";
	producer = start_producer(&src);
	for (unsigned i = 0; i < 2; i++)
		survivor[i] = start_rider(&good[i]);
	wait_readers("killed", 2);
	for (unsigned k = 0; k < 40; k++) {
		struct rider r = { .src = &src,
				   .kind = (enum kind)(1 + k % (KINDS - 1)),
				   .device = (int)(k / 7 % 2),
				   .batch = 1 + (uint32_t)rand_r(&seed) % 16,
				   .epochs = 100000,
				   .floats = k % 2,
				   .streams = 1 + k % 3 };
		uint64_t head = stats_of("killed").head;
		pid_t victim = start_rider(&r);

		pause_us((unsigned)rand_r(&seed) % 40000);
		kill_and_reap(victim);
		for (unsigned i = 0; stats_of("killed").head <= head; i++) {
			assert_true(i < 2000);
			pause_us(5000);
		}
	}
	wait_readers("killed", 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(waitpid(survivor[i], NULL, WNOHANG), 0);
		kill_and_reap(survivor[i]);
	}
	kill_and_reap(producer);
}

static void an_error_in_one_context_is_its_owners_alone(void **state)
{
	struct source src = small;
	struct rider good = {
		.src = &src, .kind = SHARED, .batch = 16, .epochs = 2
	};

	(void)state;
	src.name = "sticky";
	for (enum kind k = STAGED; k < KINDS; k++) {
		struct rider bad = { .src = &src, .kind = k, .batch = 16 };
		pid_t producer = start_producer(&src), pid = spawn(), other;

		if (pid == 0) {
			struct tsock_opts o = opts_of(&bad);
			tsock_batch *b;
			tsock *t;
			cudaStream_t stream;
			void *dst;
			int err;

			/* The 60th piece of work breaks the context. */
			set("SIMCUDA_FAULT", "work:60=700");
			need(tsock_open("sticky", &o, &t) == 0);
			cu(cudaStreamCreateWithFlags(&stream,
						     cudaStreamNonBlocking));
			cu(cudaMalloc(&dst, 1 << 20));
			need(tsock_begin(t) == 0);
			while ((err = tsock_next(t, 20000, &b)) == 0) {
				if (separate(k))
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
		other = start_rider(&good);
		/* The broken one lives on, and holds nobody up. */
		assert_int_equal(ended(other), 0);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		kill_and_reap(pid);
		kill_and_reap(producer);
	}
}

static void a_dead_producers_last_batch_stays_whole(void **state)
{
	struct source src = small;
	int to[2], from[2];
	pid_t producer, pid;
	char c = 0;

	(void)state;
	src.name = "orphan";
	src.n = 100000;
	for (enum kind k = STAGED; k < KINDS; k++) {
		struct rider me = { .src = &src, .kind = k, .batch = 16 };

		assert_int_equal(pipe(to) || pipe(from), 0);
		producer = start_producer(&src);
		pid = spawn();
		if (pid == 0) {
			tsock_batch *held, *b;
			struct seat s;
			int err;

			board(&s, &me);
			need(tsock_begin(s.t) == 0);
			need(tsock_next(s.t, 20000, &held) == 0);
			need(write(from[1], &c, 1) == 1);
			need(read(to[0], &c, 1) == 1);
			/* While one is held, no more than the ring has. */
			while ((err = tsock_next(s.t, -1, &b)) == 0)
				tsock_batch_release(b);
			need(err == TSOCK_ELOST || err == TSOCK_EHELD);
			ride(&s, held, 0);
			settle(&s);
			while ((err = tsock_next(s.t, -1, &b)) == 0)
				ride(&s, b, 0);
			need(err == TSOCK_ELOST);
			need(strstr(tsock_errmsg(), "orphan"));
			settle(&s);
			alight(&s);
			_exit(0);
		}
		assert_int_equal(read(from[0], &c, 1), 1);
		kill_and_reap(producer);
		assert_int_equal(write(to[1], &c, 1), 1);
		assert_int_equal(ended(pid), 0);
		for (unsigned i = 0; i < 2; i++) {
			close(to[i]);
			close(from[i]);
		}
	}
}

/* ---- which GPU, and which way ---- */

static void jobs_number_their_gpus_as_they_like(void **state)
{
	struct source src = small;
	struct rider r[8] = {
		{ .kind = SHARED, .device = 0, .visible = "3" },
		{ .kind = SHARED, .device = 3 },
		{ .kind = PRIVATE, .device = 1, .visible = "0,2" },
		{ .kind = LEGACY, .device = 0, .visible = "2,1" },
		{ .kind = LEGACY_PRIVATE, .device = 1, .visible = "2,1" },
		{ .kind = STAGED, .device = 2, .visible = "1,2,3" },
		{ .kind = SHARED, .device = 0 },
		{ .kind = HOST },
	};

	(void)state;
	src.name = "numbers";
	src.n = 203;
	for (unsigned i = 0; i < 8; i++) {
		r[i].batch = 16 - i;
		r[i].epochs = 2;
		r[i].floats = i % 2;
	}
	run(&src, r, 8);
}

/* In a child: open must fail like this. */
static void refused(const char *name, const char *value, int device,
		    uint32_t flags, int code, const char *text)
{
	pid_t pid = spawn();

	if (pid == 0) {
		struct tsock_opts o = TSOCK_OPTS_INIT;
		tsock *t;

		if (name)
			set(name, value);
		o.device = device;
		o.batch_size = 4;
		o.flags = flags;
		o.timeout_ms = 100;
		if (tsock_open("nobody", &o, &t) != code ||
		    !strstr(tsock_errmsg(), text))
			die("%s instead of %s: %s", tsock_errmsg(), text,
			    value ? value : "");
		_exit(0);
	}
	assert_int_equal(ended(pid), 0);
}

static void a_gpu_that_is_not_there_is_named_at_open(void **state)
{
	(void)state;
	refused(NULL, NULL, 99, 0, TSOCK_EARG, "99");
	refused(NULL, NULL, -2, 0, TSOCK_EARG, "-2");
	refused(NULL, NULL, -1, TSOCK_PRIVATE, TSOCK_EARG, "TSOCK_PRIVATE");
	refused(NULL, NULL, 0, TSOCK_WRITABLE, TSOCK_EARG, "TSOCK_WRITABLE");
	refused("CUDA_VISIBLE_DEVICES", "", 0, 0, TSOCK_ENOTSUP, "no GPU");
#ifdef SIMCUDA
	refused("SIMCUDA_DRIVER", "none", 0, 0, TSOCK_ENOTSUP, "driver");
	refused("SIMCUDA_DRIVER", "old", 0, 0, TSOCK_ENOTSUP, "driver");
#endif
}

#ifdef SIMCUDA
/* With that in a consumer's way, or in the producer's, it ends up there. */
static void falls_back(const char *name, const char *value, bool producers,
		       int path, uint32_t flags)
{
	struct source src = small;
	struct rider me = { .src = &src, .kind = SHARED, .batch = 16 };
	pid_t producer, pid;

	src.name = "back";
	src.n = 100;
	if (producers)
		setenv(name, value, 1);
	producer = start_producer(&src);
	unsetenv(name);
	pid = spawn();
	if (pid == 0) {
		struct seat s;
		struct tsock_opts o;

		if (!producers)
			set(name, value);
		me.kind = flags ? PRIVATE : SHARED;
		board(&s, &me);
		tsock_close(s.t);
		o = opts_of(&me);
		o.path = TSOCK_PATH_AUTO;
		need(tsock_open("back", &o, &s.t) == 0);
		need(tsock_path(s.t) == TSOCK_PATH_AUTO);
		for (unsigned e = 0; e < 2; e++) {
			need(tsock_begin(s.t) == 0);
			if (tsock_path(s.t) != path)
				die("%s: path %d", value, tsock_path(s.t));
			ride_epoch(&s);
		}
		alight(&s);
		_exit(0);
	}
	assert_int_equal(ended(pid), 0);
	kill_and_reap(producer);
}

static void what_cant_be_opened_is_come_by_in_another_way(void **state)
{
	static const char import[] = "cuMemImportFromShareableHandle=1";
	static const char neither[] = "cuMemImportFromShareableHandle=1,"
				      "cudaIpcOpenMemHandle=201";

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t flags = i ? TSOCK_PRIVATE : 0;

		falls_back("SIMCUDA_SEED", "1", false, TSOCK_PATH_VMM, flags);
		falls_back("SIMCUDA_FAULT", import, false, TSOCK_PATH_LEGACY,
			   flags);
		falls_back("SIMCUDA_FAULT", neither, false, TSOCK_PATH_STAGED,
			   flags);
		falls_back("SIMCUDA_NO_FD", "1", true, TSOCK_PATH_LEGACY,
			   flags);
		falls_back("CUDA_VISIBLE_DEVICES", "2", true, TSOCK_PATH_STAGED,
			   flags);
		falls_back("SIMCUDA_DRIVER", "none", true, TSOCK_PATH_STAGED,
			   flags);
	}
}

static void nothing_is_left_on_the_gpu(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		struct rider me = { .src = &small,
				    .kind = k,
				    .batch = 16,
				    .epochs = 1,
				    .streams = 2 };
		pid_t producer = start_producer(&small), pid = spawn();

		if (pid == 0) {
			struct simcuda_live live;

			ride_all(&me);
			/* The last batch may be given back by our thread. */
			for (unsigned i = 0;; i++) {
				simcuda_live(&live);
				if (!live.bytes && !live.allocations &&
				    !live.handles && !live.reservations &&
				    !live.mappings && !live.imports &&
				    !live.pinned && !live.streams &&
				    !live.events)
					break;
				need(i < 200);
				pause_us(5000);
			}
			need(live.contexts == 1);
			_exit(0);
		}
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}
#endif

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void nothing_spins_while_there_is_nothing_to_do(void **state)
{
	struct rider me = { .src = &small, .kind = SHARED, .batch = 16 };
	pid_t producer = start_producer(&small), pid = spawn();

	(void)state;
	if (pid == 0) {
		tsock_batch *b;
		struct seat s;
		double before;

		board(&s, &me);
		need(tsock_begin(s.t) == 0);
		for (unsigned i = 0; i < 5; i++) {
			need(tsock_next(s.t, 20000, &b) == 0);
			ride(&s, b, i);
		}
		settle(&s);
		pause_us(50000);
		before = cpu_s();
		pause_us(500000);
		need(cpu_s() - before < 0.05);
		alight(&s);
		_exit(0);
	}
	assert_int_equal(ended(pid), 0);
	kill_and_reap(producer);
}

/* ---- small print ---- */

struct dl {
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(struct dl *self);
	uint64_t flags;
	void *data;
	int32_t device, id, ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t offset;
};

static void ride_lent(enum kind kind)
{
	struct rider me = { .src = &small,
			    .kind = kind,
			    .device = 1,
			    .visible = "2,3",
			    .batch = 16,
			    .floats = true };
	tsock_batch *b;
	struct seat s;
	struct dl *d;
	void *out;

	board(&s, &me);
	need(tsock_begin(s.t) == 0);
	need(tsock_next(s.t, 20000, &b) == 0);
	if (kind == STAGED_PRIVATE) {
		need(tsock_batch_data(b, 3) == NULL);
		need(tsock_batch_dlpack(b, 3, 1, &out) == TSOCK_ENOTSUP);
		tsock_batch_release(b);
		alight(&s);
		return;
	}
	need(tsock_batch_dlpack(b, 3, 1, &out) == 0);
	d = out;
	need(d->device == 2 && d->id == 1 && d->flags == 1);
	need(d->data == tsock_batch_data(b, 3) && d->ndim == 4);
	if (separate(kind)) /* as it is stored */
		need(d->shape[3] == 3 && d->bits == 8);
	else
		need(d->shape[1] == 3 && d->bits == 32);
	/* Named late, by whom the tensor went to. */
	need(tsock_batch_use(b, s.stream[2]) == 0);
	need(tsock_batch_use(b, (void *)2) == TSOCK_EARG);
	need(tsock_batch_use(b, NULL) == 0);
	need(tsock_batch_use(b, (void *)1) == 0);
	tsock_batch_release(b);
	d->deleter(d);
	for (unsigned i = 0; i < 12; i++) {
		need(tsock_next(s.t, 20000, &b) == 0);
		ride(&s, b, i);
	}
	settle(&s);
	alight(&s);
}

static void tensors_say_on_which_gpu_they_are(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		pid_t producer = start_producer(&small), pid = spawn();

		if (pid == 0) {
			ride_lent(k);
			_exit(0);
		}
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}

static void a_forked_child_may_do_nothing(void **state)
{
	(void)state;
	for (enum kind k = STAGED; k < KINDS; k++) {
		struct rider me = { .src = &small, .kind = k, .batch = 16 };
		pid_t producer = start_producer(&small), pid = spawn();

		if (pid == 0) {
			tsock_batch *b;
			struct seat s;
			pid_t child;

			board(&s, &me);
			need(tsock_begin(s.t) == 0);
			need(tsock_next(s.t, 20000, &b) == 0);
			need(tsock_batch_use(b, s.stream[0]) == 0);
			child = spawn();
			if (child == 0) {
				need(tsock_batch_use(b, s.stream[0]) ==
				     TSOCK_EFORK);
				need(tsock_batch_convert(b, 0, &k, NULL) ==
				     TSOCK_EFORK);
				need(tsock_path(s.t) == TSOCK_EFORK);
				tsock_batch_release(b);
				tsock_close(s.t);
				if (SANITIZED) /* its own end is not fork-safe */
					_exit(0);
				exit(0);
			}
			need(ended(child) == 0);
			ride(&s, b, 0);
			for (unsigned i = 0; i < 12; i++) {
				need(tsock_next(s.t, 20000, &b) == 0);
				ride(&s, b, i);
			}
			settle(&s);
			alight(&s);
			_exit(0);
		}
		assert_int_equal(ended(pid), 0);
		kill_and_reap(producer);
	}
}

static void calls_that_make_no_sense_are_named(void **state)
{
	struct rider me = { .src = &small, .kind = HOST, .batch = 16 };
	pid_t producer = start_producer(&small);
	tsock_batch *b;
	struct seat s;

	(void)state;
	board(&s, &me);
	assert_int_equal(tsock_path(NULL), TSOCK_EARG);
	assert_int_equal(tsock_begin(s.t), 0);
	assert_int_equal(tsock_path(s.t), 0);
	assert_int_equal(tsock_next(s.t, 20000, &b), 0);
	assert_int_equal(tsock_batch_use(b, NULL), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "host memory"));
	assert_int_equal(tsock_batch_convert(b, 0, &s, NULL), TSOCK_EARG);
	assert_int_equal(tsock_batch_use(NULL, NULL), TSOCK_EARG);
	tsock_batch_release(b);
	alight(&s);
	kill_and_reap(producer);
}

/*
 * 60 slots on the host are 64 on a GPU, where whole mappings of 2 MiB need 32:
 * the two wrap at different samples, now one first, now the other.
 */
static void rings_of_different_lengths_wrap_each_at_its_own_end(void **state)
{
	struct source src = { .name = "lengths",
			      .n = 500,
			      .ring = 60,
			      .max_batch = 15,
			      .payload = 65536,
			      .image = SIDE };
	struct rider r[4] = { { .kind = SHARED },
			      { .kind = SHARED, .floats = true },
			      { .kind = PRIVATE },
			      { .kind = LEGACY } };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		r[i].batch = 15 - i;
		r[i].epochs = 2;
	}
	run(&src, r, 4);
}

#define TESTS_OF(name) \
	cmocka_unit_test(name##_alone), cmocka_unit_test(name##_by_two), \
		cmocka_unit_test(name##_by_eight)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS_OF(host),
		TESTS_OF(staged),
		TESTS_OF(staged_private),
		TESTS_OF(shared),
		TESTS_OF(private),
		TESTS_OF(legacy),
		TESTS_OF(legacy_private),
		cmocka_unit_test(
			a_batch_that_queued_work_reads_is_never_overwritten),
		cmocka_unit_test(several_streams_may_use_a_batch),
		cmocka_unit_test(the_same_with_nobody_looking_in_between),
		cmocka_unit_test(readers_that_leave_with_work_queued),
		cmocka_unit_test(a_stream_that_is_captured_is_left_alone),
		cmocka_unit_test(who_holds_too_much_is_told_so),
		cmocka_unit_test(
			readers_that_are_killed_while_their_kernels_read),
		cmocka_unit_test(an_error_in_one_context_is_its_owners_alone),
		cmocka_unit_test(a_dead_producers_last_batch_stays_whole),
		cmocka_unit_test(jobs_number_their_gpus_as_they_like),
		cmocka_unit_test(a_gpu_that_is_not_there_is_named_at_open),
#ifdef SIMCUDA
		cmocka_unit_test(what_cant_be_opened_is_come_by_in_another_way),
		cmocka_unit_test(nothing_is_left_on_the_gpu),
#endif
		cmocka_unit_test(nothing_spins_while_there_is_nothing_to_do),
		cmocka_unit_test(tensors_say_on_which_gpu_they_are),
		cmocka_unit_test(a_forked_child_may_do_nothing),
		cmocka_unit_test(calls_that_make_no_sense_are_named),
		cmocka_unit_test(
			rings_of_different_lengths_wrap_each_at_its_own_end),
	};

	own_folder();
	return cmocka_run_group_tests_name("gpu consumers", tests, NULL, NULL);
}
