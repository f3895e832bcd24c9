/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - from publishing a batch to having it in hand, between two
 * processes, beside a bare futex between the same two.
 *
 * The producer is pinned to one CPU and the consumer to another.  A batch is
 * one sample of 1 KiB to 64 MiB with the time of publishing in a second
 * field; nobody copies it, so its size should not matter.  The producer waits
 * until the consumer has had the last batch, and then 200 us more: by then
 * the consumer sleeps.  The bare arm does the same with one word of a shared
 * memfd; spinning, with no futex.  The two take turns, round by round.
 *
 * usage: handoff
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tsock/tsock.h"

#define MAX_ROUNDS 20
#define MAX_STEPS 100
#define PAUSE_NS 200000
#define STUCK_NS (INT64_C(20) * 1000000000)

static const struct {
	const char *name;
	uint64_t bytes;
} sizes[] = {
	{ "1 KiB", UINT64_C(1) << 10 },  { "64 KiB", UINT64_C(1) << 16 },
	{ "1 MiB", UINT64_C(1) << 20 },  { "16 MiB", UINT64_C(1) << 24 },
	{ "64 MiB", UINT64_C(1) << 26 },
};

/* What both processes see; each word has one writer. */
struct shared {
	_Alignas(64) _Atomic uint32_t word; /* the bare arm's */
	_Atomic int64_t stamp;              /* when it was bumped */
	_Alignas(64) _Atomic uint64_t seen; /* steps that the consumer had */
	_Alignas(64) _Atomic uint32_t stage;
	double bare[MAX_ROUNDS][MAX_STEPS];
	double tsock[MAX_ROUNDS][MAX_STEPS];
};

struct plan {
	const char *stream;
	uint64_t bytes;
	bool spin;
	int rounds, steps;
};

static struct shared *sh;

/* No private futex: the other side is another process. */
static void word_wait(uint32_t value)
{
	syscall(SYS_futex, &sh->word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void word_wake(void)
{
	syscall(SYS_futex, &sh->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* ------------------------------------------------------------------------
 * The consumer's process
 */

static void wait_stage(uint32_t stage)
{
	while (atomic_load(&sh->stage) < stage)
		relax();
}

static void bare_take(const struct plan *p, uint32_t last, double *out)
{
	while (atomic_load(&sh->word) == last) {
		if (p->spin)
			relax();
		else
			word_wait(last);
	}
	*out = (double)(tsi_now_ns() - atomic_load(&sh->stamp));
}

static void tsock_take(tsock *t, uint64_t want, uint64_t bytes, double *out)
{
	const unsigned char *data;
	tsock_batch *b;
	int64_t now, stamp;
	uint64_t head, foot;

	if (tsock_next(t, -1, &b))
		bench_die("next: %s", tsock_errmsg());
	now = tsi_now_ns();
	memcpy(&stamp, tsock_batch_data(b, 1), sizeof(stamp));
	*out = (double)(now - stamp);
	data = tsock_batch_data(b, 0);
	memcpy(&head, data, sizeof(head));
	memcpy(&foot, data + bytes - sizeof(foot), sizeof(foot));
	if (head != want || foot != want)
		bench_die("a batch isn't the one that was published");
	tsock_batch_release(b);
}

static void consume(const struct plan *p)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	uint64_t taken = 0, seq = 0;
	/* As measure_size() left it; by now it may have moved. */
	uint32_t word = 0;
	tsock *t;

	bench_pin(0, 1);
	wait_stage(1);
	opts.batch_size = 1;
	opts.flags = p->spin ? TSOCK_SPIN : 0;
	if (tsock_open(p->stream, &opts, &t) || tsock_begin(t))
		bench_die("consumer: %s", tsock_errmsg());
	for (int r = 0; r < p->rounds; r++) {
		for (int i = 0; i < p->steps; i++) {
			bare_take(p, word++, &sh->bare[r][i]);
			atomic_store(&sh->seen, ++taken);
		}
		for (int i = 0; i < p->steps; i++) {
			tsock_take(t, seq++, p->bytes, &sh->tsock[r][i]);
			atomic_store(&sh->seen, ++taken);
		}
	}
	tsock_close(t);
	_exit(0);
}

/* ------------------------------------------------------------------------
 * The producer's process
 */

/* Until the consumer has had that many, and then long enough to doze off. */
static void wait_seen(uint64_t n, pid_t child)
{
	int64_t from = tsi_now_ns(), now;

	while (atomic_load(&sh->seen) < n) {
		relax();
		if (tsi_now_ns() - from < STUCK_NS)
			continue;
		kill(child, SIGKILL);
		bench_die("the consumer got nothing for %d s",
			  (int)(STUCK_NS / 1000000000));
	}
	from = tsi_now_ns();
	do {
		relax();
		now = tsi_now_ns();
	} while (now - from < PAUSE_NS);
}

static void bare_give(const struct plan *p)
{
	atomic_store(&sh->stamp, tsi_now_ns());
	atomic_fetch_add(&sh->word, 1);
	if (!p->spin)
		word_wake();
}

/* Claimed and filled before the pause: what is timed is publishing alone. */
static void claim(tsock_server *s, const struct plan *p, uint64_t *seq)
{
	unsigned char *data;

	if (tsock_serve_claim(s, 1, 10000, seq) != 1)
		bench_die("claim: %s", tsock_errmsg());
	data = tsock_serve_slot(s, 0, *seq);
	memcpy(data, seq, sizeof(*seq));
	memcpy(data + p->bytes - sizeof(*seq), seq, sizeof(*seq));
}

static void tsock_give(tsock_server *s, uint64_t seq)
{
	void *slot = tsock_serve_slot(s, 1, seq);
	int64_t now = tsi_now_ns();

	memcpy(slot, &now, sizeof(now));
	tsock_serve_commit(s, seq, 1);
}

static tsock_server *serve(const struct plan *p)
{
	const struct tsock_field fields[2] = {
		{ .name = "bytes",
		  .dtype = TSOCK_U8,
		  .ndim = 1,
		  .shape = { p->bytes } },
		{ .name = "stamp", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts opts = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	opts.nfields = 2;
	opts.fields = fields;
	opts.epoch_len = UINT64_C(1) << 40;
	opts.ring = 4;
	opts.join_window = 1;
	opts.max_batch = 1;
	if (tsock_serve_open(p->stream, &opts, &s))
		bench_die("serve: %s", tsock_errmsg());
	return s;
}

static void produce(const struct plan *p, pid_t child)
{
	tsock_server *s = serve(p);
	uint64_t given = 0, seq;
	int status;

	/* Its own thread may run anywhere; this one may not. */
	bench_pin(0, 0);
	atomic_store(&sh->stage, 1);
	for (int r = 0; r < p->rounds; r++) {
		for (int i = 0; i < p->steps; i++) {
			wait_seen(given++, child);
			bare_give(p);
		}
		for (int i = 0; i < p->steps; i++) {
			claim(s, p, &seq);
			wait_seen(given++, child);
			tsock_give(s, seq);
		}
	}
	if (waitpid(child, &status, 0) != child || status)
		bench_die("the consumer ended with status %#x", status);
	tsock_serve_close(s);
}

/* ------------------------------------------------------------------------
 * Reporting
 */

static void print_latency(const char *arm, const char *size, double percent,
			  double *all, double *base, size_t n, double spread)
{
	char name[64];
	struct bench_result r = {
		.bench = "handoff",
		.name = name,
		.value = bench_percentile(all, n, percent) / 1000,
		.unit = "us",
		.spread = spread,
	};

	snprintf(name, sizeof(name), "%s, %s, p%g", size, arm, percent);
	if (base) {
		r.against = "bare, same percentile";
		r.ratio = r.value * 1000 / bench_percentile(base, n, percent);
	}
	bench_print(&r);
}

static void report(const struct plan *p, const char *size)
{
	const char *arm = p->spin ? "spinning" : "asleep";
	const char *bare = p->spin ? "bare spin" : "bare futex";
	/* The first round warms up. */
	size_t n = (size_t)(p->rounds - 1) * (size_t)p->steps, at = 0;
	double *a = malloc(n * sizeof(*a)), *b = malloc(n * sizeof(*b));
	double ratio[MAX_ROUNDS], base[MAX_ROUNDS];
	size_t steps = (size_t)p->steps, rounds = (size_t)p->rounds - 1;

	if (!a || !b)
		bench_die("no memory");
	for (size_t r = 0; r < rounds; r++, at += steps) {
		memcpy(a + at, sh->tsock[r + 1], steps * sizeof(*a));
		memcpy(b + at, sh->bare[r + 1], steps * sizeof(*b));
		base[r] = bench_median(sh->bare[r + 1], steps);
		ratio[r] = bench_median(sh->tsock[r + 1], steps) / base[r];
	}
	print_latency(bare, size, 50, b, NULL, n, bench_spread(base, rounds));
	print_latency(arm, size, 50, a, b, n, bench_spread(ratio, rounds));
	print_latency(arm, size, 99, a, b, n, bench_spread(ratio, rounds));
	print_latency(arm, size, 99.9, a, b, n, bench_spread(ratio, rounds));
	free(a);
	free(b);
}

static void measure_size(const char *name, uint64_t bytes, bool spin)
{
	char stream[64];
	struct plan p = { stream, bytes, spin, bench_quick(MAX_ROUNDS, 5),
			  MAX_STEPS };
	pid_t child;

	snprintf(stream, sizeof(stream), "bench-handoff-%d", (int)getpid());
	memset(sh, 0, sizeof(*sh));
	/* Before the server has threads. */
	child = fork();
	if (child < 0)
		bench_die("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		consume(&p);
	}
	produce(&p, child);
	report(&p, name);
}

int main(void)
{
	int fd = memfd_create("handoff", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*sh)))
		bench_die("memfd: %s", strerror(errno));
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	if (bench_cpus() < 2)
		bench_skip("handoff needs two CPUs");
	bench_head("handoff: publish to batch in hand, one way");
	for (int spin = 0; spin < 2; spin++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			measure_size(sizes[i].name, sizes[i].bytes, spin);
	return 0;
}
