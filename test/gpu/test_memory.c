/* SPDX-License-Identifier: MIT */
/*
 * test_memory.c - rings on a GPU fit its memory and the limit: a consumer that
 * needs more is refused, with the sizes, and nobody else notices.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "mem/gpu.h"
#include "test/lib/gpu_reader.h"

#define MIB (UINT64_C(1) << 20)

static const struct source model = { .name = "memory",
				     .n = 400,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 20000,
				     .image = SIDE };

/* A reader that stays until it's killed, and checks everything. */
static pid_t stay(const struct source *src, enum transport transport,
		  bool floats)
{
	struct reader_proc r = { .src = src,
				 .transport = transport,
				 .batch = 16,
				 .epochs = 100000,
				 .floats = floats };

	/* The child has a copy of it. */
	return gpu_reader_start(&r);
}

/* Bytes in all rings of a stream that has one more reader. */
static uint64_t taken_with(enum transport transport, bool floats)
{
	pid_t producer = stream_start_producer(&model), pid;
	uint64_t bytes;

	pid = stay(&model, transport, floats);
	stream_wait_readers("memory", 1);
	bytes = stream_stats("memory").memory;
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
	return bytes;
}

/* What joining says, and by what code; "" if it's fine. */
struct answer {
	int code;
	char text[512];
};

static void ask(const struct reader_proc *r, int device, uint32_t dtype,
		struct answer *a)
{
	struct reader_proc on = *r;
	struct tsock_opts o;
	tsock *t;

	memset(a, 0, sizeof(*a));
	on.device = device;
	o = gpu_reader_opts(&on);
	o.dtype = dtype;
	if (dtype) {
		o.layout = TSOCK_CHW;
		o.normalize = TSOCK_UNIT;
	}
	a->code = tsock_open(r->src->name, &o, &t);
	if (!a->code) {
		a->code = tsock_begin(t);
		if (a->code)
			snprintf(a->text, sizeof(a->text), "%s",
				 tsock_errmsg());
		tsock_close(t);
		return;
	}
	snprintf(a->text, sizeof(a->text), "%s", tsock_errmsg());
}

static void expect(const struct reader_proc *r, int device, uint32_t dtype,
		   int code, const char *text, const char *also)
{
	struct answer a;
	pid_t pid = proc_spawn();

	if (pid == 0) {
		ask(r, device, dtype, &a);
		if (a.code != code || !strstr(a.text, text) ||
		    !strstr(a.text, also))
			die("%d: %s", a.code, a.text);
		_exit(0);
	}
	assert_int_equal(proc_ended(pid), 0);
}

static void still_reads(const char *name, pid_t pid)
{
	uint64_t head = stream_stats(name).head;

	for (unsigned i = 0; stream_stats(name).head < head + 100; i++) {
		assert_true(i < 12000);
		proc_pause_us(5000);
	}
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
}

static void a_join_beyond_the_budget_is_refused_with_the_sizes(void **state)
{
	uint64_t host = taken_with(HOST, false);
	uint64_t raw = taken_with(SHARED, false) - host;
	struct source src = model;
	struct reader_proc r = { .src = &src,
				 .transport = SHARED,
				 .batch = 16 };
	struct reader_proc own = { .src = &src,
				   .transport = STORED,
				   .batch = 16 };
	pid_t producer, pid, other;
	char sizes[128];

	(void)state;
	/* Room for the samples as they are, and for no float of them. */
	src.gpu_memory = raw + raw / 2;
	producer = stream_start_producer(&src);
	pid = stay(&src, SHARED, false);
	other = stay(&src, HOST, false);
	stream_wait_readers("memory", 2);
	snprintf(sizes, sizeof(sizes),
		 "%llu MiB of the %llu MiB that the producer may use "
		 "(--gpu-memory) are taken",
		 (unsigned long long)(raw / MIB),
		 (unsigned long long)(src.gpu_memory / MIB));
	expect(&r, 0, TSOCK_F32, TSOCK_EREFUSED, "need a ring of", sizes);
	/* Private ones share the samples as they are; the host has its own. */
	expect(&own, 0, TSOCK_F32, 0, "", "");
	r.transport = HOST;
	expect(&r, -1, TSOCK_F32, 0, "", "");
	still_reads("memory", pid);
	still_reads("memory", other);
	proc_kill_and_reap(pid);
	proc_kill_and_reap(other);
	proc_kill_and_reap(producer);
}

/* Each GPU has a budget of its own, and what nobody reads makes room. */
static void what_nobody_reads_makes_room(void **state)
{
	uint64_t host = taken_with(HOST, false);
	uint64_t both = taken_with(SHARED, true) - host;
	struct source src = model;
	struct reader_proc r = { .src = &src,
				 .transport = SHARED,
				 .batch = 16 };
	pid_t producer, pid, other;

	(void)state;
	src.gpu_memory = both;
	producer = stream_start_producer(&src);
	other = stay(&src, HOST, false);
	pid = stay(&src, SHARED, true);
	stream_wait_readers("memory", 2);
	expect(&r, 0, TSOCK_F16, TSOCK_EREFUSED, "--gpu-memory", "MiB");
	proc_kill_and_reap(pid);
	stream_wait_readers("memory", 1);
	expect(&r, 0, TSOCK_F16, 0, "", "");
	still_reads("memory", other);
	proc_kill_and_reap(other);
	proc_kill_and_reap(producer);
}

/*
 * A large ring is page-locked in chunks, and no copy may lie in two; small
 * chunks stand for a large ring here.
 */
static void a_ring_of_many_page_locked_chunks_is_copied(void **state)
{
	struct reader_proc r[] = { { .transport = SHARED, .floats = true },
				   { .transport = STORED },
				   { .transport = STAGED } };
	pid_t producer, pid[3];

	(void)state;
	tsi_gpu_pin_chunk(3 * 4096); /* less than a sample of the payload */
	producer = stream_start_producer(&model);
	tsi_gpu_pin_chunk(0);
	for (unsigned k = 0; k < 3; k++) {
		r[k].src = &model;
		r[k].batch = 16 - k;
		r[k].epochs = 2;
		pid[k] = gpu_reader_start(&r[k]);
	}
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(proc_ended(pid[k]), 0);
	proc_kill_and_reap(producer);
}

#ifdef SIMCUDA

/* Where two functions have one name, the program's own goes first. */
static _Atomic unsigned allocated;

cudaError_t cudaMalloc(void **to, size_t bytes)
{
	cudaError_t (*real)(void **, size_t);
	void *fn = dlsym(RTLD_NEXT, "cudaMalloc");

	memcpy(&real, &fn, sizeof(real));
	atomic_fetch_add(&allocated, 1);
	return real(to, bytes);
}

cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned flags)
{
	cudaError_t (*real)(void **, size_t, unsigned);
	void *fn = dlsym(RTLD_NEXT, "cudaHostAlloc");

	memcpy(&real, &fn, sizeof(real));
	atomic_fetch_add(&allocated, 1);
	return real(to, bytes, flags);
}

/* An event that is only looked at needs no interrupt at its end. */
static _Atomic unsigned event_flags;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags)
{
	cudaError_t (*real)(cudaEvent_t *, unsigned);
	void *fn = dlsym(RTLD_NEXT, "cudaEventCreateWithFlags");

	memcpy(&real, &fn, sizeof(real));
	atomic_fetch_or(&event_flags, flags);
	return real(to, flags);
}

/* What a batch in hand and those given back take is there from the start. */
static void read_and_allocate_nothing(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;
	unsigned had;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	had = allocated;
	for (unsigned i = 0; i < 10; i++) {
		need(tsock_next(s.t, -1, &b) == 0);
		tsock_batch_release(b);
	}
	if (allocated != had)
		die("%u allocations, %u at the begin", allocated, had);
	need(!(event_flags & cudaEventBlockingSync));
	need(r->transport == STAGED_STORED || event_flags);
	gpu_reader_close(&s);
}

static void a_job_that_copies_by_itself_allocates_when_it_begins(void **state)
{
	struct reader_proc r[] = { { .transport = STAGED, .floats = true },
				   { .transport = STAGED_STORED } };
	pid_t producer = stream_start_producer(&model);

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		r[k].src = &model;
		r[k].batch = 16;
		assert_int_equal(proc_ended(gpu_reader_start_as(
					 read_and_allocate_nothing, &r[k])),
				 0);
	}
	proc_kill_and_reap(producer);
}

static void a_full_gpu_is_named_at_join(void **state)
{
	static const char *const fault[] = { "cuMemCreate:6+=2",
					     "cuMemMap:8+=2",
					     "cuMemAddressReserve:6+=2" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct reader_proc r = { .src = &model,
					 .transport = SHARED,
					 .batch = 16 };
		pid_t producer, pid;

		need(setenv("SIMCUDA_FAULT", fault[i], 1) == 0);
		producer = stream_start_producer(&model);
		unsetenv("SIMCUDA_FAULT");
		pid = stay(&model, SHARED, false);
		stream_wait_readers("memory", 1);
		expect(&r, 0, TSOCK_F32, TSOCK_ENOMEM, "no room for a ring of",
		       i ? "on GPU 0" : "are free");
		/* Asking again is answered in the same way. */
		expect(&r, 0, TSOCK_F32, TSOCK_ENOMEM, "on GPU 0", "");
		still_reads("memory", pid);
		proc_kill_and_reap(pid);
		proc_kill_and_reap(producer);
	}
}

/* Real memory this time: the first ring fits, the second doesn't, and does when
 * nobody reads the first any more. */
static void a_full_gpu_is_freed_of_what_nobody_reads(void **state)
{
	struct reader_proc r = { .src = &model,
				 .transport = SHARED,
				 .batch = 16 };
	uint64_t host = taken_with(HOST, false);
	uint64_t both = taken_with(SHARED, true) - host;
	pid_t producer, pid, other;
	char bytes[32];

	(void)state;
	snprintf(bytes, sizeof(bytes), "%llu",
		 (unsigned long long)(both + MIB));
	need(setenv("SIMCUDA_MEM", bytes, 1) == 0);
	need(setenv("SIMCUDA_CONTEXT_MEM", "0", 1) == 0);
	producer = stream_start_producer(&model);
	unsetenv("SIMCUDA_MEM");
	unsetenv("SIMCUDA_CONTEXT_MEM");
	other = stay(&model, HOST, false);
	pid = stay(&model, SHARED, true);
	stream_wait_readers("memory", 2);
	expect(&r, 0, TSOCK_F16, TSOCK_ENOMEM, "on GPU 0", "are free");
	/* Another GPU isn't full. */
	expect(&r, 1, TSOCK_F16, 0, "", "");
	proc_kill_and_reap(pid);
	stream_wait_readers("memory", 1);
	/* Rings are kept for a while after their last reader, if they may. */
	expect(&r, 0, TSOCK_F16, 0, "", "");
	still_reads("memory", other);
	proc_kill_and_reap(other);
	proc_kill_and_reap(producer);
}

/* Lines by the producer about page-locking; shared with it. */
static _Atomic unsigned *said;

static void count_lines(void *arg, int level, const char *line)
{
	if (level == TSOCK_LOG_WARN && strstr(line, "page-locked"))
		atomic_fetch_add(said, 1);
	else
		proc_log_line(arg, level, line);
}

/* Copies are slower then, and right all the same. */
static void a_ring_that_cant_be_page_locked_is_said_once(void **state)
{
	static const char *const how[][2] = {
		{ "SIMCUDA_NO_REGISTER", "1" },
		{ "SIMCUDA_FAULT", "cuMemHostRegister:2=2" },
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct source src = model;
		struct reader_proc r[3] = {
			{ .transport = SHARED, .device = 0, .floats = true },
			{ .transport = STORED, .device = 1 },
			{ .transport = STAGED, .device = 2 },
		};
		pid_t producer, pid[3];

		src.fanout = TSOCK_FANOUT_HOST;
		src.min_consumers = 3;
		atomic_store(said, 0);
		producer = proc_spawn();
		if (producer == 0) {
			tsock_server *s;

			tsock_set_logger(count_lines, NULL);
			setenv(how[i][0], how[i][1], 1);
			s = stream_serve(&src);
			stream_produce(s, &src);
			tsock_serve_close(s);
			_exit(0);
		}
		for (unsigned k = 0; k < 3; k++) {
			r[k].src = &src;
			r[k].batch = 16 - k;
			r[k].epochs = 2;
			pid[k] = gpu_reader_start(&r[k]);
		}
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(proc_ended(pid[k]), 0);
		assert_int_equal(atomic_load(said), 1);
		proc_kill_and_reap(producer);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_join_beyond_the_budget_is_refused_with_the_sizes),
		cmocka_unit_test(what_nobody_reads_makes_room),
		cmocka_unit_test(a_ring_of_many_page_locked_chunks_is_copied),
#ifdef SIMCUDA
		cmocka_unit_test(a_full_gpu_is_named_at_join),
		cmocka_unit_test(a_full_gpu_is_freed_of_what_nobody_reads),
		cmocka_unit_test(a_ring_that_cant_be_page_locked_is_said_once),
		cmocka_unit_test(
			a_job_that_copies_by_itself_allocates_when_it_begins),
#endif
	};

#ifdef SIMCUDA
	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(said != MAP_FAILED);
#endif
	proc_own_folder();
	if (!gpu_reader_gpus())
		return 77;
	return cmocka_run_group_tests_name("GPU memory", tests, NULL, NULL);
}
