/* SPDX-License-Identifier: MIT */
/*
 * gpuoverlap.c - do copies to the GPU and decoding go on at the same time?
 *
 * "Decoding" is a thread that spins for as long per sample as a sample's copy
 * takes, so the two together take as long as either where they overlap, and
 * twice as long where one waits for the other.  On the simulated runtime each
 * copy sleeps: the arithmetic is the same.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/gpuspeed.h"
#include "tsock/tsock.h"

#define SIDE 128
#define RING 512
#define BATCH 64
#define ROUNDS 5

struct shared {
	_Atomic int64_t begun, ended;
	_Atomic bool end;
};

static struct shared *sh;
static const char *name;
static uint64_t samples;
static int64_t decode_ns; /* per sample */
static int device;

static void produce(void)
{
	const struct tsock_field image = { .name = "image",
					   .dtype = TSOCK_U8,
					   .flags = TSOCK_FIELD_IMAGE,
					   .ndim = 3,
					   .shape = { SIDE, SIDE, 3 } };
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;
	uint64_t seq, made = 0;

	if (BENCH_GPU_SIMULATED)
		setenv("SIMCUDA_FAULT", "slow=2", 1);
	o.nfields = 1;
	o.fields = &image;
	o.epoch_len = samples;
	o.ring = RING;
	o.max_batch = BATCH;
	bench_gpu_must(tsock_serve_open(name, &o, &s), "serve");
	while (made < samples) {
		int n = tsock_serve_claim(s, 1, 100, &seq);
		int64_t t = tsi_now_ns();

		if (n == TSOCK_EAGAIN)
			continue;
		if (n != 1)
			bench_die("claim: %s", tsock_errmsg());
		if (!made++)
			atomic_store(&sh->begun, t);
		while (tsi_now_ns() - t < decode_ns)
			;
		tsock_serve_commit(s, seq, 1);
	}
	while (!atomic_load(&sh->end))
		usleep(1000);
	tsock_serve_close(s);
}

static void consume(void)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	uint64_t got = 0;
	tsock_batch *b;
	tsock *t;

	o.batch_size = BATCH;
	o.device = device;
	bench_gpu_must(tsock_open(name, &o, &t), "consumer");
	bench_gpu_must(tsock_begin(t), "begin");
	for (; got < samples; got += BATCH) {
		bench_gpu_must(tsock_next(t, -1, &b), "next");
		tsock_batch_release(b);
	}
	atomic_store(&sh->ended, tsi_now_ns());
	tsock_close(t);
}

/* Milliseconds from the first sample's claim to the last batch in hand. */
static double once(int on, int64_t each_ns)
{
	pid_t producer, consumer;

	device = on;
	decode_ns = each_ns;
	atomic_store(&sh->end, false);
	producer = bench_gpu_child();
	if (producer == 0) {
		produce();
		_exit(0);
	}
	consumer = bench_gpu_child();
	if (consumer == 0) {
		consume();
		_exit(0);
	}
	bench_gpu_reap(consumer, "a consumer");
	atomic_store(&sh->end, true);
	bench_gpu_reap(producer, "the producer");
	return (double)(atomic_load(&sh->ended) - atomic_load(&sh->begun)) /
	       1e6;
}

void bench_gpu_overlap(const char *stream)
{
	double copy[ROUNDS], decode[ROUNDS], both[ROUNDS];
	double longer[ROUNDS], sum[ROUNDS];
	size_t rounds = (size_t)bench_quick(ROUNDS, 1);

	name = stream;
	samples = (uint64_t)bench_quick(64, 16) * BATCH;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("no memory");
	for (size_t i = 0; i < rounds; i++) {
		int64_t each;

		copy[i] = once(0, 0);
		each = (int64_t)(copy[i] * 1e6 / (double)samples);
		decode[i] = once(-1, each);
		both[i] = once(0, each);
		longer[i] = copy[i] > decode[i] ? copy[i] : decode[i];
		longer[i] = both[i] / longer[i];
		sum[i] = both[i] / (copy[i] + decode[i]);
	}
	munmap(sh, sizeof(*sh));
	bench_gpu_print("copies alone", bench_median(copy, rounds), "ms", NULL,
			0, bench_spread(copy, rounds));
	bench_gpu_print("decoding alone", bench_median(decode, rounds), "ms",
			NULL, 0, bench_spread(decode, rounds));
	bench_gpu_print("both at once", bench_median(both, rounds), "ms",
			"the longer one", bench_median(longer, rounds),
			bench_spread(longer, rounds));
	bench_gpu_print("both at once", bench_median(both, rounds), "ms",
			"their sum", bench_median(sum, rounds),
			bench_spread(sum, rounds));
}
