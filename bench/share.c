/* SPDX-License-Identifier: MIT */
/*
 * share.c - one producer of real images and 1 to 16 consumers that only touch
 * their batches: what each further consumer costs.
 *
 * The producer decodes with one thread, pinned to one CPU; the consumers
 * share the others.  For each number of consumers, in turn and again: images
 * delivered to all of them per second, the producer's CPU seconds per 1,000
 * images that it made, and its memory.
 *
 * usage: share PRODUCER DIR
 */
#include <errno.h>
#include <sched.h>
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
#include "tsock/tsock.h"

#define STREAM "bench-share"
#define BATCH 16
#define RING "512"
#define RING_SAMPLES 512
#define MAX_CONSUMERS 16
#define MAX_TURNS 9
#define PAGE 4096
#define STUCK_NS (INT64_C(30) * 1000000000)

static const int counts[] = { 1, 2, 4, 8, 16 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

struct consumer {
	_Alignas(64) _Atomic uint64_t samples;
};

struct shared {
	_Atomic bool stop;
	struct consumer consumer[MAX_CONSUMERS];
};

/* One window of time with one number of consumers. */
struct turn {
	double rate;     /* images delivered to all, per second */
	double per_cpu;  /* the same, per second of the producer's CPU */
	double cpu;      /* producer's seconds per 1,000 images made */
	double rss, pss; /* of the producer, MiB */
	double all;      /* PSS of producer and consumers, MiB */
};

static struct shared *sh;
static pid_t producer;

/* ------------------------------------------------------------------------
 * Processes
 */

static pid_t start_producer(const char *program, const char *root)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_pin(0, 0);
		execl(program, program, "--dataset", "imagefolder", "--root",
		      root, "--name", STREAM, "--threads", "1", "--ring", RING,
		      "--max-batch", "64", "--preset", "train", "--no-cache",
		      "--quiet", (char *)NULL);
		bench_die("can't run %s: %s", program, strerror(errno));
	}
	return pid;
}

/* Anywhere but on the producer's CPU, where there is another. */
static void keep_off(void)
{
	cpu_set_t set;

	if (bench_cpus() < 2)
		return;
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set)) {
			CPU_CLR(cpu, &set);
			break;
		}
	}
	sched_setaffinity(0, sizeof(set), &set);
}

static void touch(const tsock_batch *b, size_t sample_bytes)
{
	const volatile unsigned char *p = tsock_batch_data(b, 0);
	size_t len = (size_t)tsock_batch_count(b) * sample_bytes;

	for (size_t i = 0; i < len; i += PAGE)
		(void)p[i];
}

static size_t sample_bytes(tsock *t)
{
	struct tsock_field f;
	size_t n;

	if (tsock_get_field(t, 0, &f))
		bench_die("field 0: %s", tsock_errmsg());
	n = tsock_dtype_size(f.dtype);
	for (unsigned i = 0; i < f.ndim; i++)
		n *= (size_t)f.shape[i];
	return n;
}

static void consume(struct consumer *c)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	tsock_batch *b;
	size_t len;
	tsock *t;
	int err = TSOCK_EEPOCH;

	keep_off();
	opts.batch_size = BATCH;
	if (tsock_open(STREAM, &opts, &t))
		bench_die("consumer: %s", tsock_errmsg());
	len = sample_bytes(t);
	while (!atomic_load(&sh->stop)) {
		if (err == TSOCK_EEPOCH && (err = tsock_begin(t)))
			bench_die("begin: %s", tsock_errmsg());
		err = tsock_next(t, 100, &b);
		if (err == TSOCK_EAGAIN || err == TSOCK_EEPOCH)
			continue;
		if (err)
			bench_die("next: %s", tsock_errmsg());
		touch(b, len);
		atomic_fetch_add(&c->samples, tsock_batch_count(b));
		tsock_batch_release(b);
	}
	tsock_close(t);
	_exit(0);
}

/* ------------------------------------------------------------------------
 * Measuring
 */

static uint64_t delivered(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += atomic_load(&sh->consumer[i].samples);
	return sum;
}

static uint64_t produced(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	if (tsock_query(STREAM, 10000, &st))
		bench_die("query: %s", tsock_errmsg());
	return st.produced;
}

static void wait_all_run(int n, uint64_t least)
{
	int64_t from = tsi_now_ns();

	for (int i = 0; i < n; i++) {
		while (atomic_load(&sh->consumer[i].samples) < least) {
			usleep(10000);
			if (tsi_now_ns() - from > STUCK_NS)
				bench_die("consumer %d of %d stands still", i,
					  n);
		}
	}
}

static double mib(pid_t pid, const char *row)
{
	return (double)bench_proc_kb(pid, "smaps_rollup", row) / 1024;
}

static void measure(int n, const pid_t *pids, struct turn *out)
{
	int64_t from, cpu;
	uint64_t made, had;

	from = tsi_now_ns();
	cpu = bench_cpu_ns(producer);
	made = produced();
	had = delivered(n);
	usleep((useconds_t)bench_quick(3000, 1000) * 1000);
	had = delivered(n) - had;
	made = produced() - made;
	cpu = bench_cpu_ns(producer) - cpu;
	from = tsi_now_ns() - from;
	if (!made || !had)
		bench_die("nothing was delivered");
	out->rate = (double)had / (double)from * 1e9;
	out->per_cpu = (double)had / (double)cpu * 1e9;
	out->cpu = (double)cpu / 1e6 / (double)made;
	out->rss = mib(producer, "Rss:");
	out->pss = mib(producer, "Pss:");
	out->all = out->pss;
	for (int i = 0; i < n; i++)
		out->all += mib(pids[i], "Pss:");
}

static void take_turn(int n, struct turn *out)
{
	pid_t pids[MAX_CONSUMERS];
	int status;

	memset(sh, 0, sizeof(*sh));
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			bench_die("fork: %s", strerror(errno));
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			consume(&sh->consumer[i]);
		}
	}
	/* Twice round the ring: all its pages are there, all have caught up. */
	wait_all_run(n, 2 * RING_SAMPLES);
	measure(n, pids, out);
	atomic_store(&sh->stop, true);
	for (int i = 0; i < n; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			bench_die("a consumer ended with status %#x", status);
}

/* ------------------------------------------------------------------------
 * Reporting
 */

static void print_row(int n, const char *what, const char *unit, double *v,
		      const double *one, size_t turns, double expect,
		      const char *against)
{
	double ratio[MAX_TURNS];
	char name[64];
	struct bench_result r = {
		.bench = "share",
		.name = name,
		.unit = unit,
		.against = against,
	};

	snprintf(name, sizeof(name), "%d consumer%s, %s", n, n > 1 ? "s" : "",
		 what);
	for (size_t i = 0; i < turns; i++)
		ratio[i] = v[i] / (one[i] * expect);
	r.value = bench_median(v, turns);
	r.ratio = bench_median(ratio, turns);
	r.spread = bench_spread(ratio, turns);
	bench_print(&r);
}

#define ROW(member, what, unit, expect, against) \
	do { \
		double v[MAX_TURNS], one[MAX_TURNS]; \
		for (size_t t = 0; t < turns; t++) { \
			v[t] = result[k][t].member; \
			one[t] = result[0][t].member; \
		} \
		print_row(counts[k], what, unit, v, one, turns, expect, \
			  against); \
	} while (0)

static void report(struct turn result[NCOUNTS][MAX_TURNS], size_t turns)
{
	bench_head("share: one producer, one decoding thread");
	for (size_t k = 0; k < NCOUNTS; k++)
		ROW(rate, "delivered to all", "images/s", counts[k],
		    "1 consumer, times as many");
	/* What other programs on this machine can't disturb. */
	for (size_t k = 0; k < NCOUNTS; k++)
		ROW(per_cpu, "delivered", "per CPU s", counts[k],
		    "1 consumer, times as many");
	for (size_t k = 0; k < NCOUNTS; k++)
		ROW(cpu, "producer CPU", "s/1000 images", 1, "1 consumer");
	for (size_t k = 0; k < NCOUNTS; k++)
		ROW(rss, "producer RSS", "MiB", 1, "1 consumer");
	for (size_t k = 0; k < NCOUNTS; k++)
		ROW(all, "PSS of all", "MiB", 1, "1 consumer");
}

int main(int argc, char **argv)
{
	static struct turn result[NCOUNTS][MAX_TURNS];
	size_t turns = (size_t)bench_quick(5, 2);
	struct turn warm;
	int status;

	if (argc != 3)
		bench_die("usage: share PRODUCER DIR");
	bench_cpus();
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	producer = start_producer(argv[1], argv[2]);
	take_turn(1, &warm);
	for (size_t t = 0; t < turns; t++) {
		for (size_t i = 0; i < NCOUNTS; i++) {
			/* Up and down, so that no count is always late. */
			size_t k = t % 2 ? NCOUNTS - 1 - i : i;

			take_turn(counts[k], &result[k][t]);
		}
	}
	kill(producer, SIGTERM);
	waitpid(producer, &status, 0);
	report(result, turns);
	return 0;
}
