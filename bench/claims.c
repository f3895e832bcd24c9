/* SPDX-License-Identifier: MIT */
/*
 * claims.c - what a sample costs its worker besides the making: claiming it,
 * and committing it, by 1 to 8 threads.
 *
 * A sample is 8 bytes.  A ring of a million is filled from its first sample to
 * its last one, for a consumer that has joined and takes nothing, so there is
 * nothing to wait for.  The rival does for each sample what a server with one
 * lock would have to: it takes a mutex to count it, twice.
 *
 * usage: claims
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tsock/tsock.h"

#define RING (UINT64_C(1) << 20)
#define MAX_TURNS 15
#define MAX_THREADS 8

static const int counts[] = { 1, 2, 4, 8 };
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

static tsock_server *server;
static char stream[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t claimed, committed;
static atomic_int waiting;
static _Atomic bool go;

static void await_start(void)
{
	atomic_fetch_add(&waiting, 1);
	while (!atomic_load(&go))
		;
}

static void *fill(void *arg)
{
	uint64_t q;
	int n;

	(void)arg;
	await_start();
	while ((n = tsock_serve_claim(server, 1, 0, &q)) == 1) {
		memcpy(tsock_serve_slot(server, 0, q), &q, sizeof(q));
		tsock_serve_commit(server, q, 1);
	}
	if (n != TSOCK_EAGAIN)
		bench_die("claim: %s", tsock_errmsg());
	return NULL;
}

static bool count(uint64_t *n)
{
	bool more;

	pthread_mutex_lock(&lock);
	more = *n < RING;
	*n += more;
	pthread_mutex_unlock(&lock);
	return more;
}

static void *count_all(void *arg)
{
	(void)arg;
	await_start();
	while (count(&claimed))
		count(&committed);
	return NULL;
}

/* Nanoseconds of a sample. */
static double measure(int threads, void *(*fn)(void *arg))
{
	pthread_t t[MAX_THREADS];
	int64_t start;

	atomic_store(&waiting, 0);
	atomic_store(&go, false);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, fn, NULL))
			bench_die("can't start a thread");
	while (atomic_load(&waiting) < threads)
		usleep(100);
	start = tsi_now_ns();
	atomic_store(&go, true);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return (double)(tsi_now_ns() - start) / (double)RING;
}

static double fill_ring(int threads)
{
	const struct tsock_field field = { .name = "n", .dtype = TSOCK_I64 };
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	struct tsock_opts c = TSOCK_OPTS_INIT;
	tsock *t;
	double ns;

	o.nfields = 1;
	o.fields = &field;
	o.epoch_len = RING;
	o.ring = RING;
	o.max_batch = 64;
	c.batch_size = 64;
	if (tsock_serve_open(stream, &o, &server) ||
	    tsock_open(stream, &c, &t) || tsock_begin(t))
		bench_die("serve: %s", tsock_errmsg());
	ns = measure(threads, fill);
	tsock_close(t);
	tsock_serve_close(server);
	return ns;
}

static double take_mutex(int threads)
{
	claimed = committed = 0;
	return measure(threads, count_all);
}

static void bench(int threads)
{
	int turns = bench_quick(MAX_TURNS, 3);
	double ns[MAX_TURNS], ratio[MAX_TURNS];
	char name[32];
	struct bench_result r = { .bench = "claims",
				  .name = name,
				  .unit = "ns/sample",
				  .against = "two mutexes" };

	for (int i = 0; i < turns; i++) {
		ns[i] = fill_ring(threads);
		ratio[i] = ns[i] / take_mutex(threads);
	}
	snprintf(name, sizeof(name), "%d thread%s", threads,
		 threads == 1 ? "" : "s");
	r.value = bench_median(ns, (size_t)turns);
	r.ratio = bench_median(ratio, (size_t)turns);
	r.spread = bench_spread(ratio, (size_t)turns);
	bench_print(&r);
}

int main(void)
{
	snprintf(stream, sizeof(stream), "bench-claims-%d", (int)getpid());
	bench_head("claims: a sample of 8 bytes, claimed and committed");
	for (size_t i = 0; i < NCOUNTS; i++)
		bench(counts[i]);
	return 0;
}
