/* SPDX-License-Identifier: MIT */
/*
 * gpuhandoff.c - how long it takes from the commit of a sample to a batch of it
 * on the GPU, in another process, beside a copy of as many bytes alone.
 *
 * Once on a GPU that does nothing else, and once on one that another process
 * keeps busy.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/gpuspeed.h"
#include "mem/gpu.h"
#include "tsock/tsock.h"

#define SMALL 1024
#define MAX_ROUNDS 15
#define STEPS (BENCH_GPU_SIMULATED ? 100 : MOST_STEPS)
#define MOST_STEPS 1000
#define PAUSE_NS 200000
#define STUCK_NS (INT64_C(60) * 1000000000)

struct shared {
	_Atomic uint64_t seen; /* batches */
	_Atomic int64_t stamp; /* when the last sample was committed */
	double copy[MAX_ROUNDS];
	double hand[MOST_STEPS];
};

static struct shared *sh;
static const char *name; /* of the stream */

static void receive(void)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock_batch *b;
	tsock *t;

	bench_pin(0, 1);
	o.batch_size = 1;
	o.device = 0;
	bench_gpu_must(tsock_open(name, &o, &t), "consumer");
	bench_gpu_must(tsock_begin(t), "begin");
	for (int i = 0; i < STEPS + 10; i++) {
		bench_gpu_must(tsock_next(t, -1, &b), "next");
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
	const struct tsock_field bytes = { .name = "image",
					   .dtype = TSOCK_U8,
					   .ndim = 1,
					   .shape = { SMALL } };
	tsock_server *s = bench_gpu_serve(name, &bytes, 64, 4);
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
	/* Copy the bytes to the GPU, and see that they are there. */
	bench_gpu_must(tsi_gpu_stream_create(0, &stream), "stream");
	bench_gpu_must(tsi_gpu_event_create(0, true, &e), "event");
	bench_gpu_must(tsi_gpu_host_alloc(0, SMALL, &host), "memory");
	bench_gpu_must(tsi_gpu_alloc(0, SMALL, &gpu), "memory");
	for (int r = -1; r < MAX_ROUNDS; r++) {
		int64_t t;

		usleep(1000);
		t = tsi_now_ns();
		bench_gpu_must(tsi_gpu_upload(0, stream, gpu, host, SMALL),
			       "copy");
		bench_gpu_wait(e, stream);
		if (r >= 0)
			sh->copy[r] = (double)(tsi_now_ns() - t);
	}
	tsock_serve_close(s);
}

/* where: what else the GPU does, in the rows' names. */
static void handoff(const char *where)
{
	pid_t consumer, producer;
	double copy, all;
	char row[64];

	atomic_store(&sh->seen, 0);
	consumer = bench_gpu_child();
	if (consumer == 0) {
		receive();
		_exit(0);
	}
	producer = bench_gpu_child();
	if (producer == 0) {
		give();
		_exit(0);
	}
	bench_gpu_reap(consumer, "the consumer");
	bench_gpu_reap(producer, "the producer");
	copy = bench_median(sh->copy, MAX_ROUNDS) / 1000;
	all = bench_median(sh->hand, STEPS) / 1000;
	snprintf(row, sizeof(row), "1 KiB to the GPU, seen there%s", where);
	bench_gpu_print(row, copy, "us", NULL, 0,
			bench_spread(sh->copy, MAX_ROUNDS));
	snprintf(row, sizeof(row), "commit to batch in hand, p50%s", where);
	bench_gpu_print(row, all, "us", "that copy", all / copy,
			bench_spread(sh->hand, STEPS));
	snprintf(row, sizeof(row), "hand-off after the copy, p50%s", where);
	bench_gpu_print(row, all - copy, "us", NULL, 0, 0);
	snprintf(row, sizeof(row), "commit to batch in hand, p99%s", where);
	bench_gpu_print(row, bench_percentile(sh->hand, STEPS, 99) / 1000, "us",
			NULL, 0, 0);
}

/* Beside a process that gives the GPU no rest. */
static void handoff_when_busy(void)
{
	pid_t busy = bench_gpu_child();

	if (busy == 0) {
		bench_gpu_busy();
		_exit(1);
	}
	usleep(3000000);
	handoff(", busy");
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
}

void bench_gpu_handoff(const char *stream)
{
	name = stream;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("no memory");
	handoff("");
	handoff_when_busy();
	munmap(sh, sizeof(*sh));
}
