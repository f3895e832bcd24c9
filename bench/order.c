/* SPDX-License-Identifier: MIT */
/*
 * order.c - what the order of an epoch costs a sample: runs of positions and
 * single ones, by data sets of ten thousand samples to 2^48; and the longest
 * that a worker is kept by one look-up, over two epochs.
 *
 * The rival is a shuffle of as many numbers, by the same random words, in an
 * array that is read afterwards; where that would take gigabytes it is one of
 * ten million.
 *
 * usage: order
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "data/epochs.h"
#include "order/shuffle.h"

#define MAX_TURNS 9
#define RUN 64u
#define MOST UINT64_C(10000000) /* numbers that are shuffled */
#define SOME UINT64_C(1000000)  /* positions that are looked up in a turn */

static const struct {
	const char *name;
	uint64_t count;
} sets[] = {
	{ "10^4", 10000 },
	{ "10^5", 100000 },
	{ "10^6", 1000000 },
	{ "10^7", 10000000 },
	{ "10^9", 1000000000 },
	{ "2^40", UINT64_C(1) << 40 },
	{ "2^48", UINT64_C(1) << 48 },
};

static uint64_t sum; /* so that what is found is used */

/* Of this thread: others' turns on a busy machine don't count. */
static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct tsi_epochs *create(enum tsock_order_kind kind, uint64_t count)
{
	struct tsi_order_opts o = { .kind = kind, .count = count, .seed = 7 };
	struct tsi_epochs *e;

	if (tsi_epochs_create(&o, &e))
		bench_die("%s", tsock_errmsg());
	return e;
}

static void find(struct tsi_epochs *e, uint64_t epoch, uint64_t at, unsigned n,
		 uint64_t *index)
{
	if (tsi_epochs_run(e, epoch, at, n, index))
		bench_die("%s", tsock_errmsg());
	sum += index[n - 1];
}

/* Nanoseconds a position, over whole epochs or the first part of one. */
static double look_up(uint64_t count, unsigned run)
{
	struct tsi_epochs *e = create(TSOCK_ORDER_PHILOX, count);
	uint64_t len = count < SOME ? count : SOME, n = 0, index[RUN];
	double start = cpu_ns(), ns;

	for (uint64_t epoch = 0; n < SOME; epoch++)
		for (uint64_t at = 0; at + run <= len; at += run, n += run)
			find(e, epoch, at, run, index);
	ns = (cpu_ns() - start) / (double)n;
	tsi_epochs_destroy(e);
	return ns;
}

static double shuffle(uint64_t count)
{
	uint64_t n = count < MOST ? count : MOST;
	uint64_t turns = SOME / n + (n > SOME);
	uint32_t *v = malloc(n * sizeof(*v));
	double start, ns;

	if (!v)
		bench_die("no memory for a shuffle");
	for (uint64_t i = 0; i < n; i++)
		v[i] = (uint32_t)i;
	start = cpu_ns();
	for (uint64_t t = 0; t < turns; t++) {
		tsi_shuffle_philox(v, n, 7, t, 0);
		for (uint64_t i = 0; i < n; i++)
			sum += v[i];
	}
	ns = (cpu_ns() - start) / (double)(n * turns);
	free(v);
	return ns;
}

static void bench_costs(size_t k, unsigned run)
{
	int turns = bench_quick(MAX_TURNS, 3);
	double ns[MAX_TURNS], ratio[MAX_TURNS];
	char name[64];
	struct bench_result r = { .bench = "order",
				  .name = name,
				  .unit = "ns/sample",
				  .against = "a shuffle" };

	for (int i = 0; i < turns; i++) {
		ns[i] = look_up(sets[k].count, run);
		ratio[i] = ns[i] / shuffle(sets[k].count);
	}
	snprintf(name, sizeof(name), "%s, %s", sets[k].name,
		 run == 1 ? "one by one" : "in runs");
	r.value = bench_median(ns, (size_t)turns);
	r.ratio = bench_median(ratio, (size_t)turns);
	r.spread = bench_spread(ratio, (size_t)turns);
	bench_print(&r);
}

/* The longest look-up of two epochs, but for the first, in microseconds. */
static double longest(enum tsock_order_kind kind, uint64_t count)
{
	struct tsi_epochs *e = create(kind, count);
	double most = 0;
	uint64_t index;

	find(e, 0, 0, 1, &index);
	for (uint64_t at = 1; at < 2 * count; at++) {
		double start = cpu_ns(), took;

		find(e, at / count, at % count, 1, &index);
		took = (cpu_ns() - start) / 1000;
		if (took > most)
			most = took;
	}
	tsi_epochs_destroy(e);
	return most;
}

static void bench_longest(const char *name, enum tsock_order_kind kind)
{
	int turns = bench_quick(5, 1);
	double us[5];
	struct bench_result r = { .bench = "order",
				  .name = name,
				  .unit = "us of CPU" };

	for (int i = 0; i < turns; i++)
		us[i] = longest(kind, SOME);
	/* The least, since an interrupt is as long as a look-up of thousands. */
	r.value = bench_percentile(us, (size_t)turns, 0);
	bench_print(&r);
}

int main(void)
{
	bench_head("order: which sample is at a position of an epoch");
	for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
		bench_costs(k, RUN);
		bench_costs(k, 1);
	}
	bench_longest("longest of 10^6, philox", TSOCK_ORDER_PHILOX);
	bench_longest("longest of 10^6, torch", TSOCK_ORDER_TORCH);
	return sum == 1;
}
