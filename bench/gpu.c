/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - what GPUs cost: what the 2nd to the 8th consumer on a GPU adds, and a
 * consumer that waits.  Copying and converting are in gpuspeed.c, handing over
 * is in gpuhandoff.c, copying beside decoding in gpuoverlap.c.
 *
 * Speeds of the hardware are measured on a real GPU only; on the simulated
 * runtime what is counted is counted all the same, and the title says so.
 * A process that forks has not used CUDA: everything runs in children.
 *
 * usage: gpu
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/gpuspeed.h"
#include "mem/gpu.h"
#include "tsock/tsock.h"

#if BENCH_GPU_SIMULATED
#include <cuda_runtime_api.h>
#define WHERE " (simulated)"
#else
#define WHERE ""
#endif

#define SIDE 128
#define IMAGE (UINT64_C(3) * SIDE * SIDE)
#define RING 512
#define BATCH 64
#define MAX_CONSUMERS 8
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
	char name[64], why[256];
};

static struct shared *sh;
static char stream_name[64];

#if BENCH_GPU_SIMULATED
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

static void find_gpus(void)
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

/* ------------------------------------------------------------------------
 * A producer of nothing in particular, and consumers
 */

static const struct tsock_field image = { .name = "image",
					  .dtype = TSOCK_U8,
					  .flags = TSOCK_FIELD_IMAGE,
					  .ndim = 3,
					  .shape = { SIDE, SIDE, 3 } };

/* Slots stay as they are: making samples is not what is measured. */
static void produce(void)
{
	tsock_server *s = bench_gpu_serve(stream_name, &image, RING, BATCH);
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

static void consume(bool stored, unsigned i)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	uint64_t bytes = BATCH * IMAGE * 2;
	tsi_gpu_stream stream;
	void *dst[2];
	unsigned turn = 0;
	tsock_batch *b;
	tsock *t;

	o.batch_size = BATCH;
	o.join = TSOCK_JOIN_NOW; /* the epoch never ends */
	o.device = 0;
	o.dtype = TSOCK_F16;
	o.layout = TSOCK_CHW;
	o.normalize = TSOCK_UNIT;
	o.flags = stored ? TSOCK_GPU_STORED : 0;
	bench_gpu_must(tsock_open(stream_name, &o, &t), "consumer");
	bench_gpu_must(tsi_gpu_stream_create(0, &stream), "stream");
	if (!stored)
		bytes = 4096; /* it looks at a page of each batch */
	for (unsigned k = 0; k < 2; k++)
		bench_gpu_must(tsi_gpu_alloc(0, bytes, &dst[k]), "memory");
	if (stored)
		atomic_fetch_add(&sh->tensors, 2 * bytes);
	bench_gpu_must(tsock_begin(t), "begin");
	while (!atomic_load(&sh->stop)) {
		int err = tsock_next(t, 100, &b);

		if (err == TSOCK_EAGAIN)
			continue;
		bench_gpu_must(err, "next");
		if (stored) {
			bench_gpu_must(tsock_batch_convert(
					       b, 0, dst[turn++ % 2], stream),
				       "convert");
		} else {
			bench_gpu_must(tsock_batch_use(b, stream), "use");
			bench_gpu_must(tsi_gpu_copy(0, stream, dst[turn++ % 2],
						    tsock_batch_data(b, 0),
						    bytes),
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

static void begin_crowd(struct crowd *c, bool stored, int n)
{
	int64_t from = tsi_now_ns();

	atomic_store(&sh->stop, false);
	atomic_store(&sh->end, false);
	atomic_store(&sh->tensors, 0);
	c->n = n;
	c->producer = bench_gpu_child();
	if (c->producer == 0) {
		produce();
		_exit(0);
	}
	for (int i = 0; i < n; i++) {
		atomic_store(&sh->batches[i], 0);
		c->consumer[i] = bench_gpu_child();
		if (c->consumer[i] == 0) {
			consume(stored, (unsigned)i);
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
		bench_gpu_reap(c->consumer[i], "a consumer");
	atomic_store(&sh->end, true);
	bench_gpu_reap(c->producer, "the producer");
}

static struct tsock_stats query(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	bench_gpu_must(tsock_query(stream_name, 10000, &st), "query");
	return st;
}

/* ------------------------------------------------------------------------
 * k consumers
 */

#define TURNS 5

enum figure { TIME, MEMORY, CPU, COPIED, FIGURES };

struct turn {
	double v[FIGURES];
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

static void take_turn(bool stored, int n, struct turn *out)
{
	double made[2], bytes[2];
	uint64_t had, memory;
	struct crowd c;
	int64_t t, cpu;

	begin_crowd(&c, stored, n);
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
	out->v[TIME] = (double)t / 1000 * n / (double)had;
	/* Everybody gets every sample. */
	out->v[CPU] = (double)cpu / 1000 * n / (double)(had * BATCH);
	out->v[COPIED] = (bytes[1] - bytes[0]) / (made[1] - made[0]);
	/* The host's ring isn't on the GPU. */
	out->v[MEMORY] = (double)(memory - RING * (IMAGE + 8) +
				  atomic_load(&sh->tensors)) /
			 1048576;
}

/* What a figure is compared with, in the same turn. */
static double rival(const struct turn t[2][NCOUNTS], unsigned p, unsigned k,
		    enum figure f)
{
	if (f == COPIED)
		return (double)(4 * IMAGE);
	return p && f != CPU ? t[0][k].v[f] : t[p][0].v[f];
}

static void crowd_row(const struct turn t[][2][NCOUNTS], size_t turns,
		      unsigned p, unsigned k, enum figure f)
{
	static const char *const what[] = { "time", "on the GPU", "producer",
					    "copied" };
	static const char *const unit[] = { "us/batch", "MiB", "us/sample",
					    "B/sample" };
	const char *against = f == COPIED     ? "float32 images"
			      : p && f != CPU ? "shared"
					      : "1 consumer";
	double value[TURNS], ratio[TURNS];
	char name[64];

	for (size_t i = 0; i < turns; i++) {
		value[i] = t[i][p][k].v[f];
		ratio[i] = value[i] / rival(t[i], p, k, f);
	}
	snprintf(name, sizeof(name), "%s, %d consumer%s: %s",
		 p ? "stored" : "shared", counts[k], k ? "s" : "", what[f]);
	bench_gpu_print(name, bench_median(value, turns), unit[f], against,
			bench_median(ratio, turns), bench_spread(ratio, turns));
}

/* All kinds and numbers in each turn, so that they meet the same moments. */
static void crowds(void)
{
	size_t turns = (size_t)bench_quick(TURNS, 1);
	struct turn t[TURNS][2][NCOUNTS];

	for (size_t i = 0; i < turns; i++)
		for (unsigned k = 0; k < NCOUNTS; k++)
			for (unsigned p = 0; p < 2; p++)
				take_turn(p, counts[k], &t[i][p][k]);
	for (unsigned p = 0; p < 2; p++)
		for (unsigned k = 0; k < NCOUNTS; k++)
			for (enum figure f = 0; f < FIGURES; f++)
				if (f != COPIED || BENCH_GPU_SIMULATED)
					crowd_row(t, turns, p, k, f);
}

/* ------------------------------------------------------------------------
 * Doing nothing
 */

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
	bench_gpu_print("idle producer", (double)cpu[0] / 1e6, "CPU ms/s", NULL,
			0, 0);
	bench_gpu_print("waiting consumer", (double)cpu[1] / 1e6, "CPU ms/s",
			NULL, 0, 0);
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
	bench_gpu_in_child(find_gpus, "looking for GPUs");
	if (!atomic_load(&sh->devices))
		bench_skip("%s", sh->why);
	bench_cpus();
	snprintf(title, sizeof(title), "gpu: %s" WHERE, sh->name);
	bench_head(title);
	if (!BENCH_GPU_SIMULATED) {
		bench_gpu_speeds();
		bench_gpu_handoff(stream_name);
	}
	bench_gpu_overlap(stream_name);
	crowds();
	idle();
	return 0;
}
