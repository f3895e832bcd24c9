/* SPDX-License-Identifier: MIT */
/*
 * tokens.c - serve a file of tokens to language models.
 *
 *     cc -std=c99 -O2 -pthread tokens.c -o tokens -ltsock
 *     ./tokens corpus.bin 1024 text 3 &
 *     python -c "import tsock; print(tsock.DataLoader('text', 8, dtype='uint8',
 *                fields=('tokens', 'next')))"
 *
 * FILE has tokens of 16 bits, as tokenizers of up to 65536 words write them.  A
 * sample is CONTEXT tokens from a place in the file, and the ones that follow
 * each of them: two fields of int32.  An epoch is every whole piece of the file
 * once, shuffled, another order each epoch.  The file is mapped, so only
 * what is read is in memory.  EPOCHS 0 serves until Ctrl-C.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tsock/tsock.h>

#define WORKERS 2

struct corpus {
	const uint16_t *token;
	uint64_t samples; /* in an epoch */
	uint64_t context;
	tsock_server *server;
};

enum { TOKENS, NEXT, INDEX, FIELDS };

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * Which sample is at a place of an epoch: a permutation that needs no memory.
 * Four rounds of a Feistel network permute the numbers below a power of 4;
 * those beyond the last sample are sent on until one of them is a sample.
 */
static uint64_t shuffled(uint64_t epoch, uint64_t place, uint64_t samples)
{
	unsigned half = 1;
	uint64_t mask, left, right;

	while (UINT64_C(1) << 2 * half < samples)
		half++;
	mask = (UINT64_C(1) << half) - 1;
	do {
		left = place >> half;
		right = place & mask;
		for (uint64_t round = 0; round < 4; round++) {
			uint64_t old = right;

			right = left ^
				(mix(right + mix(epoch * 4 + round)) & mask);
			left = old;
		}
		place = left << half | right;
	} while (place >= samples);
	return place;
}

static void make(const struct corpus *c, uint64_t seq)
{
	int64_t index = (int64_t)shuffled(seq / c->samples, seq % c->samples,
					  c->samples);
	const uint16_t *from = c->token + (uint64_t)index * c->context;
	int32_t *tokens = tsock_serve_slot(c->server, TOKENS, seq);
	int32_t *next = tsock_serve_slot(c->server, NEXT, seq);

	for (uint64_t i = 0; i < c->context; i++) {
		tokens[i] = from[i];
		next[i] = from[i + 1];
	}
	memcpy(tsock_serve_slot(c->server, INDEX, seq), &index, sizeof(index));
}

static void *work(void *arg)
{
	const struct corpus *c = arg;
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(c->server, 16, -1, &first)) > 0) {
		for (int i = 0; i < n; i++)
			make(c, first + (unsigned)i);
		tsock_serve_commit(c->server, first, (unsigned)n);
	}
	return NULL;
}

static int map_tokens(const char *path, struct corpus *c)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return -1;
	}
	c->samples = 0;
	if (st.st_size >= 4)
		c->samples = ((uint64_t)st.st_size / 2 - 1) / c->context;
	if (!c->samples) {
		fprintf(stderr, "tokens: %s has less than %llu tokens\n", path,
			(unsigned long long)c->context + 1);
		close(fd);
		return -1;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		perror(path);
		return -1;
	}
	c->token = p;
	return 0;
}

static int serve(struct corpus *c, const char *name, uint64_t epochs)
{
	struct tsock_field fields[FIELDS] = {
		{ "tokens", TSOCK_I32, 0, 1, 0, { c->context } },
		{ "next", TSOCK_I32, 0, 1, 0, { c->context } },
		{ "index", TSOCK_I64, 0, 0, 0, { 0 } },
	};
	struct tsock_serve_opts opts = TSOCK_SERVE_OPTS_INIT;
	struct timespec pause = { 0, 50 * 1000 * 1000 };
	pthread_t worker[WORKERS];

	opts.nfields = FIELDS;
	opts.fields = fields;
	opts.epoch_len = c->samples;
	opts.epochs = epochs;
	opts.max_batch = 64;
	opts.ring = 512;
	if (tsock_serve_open(name, &opts, &c->server)) {
		fprintf(stderr, "tokens: %s\n", tsock_errmsg());
		return 1;
	}
	for (int i = 0; i < WORKERS; i++) {
		if (pthread_create(&worker[i], NULL, work, c)) {
			fprintf(stderr, "tokens: can't start a thread\n");
			return 1;
		}
	}
	while (!stop && !tsock_serve_drained(c->server))
		nanosleep(&pause, NULL);
	tsock_serve_stop(c->server);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(worker[i], NULL);
	tsock_serve_close(c->server);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct corpus c = { 0 };

	if (argc != 5 || !(c.context = strtoull(argv[2], NULL, 10))) {
		fprintf(stderr, "usage: tokens FILE CONTEXT NAME EPOCHS\n");
		return 2;
	}
	if (map_tokens(argv[1], &c))
		return 1;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return serve(&c, argv[3], strtoull(argv[4], NULL, 10));
}
