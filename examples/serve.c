/* SPDX-License-Identifier: MIT */
/*
 * serve.c - serve samples of your own: no images, no files.
 *
 *     cc -std=c99 -O2 -pthread serve.c -o serve -ltsock -lm
 *     ./serve spiral 3 &
 *     ./seen spiral 100 3
 *
 * The data set is N points of two spirals, each a fixed record: where it is
 * (two floats), which spiral it is on, its place in the data set.  Workers
 * repeat: claim, write each field into its slot, commit; the server does the
 * rest.  EPOCHS 0 serves until Ctrl-C.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tsock/tsock.h>

#define N 10007 /* a prime: see shuffled() */
#define WORKERS 2

enum { POINT, LABEL, INDEX, FIELDS };

static const struct tsock_field fields[FIELDS] = {
	{ "point", TSOCK_F32, 0, 1, 0, { 2 } },
	{ "label", TSOCK_I64, 0, 0, 0, { 0 } },
	{ "index", TSOCK_I64, 0, 0, 0, { 0 } },
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/*
 * Which sample is at a place of an epoch: multiples of any number but 0 run
 * through all residues of a prime, each epoch in an order of its own.
 */
static uint64_t shuffled(uint64_t epoch, uint64_t place)
{
	uint64_t factor = 1 + (epoch + 1) * UINT64_C(2654435761) % (N - 1);

	return (place * factor + epoch) % N;
}

static void make(tsock_server *s, uint64_t seq)
{
	int64_t index = (int64_t)shuffled(seq / N, seq % N);
	int64_t label = index % 2;
	float angle = (float)index * 12.0f / N;
	float turn = label ? 3.14159265f : 0;
	float point[2] = { angle * cosf(angle + turn),
			   angle * sinf(angle + turn) };

	memcpy(tsock_serve_slot(s, POINT, seq), point, sizeof(point));
	memcpy(tsock_serve_slot(s, LABEL, seq), &label, sizeof(label));
	memcpy(tsock_serve_slot(s, INDEX, seq), &index, sizeof(index));
}

static void *work(void *server)
{
	uint64_t first;
	int count;

	while ((count = tsock_serve_claim(server, 64, -1, &first)) > 0) {
		for (int i = 0; i < count; i++)
			make(server, first + (unsigned)i);
		tsock_serve_commit(server, first, (unsigned)count);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const classes[] = { "left", "right" };
	struct tsock_serve_opts opts = TSOCK_SERVE_OPTS_INIT;
	struct timespec pause = { 0, 50 * 1000 * 1000 };
	struct sigaction act = { .sa_handler = on_signal };
	pthread_t worker[WORKERS];
	tsock_server *s;

	if (argc != 3) {
		fprintf(stderr, "usage: serve NAME EPOCHS\n");
		return 2;
	}
	opts.nfields = FIELDS;
	opts.fields = fields;
	opts.epoch_len = N;
	opts.epochs = strtoull(argv[2], NULL, 10);
	opts.classes = classes;
	opts.nclasses = 2;
	if (tsock_serve_open(argv[1], &opts, &s)) {
		fprintf(stderr, "serve: %s\n", tsock_errmsg());
		return 1;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	for (int i = 0; i < WORKERS; i++) {
		if (pthread_create(&worker[i], NULL, work, s)) {
			fprintf(stderr, "serve: can't start a thread\n");
			return 1;
		}
	}
	while (!stop && !tsock_serve_drained(s))
		nanosleep(&pause, NULL);
	tsock_serve_stop(s);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	tsock_serve_close(s);
	return 0;
}
