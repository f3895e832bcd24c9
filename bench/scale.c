/* SPDX-License-Identifier: MIT */
/*
 * scale.c - what more worker threads cost where they have nothing to do: a
 * server whose workers write nothing, 2 to 128 of them, and one consumer.
 *
 * The workers claim samples and commit them as they are, so all that is left is
 * the server's own work: claiming, publishing, converting to float32 where the
 * consumer reads that, and waking those that sleep.  The consumer, a process
 * of its own, takes batches and gives them back.  For each number of threads,
 * in turn and again: samples a second; how often a thread of the server went to
 * sleep and was woken, per sample; and the CPU time per sample of the server's
 * threads other than the workers.
 *
 * usage: scale
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tsock/tsock.h"

#define BATCH 64
#define RING 512
#define MAX_TURNS 9
#define MAX_THREADS 128
#define STUCK_NS (INT64_C(30) * 1000000000)

static const int counts[] = { 2, 8, 32, 128 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

static const struct {
	const char *name;
	uint64_t pixels;
	enum tsock_dtype dtype;
} cases[] = {
	{ "32 px u8", 32, TSOCK_U8 },
	{ "32 px float32", 32, TSOCK_F32 },
	{ "224 px u8", 224, TSOCK_U8 },
	{ "224 px float32", 224, TSOCK_F32 },
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

/* What a turn has measured. */
enum what {
	RATE,   /* samples a second */
	SLEEPS, /* of all threads of the server, per sample */
	OTHERS, /* us of CPU per sample, of threads other than workers */
	CPU,    /* likewise, of all threads */
	NMEASURED,
};

static const struct {
	const char *name, *unit;
} measured[NMEASURED] = {
	[RATE] = { "delivered", "samples/s" },
	[SLEEPS] = { "sleeps", "per sample" },
	[OTHERS] = { "CPU of other threads", "us/sample" },
	[CPU] = { "CPU", "us/sample" },
};

struct turn {
	double of[NMEASURED];
};

struct shared {
	_Atomic uint64_t samples; /* that the consumer has had */
	_Atomic bool stop;
};

static struct shared *sh;
static char stream[64];
static tsock_server *server;
static pthread_t worker[MAX_THREADS];

/* ---- the consumer's process ---- */

static void consume(enum tsock_dtype dtype)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	int err = TSOCK_EEPOCH;
	tsock_batch *b;
	tsock *t;

	o.batch_size = BATCH;
	/* As Python's loaders ask for by default. */
	if (dtype != TSOCK_U8) {
		o.dtype = dtype;
		o.layout = TSOCK_CHW;
		o.normalize = TSOCK_MEAN_STD;
	}
	if (tsock_open(stream, &o, &t))
		bench_die("consumer: %s", tsock_errmsg());
	while (!atomic_load(&sh->stop)) {
		if (err == TSOCK_EEPOCH && (err = tsock_begin(t)))
			bench_die("begin: %s", tsock_errmsg());
		err = tsock_next(t, 100, &b);
		if (err == TSOCK_EAGAIN || err == TSOCK_EEPOCH)
			continue;
		if (err)
			bench_die("next: %s", tsock_errmsg());
		atomic_fetch_add(&sh->samples, tsock_batch_count(b));
		tsock_batch_release(b);
	}
	tsock_close(t);
	_exit(0);
}

/* ---- the server's process ---- */

static void *work(void *arg)
{
	uint64_t s;

	(void)arg;
	while (tsock_serve_claim(server, 1, -1, &s) == 1)
		tsock_serve_commit(server, s, 1);
	return NULL;
}

static void serve(uint64_t pixels, int threads)
{
	const struct tsock_field field = {
		.name = "image",
		.dtype = TSOCK_U8,
		.ndim = 3,
		.shape = { pixels, pixels, 3 },
		.flags = TSOCK_FIELD_IMAGE,
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	o.nfields = 1;
	o.fields = &field;
	o.epoch_len = UINT64_C(1) << 40;
	o.ring = RING;
	o.max_batch = BATCH;
	o.commit_views = 1;
	if (tsock_serve_open(stream, &o, &server))
		bench_die("serve: %s", tsock_errmsg());
	for (int i = 0; i < threads; i++)
		if (pthread_create(&worker[i], NULL, work, NULL))
			bench_die("can't start a thread");
}

static int64_t workers_cpu_ns(int threads)
{
	int64_t ns = 0;

	for (int i = 0; i < threads; i++) {
		struct timespec t;
		clockid_t clock;

		if (!pthread_getcpuclockid(worker[i], &clock) &&
		    !clock_gettime(clock, &t))
			ns += t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	}
	return ns;
}

static void wait_for(uint64_t samples, pid_t child)
{
	int64_t from = tsi_now_ns();

	while (atomic_load(&sh->samples) < samples) {
		usleep(1000);
		if (tsi_now_ns() - from < STUCK_NS)
			continue;
		kill(child, SIGKILL);
		bench_die("the consumer stands still");
	}
}

/* What has been used so far; a difference of two is what was used between. */
struct use {
	int64_t ns, cpu, workers;
	uint64_t samples;
	long sleeps;
};

static struct use look(int threads)
{
	struct rusage r;
	struct use u;

	getrusage(RUSAGE_SELF, &r);
	u.ns = tsi_now_ns();
	u.samples = atomic_load(&sh->samples);
	u.cpu = bench_cpu_ns(getpid());
	u.workers = workers_cpu_ns(threads);
	u.sleeps = r.ru_nvcsw;
	return u;
}

static void measure(int threads, struct turn *out)
{
	struct use a = look(threads), b;
	double n;

	usleep((useconds_t)bench_quick(2000, 700) * 1000);
	b = look(threads);
	n = (double)(b.samples - a.samples);
	if (n < 1)
		bench_die("nothing was delivered");
	out->of[RATE] = n / (double)(b.ns - a.ns) * 1e9;
	out->of[SLEEPS] = (double)(b.sleeps - a.sleeps) / n;
	out->of[CPU] = (double)(b.cpu - a.cpu) / n / 1000;
	out->of[OTHERS] =
		out->of[CPU] - (double)(b.workers - a.workers) / n / 1000;
}

static void take_turn(size_t which, int threads, struct turn *out)
{
	int status;
	pid_t child;

	atomic_store(&sh->samples, 0);
	atomic_store(&sh->stop, false);
	/* Before the server has threads; it waits for its producer. */
	child = fork();
	if (child < 0)
		bench_die("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		consume(cases[which].dtype);
	}
	serve(cases[which].pixels, threads);
	/* Twice round the ring: all its pages are there. */
	wait_for(UINT64_C(2) * RING, child);
	measure(threads, out);
	atomic_store(&sh->stop, true);
	if (waitpid(child, &status, 0) != child || status)
		bench_die("the consumer ended with status %#x", status);
	tsock_serve_stop(server);
	for (int i = 0; i < threads; i++)
		pthread_join(worker[i], NULL);
	tsock_serve_close(server);
}

/* ---- the report ---- */

static struct turn result[NCOUNTS][MAX_TURNS];

static void print_row(size_t which, size_t k, size_t turns, enum what what)
{
	double v[MAX_TURNS], ratio[MAX_TURNS];
	char name[64];
	struct bench_result r = { .bench = "scale",
				  .name = name,
				  .unit = measured[what].unit,
				  .against = "2 threads" };

	for (size_t t = 0; t < turns; t++) {
		v[t] = result[k][t].of[what];
		ratio[t] = v[t] / result[0][t].of[what];
	}
	snprintf(name, sizeof(name), "%s, %d threads, %s", cases[which].name,
		 counts[k], measured[what].name);
	r.value = bench_median(v, turns);
	r.ratio = bench_median(ratio, turns);
	r.spread = bench_spread(ratio, turns);
	bench_print(&r);
}

static void bench(size_t which)
{
	size_t turns = (size_t)bench_quick(7, 3);

	for (size_t t = 0; t < turns; t++) {
		for (size_t i = 0; i < NCOUNTS; i++) {
			/* Up and down, so that no count is always late. */
			size_t k = t % 2 ? NCOUNTS - 1 - i : i;

			take_turn(which, counts[k], &result[k][t]);
		}
	}
	for (int what = 0; what < NMEASURED; what++)
		for (size_t k = 0; k < NCOUNTS; k++)
			print_row(which, k, turns, (enum what)what);
}

int main(void)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	snprintf(stream, sizeof(stream), "bench-scale-%d", (int)getpid());
	bench_head("scale: a server whose workers write nothing");
	for (size_t i = 0; i < NCASES; i++)
		bench(i);
	return 0;
}
