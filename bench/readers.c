/* SPDX-License-Identifier: MIT */
/*
 * readers.c - what 1 to 256 readers cost: the server's CPU time per sample, and
 * the time from publishing a batch until readers have it.
 *
 * A server with samples of 8 bytes, and readers that are processes of their
 * own.  For the latency it publishes a batch once all readers have had the last
 * one, and 200 us later: by then all of them sleep.  The batch has the time of
 * its publishing.  "A reader" is any of them; "the last" is the slowest for a
 * batch, and with more readers than CPUs it waits for its turn.  For the CPU
 * time batches follow one another as fast as the readers let them.
 *
 * usage: readers
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tsock/tsock.h"

#define BATCH 64
#define RING 512
#define MOST 256
#define STEPS 100
#define FLOWING 2000 /* batches without a pause */
#define MAX_TURNS 5
#define PAUSE_NS 200000
#define STUCK_NS (INT64_C(60) * 1000000000)

static const int counts[] = { 1, 4, 16, 64, 256 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

/* What all processes see; each word of a reader's has one writer. */
struct shared {
	_Alignas(64) _Atomic int ready; /* the server is there */
	_Atomic int begun;              /* readers */
	struct {
		_Alignas(64) _Atomic uint64_t seen; /* batches */
		double latency[STEPS];
	} reader[MOST];
};

struct turn {
	double any, last; /* us */
	double cpu;       /* us a sample */
};

static struct shared *sh;
static char stream[64];
static int flowing;

/* ------------------------------------------------------------------------
 * A reader's process
 */

static void take(tsock *t, double *latency)
{
	tsock_batch *b;
	int64_t now, stamp;

	if (tsock_next(t, -1, &b))
		bench_die("next: %s", tsock_errmsg());
	now = tsi_now_ns();
	memcpy(&stamp, tsock_batch_data(b, 0), sizeof(stamp));
	if (latency)
		*latency = (double)(now - stamp) / 1000;
	tsock_batch_release(b);
}

static void read_all(int k)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&sh->ready))
		usleep(1000);
	o.batch_size = BATCH;
	if (tsock_open(stream, &o, &t) || tsock_begin(t))
		bench_die("reader %d: %s", k, tsock_errmsg());
	atomic_fetch_add(&sh->begun, 1);
	for (int i = 0; i < STEPS; i++) {
		take(t, &sh->reader[k].latency[i]);
		atomic_fetch_add(&sh->reader[k].seen, 1);
	}
	for (int i = 0; i < flowing; i++)
		take(t, NULL);
	tsock_close(t);
	_exit(0);
}

/* ------------------------------------------------------------------------
 * The server's process
 */

static void check_stuck(int64_t since, const char *what)
{
	if (tsi_now_ns() - since > STUCK_NS)
		bench_die("%s for %d s", what, (int)(STUCK_NS / 1000000000));
}

static void wait_seen(int readers, uint64_t batches)
{
	int64_t start = tsi_now_ns();

	for (int k = 0; k < readers; k++)
		while (atomic_load(&sh->reader[k].seen) < batches) {
			usleep(20);
			check_stuck(start, "a reader got no batch");
		}
}

static void publish(tsock_server *s, int pauses)
{
	uint64_t first;
	int64_t now;

	for (unsigned n = 0; n < BATCH;) {
		int got = tsock_serve_claim(s, BATCH - n, -1, &first);

		if (got < 0)
			bench_die("claim: %s", tsock_errmsg());
		if (pauses && !n)
			usleep(PAUSE_NS / 1000);
		now = tsi_now_ns();
		for (int i = 0; i < got; i++)
			memcpy(tsock_serve_slot(s, 0, first + (uint64_t)i),
			       &now, sizeof(now));
		tsock_serve_commit(s, first, (unsigned)got);
		n += (unsigned)got;
	}
}

static tsock_server *serve(void)
{
	const struct tsock_field field = { .name = "stamp",
					   .dtype = TSOCK_I64 };
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	o.nfields = 1;
	o.fields = &field;
	o.epoch_len = UINT64_C(1) << 40;
	o.ring = RING;
	o.max_batch = BATCH;
	if (tsock_serve_open(stream, &o, &s))
		bench_die("serve: %s", tsock_errmsg());
	return s;
}

static void latencies(int readers, struct turn *out)
{
	static double all[MOST * STEPS], last[STEPS];
	size_t n = 0;

	for (int i = 0; i < STEPS; i++) {
		last[i] = 0;
		for (int k = 0; k < readers; k++) {
			double us = sh->reader[k].latency[i];

			all[n++] = us;
			if (us > last[i])
				last[i] = us;
		}
	}
	out->any = bench_median(all, n);
	out->last = bench_median(last, STEPS);
}

static void take_turn(int readers, struct turn *out)
{
	int64_t start = tsi_now_ns(), cpu;
	tsock_server *s;
	int status;

	memset(sh, 0, sizeof(*sh));
	/* Before the server has threads. */
	for (int k = 0; k < readers; k++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_die("fork: %s", strerror(errno));
		if (!pid)
			read_all(k);
	}
	s = serve();
	atomic_store(&sh->ready, 1);
	while (atomic_load(&sh->begun) < readers) {
		usleep(1000);
		check_stuck(start, "readers have not begun");
	}
	for (uint64_t i = 0; i < STEPS; i++) {
		wait_seen(readers, i);
		publish(s, 1);
	}
	wait_seen(readers, STEPS);
	cpu = bench_cpu_ns(getpid());
	for (int i = 0; i < flowing; i++)
		publish(s, 0);
	cpu = bench_cpu_ns(getpid()) - cpu;
	out->cpu = (double)cpu / 1000 / flowing / BATCH;
	for (int k = 0; k < readers; k++)
		if (wait(&status) < 0 || status)
			bench_die("a reader ended with status %#x", status);
	tsock_serve_close(s);
	latencies(readers, out);
}

static void print(int readers, const char *what, const char *unit, double *v,
		  const double *one, size_t turns)
{
	double ratio[MAX_TURNS];
	char name[64];
	struct bench_result r = { .bench = "readers",
				  .name = name,
				  .unit = unit };

	for (size_t i = 0; i < turns; i++)
		ratio[i] = v[i] / one[i];
	snprintf(name, sizeof(name), "%d reader%s, %s", readers,
		 readers == 1 ? "" : "s", what);
	r.spread = bench_spread(readers == 1 ? v : ratio, turns);
	r.value = bench_median(v, turns);
	if (readers > 1) {
		r.against = "1 reader";
		r.ratio = bench_median(ratio, turns);
	}
	bench_print(&r);
}

static void report(struct turn result[NCOUNTS][MAX_TURNS], size_t turns)
{
	double v[3][MAX_TURNS], one[3][MAX_TURNS];

	for (size_t c = 0; c < NCOUNTS; c++) {
		for (size_t i = 0; i < turns; i++) {
			v[0][i] = result[c][i].cpu;
			v[1][i] = result[c][i].any;
			v[2][i] = result[c][i].last;
			one[0][i] = result[0][i].cpu;
			one[1][i] = result[0][i].any;
			one[2][i] = result[0][i].last;
		}
		print(counts[c], "CPU a sample", "us", v[0], one[0], turns);
		print(counts[c], "a reader has it", "us", v[1], one[1], turns);
		print(counts[c], "the last has it", "us", v[2], one[2], turns);
	}
}

int main(void)
{
	static struct turn result[NCOUNTS][MAX_TURNS];
	size_t turns = (size_t)bench_quick(MAX_TURNS, 2);
	struct rlimit files;
	int fd = memfd_create("readers", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*sh)))
		bench_die("memfd: %s", strerror(errno));
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	/* Three for each reader. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	snprintf(stream, sizeof(stream), "bench-readers-%d", (int)getpid());
	flowing = bench_quick(FLOWING, FLOWING / 10);
	for (size_t i = 0; i < turns; i++)
		for (size_t c = 0; c < NCOUNTS; c++)
			take_turn(counts[c], &result[c][i]);
	bench_head("readers: batches of 64 samples of 8 bytes");
	report(result, turns);
	return 0;
}
