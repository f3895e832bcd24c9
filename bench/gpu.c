/*
 * gpu.c - what GPUs cost: copying there, converting there, handing over, and
 * what the 2nd to the 8th consumer on a GPU adds.
 *
 * Speeds of the hardware are measured on a real GPU only; on the simulated
 * runtime what is counted is counted all the same, and the title says so.
 * Whoever forks has not used CUDA: everything runs in children.
 *
 * usage: gpu
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "mem/gpu.h"
#include "stage/stage.h"
#include "tsock/tsock.h"

#if __has_include("simcuda.h")
#include <cuda_runtime_api.h>
#define SIMULATED 1
#define WHERE " (simulated)"
#else
#define SIMULATED 0
#define WHERE ""
#endif

#define SIDE 128
#define IMAGE (UINT64_C(3) * SIDE * SIDE)
#define RING 512
#define BATCH 64
#define MAX_CONSUMERS 8
#define MAX_ROUNDS 15
#define STEPS 100
#define PAUSE_NS 200000
#define STUCK_NS (INT64_C(60) * 1000000000)

static const int counts[] = { 1, 2, 4, 8 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

struct shared {
	_Atomic bool stop, end; /* for consumers; for the producer */
	_Atomic int made_limit; /* the producer stops there; 0: never */
	_Atomic uint64_t uploaded;
	_Atomic uint64_t batches[MAX_CONSUMERS];
	_Atomic uint64_t tensors; /* bytes that consumers took by themselves */
	_Atomic int devices;
	_Atomic uint64_t seen;
	_Atomic int64_t stamp;
	char name[64], why[256];
	double a[MAX_ROUNDS], b[MAX_ROUNDS], ratio[MAX_ROUNDS];
	double hand[STEPS];
};

static struct shared *sh;
static char stream_name[64];

#if SIMULATED
/* The simulated runtime is a library of its own: count on the way to it. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n,
			    enum cudaMemcpyKind kind, cudaStream_t s)
{
	static __typeof__(&cudaMemcpyAsync) real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "cudaMemcpyAsync");
	if (sh && kind == cudaMemcpyHostToDevice)
		atomic_fetch_add(&sh->uploaded, n);
	return real(dst, src, n, kind, s);
}
#endif

static void must(int err, const char *what)
{
	if (err)
		bench_die("%s: %s", what, tsock_errmsg());
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void reap(pid_t pid, const char *who)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("%s ended with status %#x", who, status);
}

static void in_child(void (*fn)(void), const char *who)
{
	pid_t pid = child();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	reap(pid, who);
}

static void look(void)
{
	struct tsi_gpu_info info;
	unsigned n;

	if (tsi_gpu_count(&n) || tsi_gpu_info(0, &info)) {
		snprintf(sh->why, sizeof(sh->why), "%s", tsock_errmsg());
		return;
	}
	atomic_store(&sh->devices, (int)n);
	snprintf(sh->name, sizeof(sh->name), "%s", info.name);
}

static void print(const char *name, double value, const char *unit,
		  const char *against, double ratio, double spread)
{
	struct bench_result r = { .bench = SIMULATED ? "gpu-sim" : "gpu",
				  .name = name,
				  .value = value,
				  .unit = unit,
				  .against = against,
				  .ratio = ratio,
				  .spread = spread };

	bench_print(&r);
}

/* ------------------------------------------------------------------------
 * The hardware's speeds, with nobody else there
 */

static void wait_for(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	must(tsi_gpu_event_record(e, s), "record");
	must(tsi_gpu_event_wait(e), "wait");
}

/* Seconds for count samples through a stage, as its thread does it. */
static double through_stage(struct tsi_stage *st, uint64_t from, uint64_t count)
{
	unsigned chunk = tsi_stage_chunk(st), lanes = tsi_stage_lanes(st);
	uint64_t begun = 0, ended = 0;
	int64_t t = tsi_now_ns();

	for (; ended < count; ended++) {
		while (begun < count && begun - ended < lanes) {
			must(tsi_stage_start(st, (unsigned)(begun % lanes),
					     from + begun * chunk, chunk),
			     "stage");
			begun++;
		}
		must(tsi_stage_finish(st, (unsigned)(ended % lanes)), "stage");
	}
	return (double)(tsi_now_ns() - t) / 1e9;
}

static void upload(void)
{
	struct tsock_field f = { .name = "image",
				 .dtype = TSOCK_U8,
				 .flags = TSOCK_FIELD_IMAGE,
				 .ndim = 3,
				 .shape = { 224, 224, 3 } };
	struct tsi_ring_ident id = { .epoch_len = 1 << 20, .end = 1 << 20 };
	struct tsi_stage_parts p = { .kind = TSI_STAGE_UPLOAD };
	struct tsi_geometry host, gpu;
	struct tsi_ring from, to;
	struct tsi_gpu_info info;
	struct tsi_gpu_event *e;
	struct tsi_stage *st;
	tsi_gpu_stream s;
	uint64_t bytes, n = 2048 / 64 * 4;
	void *pinned;

	must(tsi_gpu_info(0, &info), "info");
	must(tsi_geometry_make(&f, 1, 2048, 0, 0, &host), "geometry");
	must(tsi_geometry_for(&f, 1, 2048, 0, 0, info.granularity, &gpu),
	     "geometry");
	must(tsi_ring_create(&host, &id, &from), "ring");
	must(tsi_ring_create_gpu(
		     &gpu, &id, 0,
		     info.vmm_fd ? TSOCK_PATH_VMM : TSOCK_PATH_LEGACY, &to),
	     "GPU ring");
	must(tsi_gpu_pin(from.data[0].base, from.data[0].len), "pin");
	p.from = &from;
	p.to = &to;
	must(tsi_stage_create(&p, &st), "stage");
	bytes = 64 * host.field[0].sample_bytes;
	must(tsi_gpu_host_alloc(2048 / 64 * bytes, &pinned), "pinned memory");
	memset(pinned, 1, 2048 / 64 * bytes);
	must(tsi_gpu_stream_create(0, &s), "stream");
	must(tsi_gpu_event_create(0, &e), "event");
	through_stage(st, 0, n);
	for (int r = 0; r < MAX_ROUNDS; r++) {
		int64_t t = tsi_now_ns();

		for (uint64_t i = 0; i < n; i++)
			must(tsi_gpu_upload(0, s,
					    to.gpu[0].base + i % 32 * bytes,
					    pinned + i % 32 * bytes, bytes),
			     "copy");
		wait_for(e, s);
		sh->b[r] = (double)(n * bytes) /
			   ((double)(tsi_now_ns() - t) / 1e9) / 1e9;
		sh->a[r] = (double)(n * bytes) / through_stage(st, 0, n) / 1e9;
		sh->ratio[r] = sh->a[r] / sh->b[r];
	}
	tsi_stage_destroy(st);
	tsi_gpu_unpin(from.data[0].base, from.data[0].len);
}

static struct tsi_view_spec wanted;

static void convert(void)
{
	uint64_t n = 256, elems = n * 224 * 224 * 3;
	uint64_t wide = tsock_dtype_size(wanted.dtype);
	uint64_t bytes = elems * (1 + wide) / 2; /* read and written each */
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;
	void *src, *dst, *other;

	must(tsi_gpu_alloc(0, elems, &src), "memory");
	must(tsi_gpu_alloc(0, elems * wide, &dst), "memory");
	must(tsi_gpu_alloc(0, bytes, &other), "memory");
	must(tsi_gpu_stream_create(0, &s), "stream");
	must(tsi_gpu_event_create(0, &e), "event");
	for (int r = -1; r < MAX_ROUNDS; r++) {
		int64_t t = tsi_now_ns();
		double mine, copy;

		for (int i = 0; i < 50; i++)
			must(tsi_gpu_convert(0, s, &wanted, src, n, 224, 224,
					     dst),
			     "convert");
		wait_for(e, s);
		mine = 100. * (double)bytes / (double)(tsi_now_ns() - t);
		t = tsi_now_ns();
		for (int i = 0; i < 50; i++)
			must(tsi_gpu_copy(0, s, other, dst, bytes), "copy");
		wait_for(e, s);
		copy = 100. * (double)bytes / (double)(tsi_now_ns() - t);
		if (r < 0)
			continue;
		sh->a[r] = mine;
		sh->ratio[r] = mine / copy;
	}
}

static void hardware(void)
{
	static const struct {
		const char *name;
		uint32_t dtype, layout;
	} kind[] = { { "convert to f16 CHW", TSOCK_F16, TSOCK_CHW },
		     { "convert to bf16 CHW", TSOCK_BF16, TSOCK_CHW },
		     { "convert to f32 CHW", TSOCK_F32, TSOCK_CHW },
		     { "convert to f16 HWC", TSOCK_F16, TSOCK_HWC } };

	in_child(upload, "the upload's process");
	print("host to GPU by the stage", bench_median(sh->a, MAX_ROUNDS),
	      "GB/s", "pinned copy", bench_median(sh->ratio, MAX_ROUNDS),
	      bench_spread(sh->ratio, MAX_ROUNDS));
	for (unsigned i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		wanted = (struct tsi_view_spec){ .dtype = kind[i].dtype,
						 .layout = kind[i].layout,
						 .normalize = TSOCK_MEAN_STD,
						 .std = { 1, 1, 1 } };
		in_child(convert, "the conversion's process");
		print(kind[i].name, bench_median(sh->a, MAX_ROUNDS), "GB/s",
		      "device copy, same bytes",
		      bench_median(sh->ratio, MAX_ROUNDS),
		      bench_spread(sh->ratio, MAX_ROUNDS));
	}
}

/* ------------------------------------------------------------------------
 * A producer of nothing in particular, and consumers
 */

static tsock_server *serve(uint64_t bytes, uint32_t ring, uint32_t batch)
{
	const struct tsock_field fields[] = {
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = bytes == IMAGE ? TSOCK_FIELD_IMAGE : 0,
		  .ndim = bytes == IMAGE ? 3 : 1,
		  .shape = { bytes == IMAGE ? SIDE : bytes, SIDE, 3 } },
		{ .name = "label", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	o.nfields = 2;
	o.fields = fields;
	o.epoch_len = UINT64_C(1) << 40;
	o.ring = ring;
	o.max_batch = batch;
	o.join_window = ring / 4;
	must(tsock_serve_open(stream_name, &o, &s), "serve");
	return s;
}

/* Slots stay as they are: making samples is not what is measured. */
static void produce(void)
{
	tsock_server *s = serve(IMAGE, RING, BATCH);
	uint64_t first, made = 0;

	while (!atomic_load(&sh->end)) {
		int most = atomic_load(&sh->made_limit), n;

		if (most && made >= (uint64_t)most) {
			usleep(200000);
			continue;
		}
		n = tsock_serve_claim(s, 16, 100, &first);
		if (n == TSOCK_EAGAIN)
			continue;
		if (n <= 0)
			break;
		tsock_serve_commit(s, first, (unsigned)n);
		made += (uint64_t)n;
	}
	tsock_serve_close(s);
}

static void consume(bool private, unsigned i)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	uint64_t bytes = BATCH * IMAGE * 2;
	tsi_gpu_stream stream;
	void *dst[2];
	unsigned turn = 0;
	tsock_batch *b;
	tsock *t;

	o.batch_size = BATCH;
	o.device = 0;
	o.dtype = TSOCK_F16;
	o.layout = TSOCK_CHW;
	o.normalize = TSOCK_UNIT;
	o.flags = private ? TSOCK_PRIVATE : 0;
	must(tsock_open(stream_name, &o, &t), "consumer");
	must(tsi_gpu_stream_create(0, &stream), "stream");
	if (!private)
		bytes = 4096; /* it looks at a page of each batch */
	for (unsigned k = 0; k < 2; k++)
		must(tsi_gpu_alloc(0, bytes, &dst[k]), "memory");
	if (private)
		atomic_fetch_add(&sh->tensors, 2 * bytes);
	must(tsock_begin(t), "begin");
	while (!atomic_load(&sh->stop)) {
		int err = tsock_next(t, 100, &b);

		if (err == TSOCK_EAGAIN)
			continue;
		must(err, "next");
		if (private) {
			must(tsock_batch_convert(b, 0, dst[turn++ % 2], stream),
			     "convert");
		} else {
			must(tsock_batch_use(b, stream), "use");
			must(tsi_gpu_copy(0, stream, dst[turn++ % 2],
					  tsock_batch_data(b, 0), bytes),
			     "copy");
		}
		tsock_batch_release(b);
		atomic_fetch_add(&sh->batches[i], 1);
	}
	tsock_close(t);
}

struct crowd {
	pid_t producer, consumer[MAX_CONSUMERS];
	int n;
};

static void begin_crowd(struct crowd *c, bool private, int n)
{
	int64_t from = tsi_now_ns();

	atomic_store(&sh->stop, false);
	atomic_store(&sh->end, false);
	atomic_store(&sh->tensors, 0);
	c->n = n;
	c->producer = child();
	if (c->producer == 0) {
		produce();
		_exit(0);
	}
	for (int i = 0; i < n; i++) {
		atomic_store(&sh->batches[i], 0);
		c->consumer[i] = child();
		if (c->consumer[i] == 0) {
			consume(private, (unsigned)i);
			_exit(0);
		}
	}
	/* Twice round the ring. */
	for (int i = 0; i < n; i++) {
		while (atomic_load(&sh->batches[i]) < 2 * RING / BATCH) {
			usleep(1000);
			if (tsi_now_ns() - from > STUCK_NS)
				bench_die("consumer %d stands still", i);
		}
	}
}

static void end_crowd(const struct crowd *c)
{
	atomic_store(&sh->stop, true);
	for (int i = 0; i < c->n; i++)
		reap(c->consumer[i], "a consumer");
	atomic_store(&sh->end, true);
	reap(c->producer, "the producer");
}

static struct tsock_stats query(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	must(tsock_query(stream_name, 10000, &st), "query");
	return st;
}

/* ------------------------------------------------------------------------
 * k consumers
 */

struct turn {
	double batch_us, memory, cpu, uploaded;
};

/* Samples made and bytes copied by a moment: the bytes in its middle. */
static void count(double *made, double *bytes, uint64_t *memory)
{
	struct tsock_stats before = query(), after;
	uint64_t n = atomic_load(&sh->uploaded);

	after = query();
	*made = (double)(before.produced + after.produced) / 2;
	*bytes = (double)n;
	*memory = after.memory;
}

static uint64_t delivered(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += atomic_load(&sh->batches[i]);
	return sum;
}

static void take_turn(bool private, int n, struct turn *out)
{
	double made[2], bytes[2];
	uint64_t had, memory;
	struct crowd c;
	int64_t t, cpu;

	begin_crowd(&c, private, n);
	count(&made[0], &bytes[0], &memory);
	had = delivered(n);
	t = tsi_now_ns();
	cpu = bench_cpu_ns(c.producer);
	usleep((useconds_t)bench_quick(1500, 500) * 1000);
	had = delivered(n) - had;
	t = tsi_now_ns() - t;
	cpu = bench_cpu_ns(c.producer) - cpu;
	count(&made[1], &bytes[1], &memory);
	end_crowd(&c);
	if (!had)
		bench_die("nothing was delivered");
	out->batch_us = (double)t / 1000 * n / (double)had;
	/* Everybody gets every sample. */
	out->cpu = (double)cpu / 1000 * n / (double)(had * BATCH);
	out->uploaded = (bytes[1] - bytes[0]) / (made[1] - made[0]);
	/* The host's ring isn't on the GPU. */
	out->memory = (double)(memory - RING * (IMAGE + 8) +
			       atomic_load(&sh->tensors)) /
		      1048576;
}

static void crowd_row(bool private, int n, const char *what, double value,
		      const char *unit, const char *against, double ratio)
{
	char name[64];

	snprintf(name, sizeof(name), "%s, %d consumer%s: %s",
		 private ? "private" : "shared", n, n > 1 ? "s" : "", what);
	print(name, value, unit, against, ratio, 0);
}

static void crowds(void)
{
	struct turn t[2][NCOUNTS];

	for (unsigned p = 0; p < 2; p++) {
		for (unsigned k = 0; k < NCOUNTS; k++) {
			struct turn *v = &t[p][k];
			const struct turn *one = &t[p][0];

			take_turn(p, counts[k], v);
			crowd_row(p, counts[k], "time", v->batch_us, "us/batch",
				  p ? "shared" : "1 consumer",
				  v->batch_us / (p ? t[0][k].batch_us
						   : one->batch_us));
			crowd_row(p, counts[k], "on the GPU", v->memory, "MiB",
				  p ? "shared" : "1 consumer",
				  v->memory /
					  (p ? t[0][k].memory : one->memory));
			crowd_row(p, counts[k], "producer", v->cpu, "us/sample",
				  "1 consumer", v->cpu / one->cpu);
			if (SIMULATED)
				crowd_row(p, counts[k], "copied", v->uploaded,
					  "B/sample", "float32 images",
					  v->uploaded / (double)(4 * IMAGE));
		}
	}
}

/* ------------------------------------------------------------------------
 * Handing over, and doing nothing
 */

#define SMALL 1024

static void receive(void)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock_batch *b;
	tsock *t;

	bench_pin(0, 1);
	o.batch_size = 1;
	o.device = 0;
	must(tsock_open(stream_name, &o, &t), "consumer");
	must(tsock_begin(t), "begin");
	for (int i = 0; i < STEPS + 10; i++) {
		must(tsock_next(t, -1, &b), "next");
		if (i >= 10)
			sh->hand[i - 10] = (double)(tsi_now_ns() -
						    atomic_load(&sh->stamp));
		tsock_batch_release(b);
		atomic_fetch_add(&sh->seen, 1);
	}
	tsock_close(t);
}

static void give(void)
{
	tsock_server *s = serve(SMALL, 64, 4);
	struct tsi_gpu_event *e;
	tsi_gpu_stream stream;
	void *host, *gpu;
	uint64_t seq;

	for (uint64_t i = 0; i < STEPS + 10; i++) {
		int64_t t = tsi_now_ns();

		if (tsock_serve_claim(s, 1, 20000, &seq) != 1)
			bench_die("claim: %s", tsock_errmsg());
		while (atomic_load(&sh->seen) < i)
			if (tsi_now_ns() - t > STUCK_NS)
				bench_die("the consumer got nothing");
		for (t = tsi_now_ns(); tsi_now_ns() - t < PAUSE_NS;)
			;
		atomic_store(&sh->stamp, tsi_now_ns());
		tsock_serve_commit(s, seq, 1);
	}
	while (atomic_load(&sh->seen) < STEPS + 10)
		usleep(1000);
	/* The same bytes to the GPU, and seeing that they are there. */
	must(tsi_gpu_stream_create(0, &stream), "stream");
	must(tsi_gpu_event_create(0, &e), "event");
	must(tsi_gpu_host_alloc(SMALL, &host), "memory");
	must(tsi_gpu_alloc(0, SMALL, &gpu), "memory");
	for (int r = -1; r < MAX_ROUNDS; r++) {
		int64_t t;

		usleep(1000);
		t = tsi_now_ns();
		must(tsi_gpu_upload(0, stream, gpu, host, SMALL), "copy");
		wait_for(e, stream);
		if (r >= 0)
			sh->b[r] = (double)(tsi_now_ns() - t);
	}
	tsock_serve_close(s);
}

static void handoff(void)
{
	pid_t consumer, producer;
	double copy, all;

	atomic_store(&sh->seen, 0);
	consumer = child();
	if (consumer == 0) {
		receive();
		_exit(0);
	}
	producer = child();
	if (producer == 0) {
		give();
		_exit(0);
	}
	reap(consumer, "the consumer");
	reap(producer, "the producer");
	copy = bench_median(sh->b, MAX_ROUNDS) / 1000;
	all = bench_median(sh->hand, STEPS) / 1000;
	print("1 KiB to the GPU, seen there", copy, "us", NULL, 0,
	      bench_spread(sh->b, MAX_ROUNDS));
	print("commit to batch in hand, p50", all, "us", "that copy",
	      all / copy, bench_spread(sh->hand, STEPS));
	print("hand-off after the copy, p50", all - copy, "us", NULL, 0, 0);
}

static void idle(void)
{
	struct crowd c;
	int64_t cpu[2];

	atomic_store(&sh->made_limit, 40 * RING);
	begin_crowd(&c, true, 1);
	/* The producer makes no more: the consumer waits for what never is. */
	for (uint64_t last = 0, now;; last = now) {
		now = atomic_load(&sh->batches[0]);
		if (now == last && now)
			break;
		usleep(300000);
	}
	cpu[0] = bench_cpu_ns(c.producer);
	cpu[1] = bench_cpu_ns(c.consumer[0]);
	usleep(1000000);
	cpu[0] = bench_cpu_ns(c.producer) - cpu[0];
	cpu[1] = bench_cpu_ns(c.consumer[0]) - cpu[1];
	print("idle producer", (double)cpu[0] / 1e6, "CPU ms/s", NULL, 0, 0);
	print("waiting consumer", (double)cpu[1] / 1e6, "CPU ms/s", NULL, 0, 0);
	end_crowd(&c);
}

int main(void)
{
	char title[128];

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	snprintf(stream_name, sizeof(stream_name), "bench-gpu-%d",
		 (int)getpid());
	in_child(look, "looking for GPUs");
	if (!atomic_load(&sh->devices))
		bench_skip("%s", sh->why);
	bench_cpus();
	snprintf(title, sizeof(title), "gpu: %s" WHERE, sh->name);
	bench_head(title);
	if (!SIMULATED) {
		hardware();
		handoff();
	}
	crowds();
	idle();
	return 0;
}
