/* SPDX-License-Identifier: MIT */
/*
 * seen.c - read a stream and prove that every sample came exactly once.
 *
 *     cc -std=c99 -O2 seen.c -o seen -ltsock
 *     ./seen imagenet 48 2
 *
 * Prints its throughput once a second, and at each epoch's end how many
 * samples it saw, how many different ones by their place in the data set, and
 * a checksum over all bytes in stream order: two consumers of one epoch print
 * the same one, whatever their batch sizes.  EPOCHS 0 reads to the stream's
 * end.  Exits with 1 if a sample was missing or came twice.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tsock/tsock.h>

struct seen {
	tsock *t;
	const char *name;
	unsigned long batch_size;
	struct tsock_info info;
	unsigned index; /* number of that field */
	size_t sample_bytes[TSOCK_MAX_FIELDS];
	uint8_t *map; /* a bit for every place in the data set */
	uint64_t samples, distinct, strange;
	uint64_t checksum;
	double began, said; /* seconds */
	uint64_t said_samples;
};

static void die(const char *what)
{
	fprintf(stderr, "seen: %s: %s\n", what, tsock_errmsg());
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Sequential, so that the order counts; cut at samples, not at batches. */
static uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
	const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
	const uint8_t *p = bytes;
	uint64_t word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		sum = (sum ^ word) * prime;
	}
	word = 0;
	memcpy(&word, p, len);
	sum = (sum ^ word) * prime;
	return sum ^ sum >> 32;
}

static void describe(struct seen *s)
{
	struct tsock_field f;
	bool found = false;

	s->info.size = sizeof(s->info);
	if (tsock_get_info(s->t, &s->info))
		die("info");
	for (unsigned i = 0; i < s->info.nfields; i++) {
		if (tsock_get_field(s->t, i, &f))
			die("field");
		s->sample_bytes[i] = tsock_dtype_size(f.dtype);
		for (unsigned d = 0; d < f.ndim; d++)
			s->sample_bytes[i] *= f.shape[d];
		if (strcmp(f.name, "index") == 0 && f.dtype == TSOCK_I64) {
			s->index = i;
			found = true;
		}
	}
	s->map = calloc(1, (size_t)(s->info.dataset_len / 8 + 1));
	if (!found || !s->map) {
		fprintf(stderr, "seen: %s: %s\n", s->name,
			found ? "no memory" : "the stream has no index field");
		exit(1);
	}
}

static void take_in(struct seen *s, const tsock_batch *b)
{
	const int64_t *index = tsock_batch_data(b, s->index);
	uint64_t count = tsock_batch_count(b);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)index[i];

		for (unsigned f = 0; f < s->info.nfields; f++) {
			const uint8_t *p = tsock_batch_data(b, f);
			size_t len = s->sample_bytes[f];

			s->checksum = mix(s->checksum, p + i * len, len);
		}
		if (at >= s->info.dataset_len) {
			s->strange++;
		} else if (!(s->map[at / 8] & 1u << at % 8)) {
			s->map[at / 8] |= (uint8_t)(1u << at % 8);
			s->distinct++;
		}
	}
	s->samples += count;
}

static void say_rate(struct seen *s)
{
	double at = now();

	if (at - s->said < 1)
		return;
	printf("%s, batches of %lu: epoch %llu, %llu of %llu, %.0f samples/s\n",
	       s->name, s->batch_size, (unsigned long long)tsock_epoch(s->t),
	       (unsigned long long)s->samples,
	       (unsigned long long)s->info.epoch_len,
	       (double)(s->samples - s->said_samples) / (at - s->said));
	s->said = at;
	s->said_samples = s->samples;
}

/* The proof line; true if every sample came exactly once. */
static bool prove(const struct seen *s)
{
	bool once = s->samples == s->info.epoch_len &&
		    s->distinct == s->samples && !s->strange;

	printf("%s, batches of %lu: epoch %llu: %llu samples, %llu different "
	       "of %llu, %s; checksum %016llx; %.0f samples/s\n",
	       s->name, s->batch_size, (unsigned long long)tsock_epoch(s->t),
	       (unsigned long long)s->samples, (unsigned long long)s->distinct,
	       (unsigned long long)s->info.epoch_len,
	       once ? "each exactly once" : "NOT each exactly once",
	       (unsigned long long)s->checksum,
	       (double)s->samples / (now() - s->began));
	return once;
}

/* Reads an epoch: 1 it is right, 0 it isn't, or TSOCK_EENDED. */
static int read_epoch(struct seen *s)
{
	tsock_batch *b;
	int err = tsock_begin(s->t);

	if (err == TSOCK_EENDED)
		return err;
	if (err)
		die("begin");
	memset(s->map, 0, (size_t)(s->info.dataset_len / 8 + 1));
	s->samples = s->distinct = s->strange = 0;
	s->checksum = s->said_samples = 0;
	s->began = s->said = now();
	while ((err = tsock_next(s->t, -1, &b)) == 0) {
		take_in(s, b);
		tsock_batch_release(b);
		say_rate(s);
	}
	if (err != TSOCK_EEPOCH)
		die("next");
	return prove(s);
}

int main(int argc, char **argv)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	struct seen s = { 0 };
	unsigned long epochs;
	bool once = true;

	if (argc != 4) {
		fprintf(stderr, "usage: seen NAME BATCH EPOCHS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.name = argv[1];
	s.batch_size = strtoul(argv[2], NULL, 10);
	epochs = strtoul(argv[3], NULL, 10);
	opts.batch_size = (uint32_t)s.batch_size;
	if (tsock_open(s.name, &opts, &s.t))
		die(s.name);
	describe(&s);
	for (unsigned long e = 0; !epochs || e < epochs; e++) {
		int right = read_epoch(&s);

		if (right < 0)
			break;
		once = once && right;
	}
	tsock_close(s.t);
	free(s.map);
	return once ? 0 : 1;
}
