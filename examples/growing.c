/* SPDX-License-Identifier: MIT */
/*
 * growing.c - read a data set whose files change while it is served.
 *
 *     tsock-producer --dataset imagefolder --root DIR --name flowers --grows
 *
 *     cc -std=c99 -O2 growing.c -o growing -ltsock
 *     ./growing flowers 32 90
 *
 * Files that are added to DIR, or removed, end the stream after an epoch, and
 * its producer begins another one of the same name, with the files that there
 * are by then.  Prints a line for each epoch.  The part to copy is go_on().
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tsock/tsock.h>

struct reader {
	const char *name;
	struct tsock_opts opts;
	tsock *t;
	struct tsock_info info;
	char *identity;
	unsigned index; /* number of that field */
};

static void die(const char *what)
{
	fprintf(stderr, "growing: %s: %s\n", what, tsock_errmsg());
	exit(1);
}

/* What may be another one in the next stream. */
static void describe(struct reader *r)
{
	struct tsock_field f;

	r->info.size = sizeof(r->info);
	if (tsock_get_info(r->t, &r->info))
		die("info");
	free(r->identity);
	r->identity = strdup(tsock_identity(r->t));
	if (!r->identity)
		exit(1);
	for (r->index = 0; r->index < r->info.nfields; r->index++) {
		if (tsock_get_field(r->t, r->index, &f))
			die("field");
		if (strcmp(f.name, "index") == 0)
			return;
	}
	fprintf(stderr, "growing: %s has no field index\n", r->name);
	exit(1);
}

/* The stream that has ended is there until everybody has read it. */
static bool is_next(const struct reader *r)
{
	struct tsock_info info = { 0 };

	info.size = sizeof(info);
	if (tsock_get_info(r->t, &info))
		die("info");
	return strcmp(tsock_identity(r->t), r->identity) != 0 || !info.epochs;
}

/* Go on with the next stream of the name; false: there is none. */
static bool go_on(struct reader *r)
{
	const struct timespec pause = { 0, 100000000 };

	if (!strstr(r->identity, "\ngrows=1\n"))
		return false;
	for (;;) {
		int err;

		tsock_close(r->t);
		err = tsock_open(r->name, &r->opts, &r->t);
		if (err == TSOCK_ENOPROD)
			return false; /* the producer has ended */
		if (err)
			die(r->name);
		if (is_next(r))
			break;
		nanosleep(&pause, NULL);
	}
	describe(r);
	return true;
}

/* 0; TSOCK_EENDED or TSOCK_ELOST: the stream has no such epoch. */
static int read_epoch(const struct reader *r)
{
	uint64_t samples = 0, sum = 0;
	tsock_batch *b;
	int err = tsock_begin(r->t);

	while (!err && !(err = tsock_next(r->t, -1, &b))) {
		const int64_t *index = tsock_batch_data(b, r->index);

		for (uint64_t i = 0; i < tsock_batch_count(b); i++)
			sum += (uint64_t)index[i];
		samples += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	if ((err == TSOCK_EENDED || err == TSOCK_ELOST) && !samples)
		return err;
	if (err != TSOCK_EEPOCH)
		die("next");
	printf("epoch %llu: %llu samples of %llu in %u classes, indices sum up "
	       "to %llu\n",
	       (unsigned long long)tsock_epoch(r->t),
	       (unsigned long long)samples,
	       (unsigned long long)r->info.dataset_len, r->info.nclasses,
	       (unsigned long long)sum);
	return 0;
}

int main(int argc, char **argv)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	struct reader r = { 0 };
	long left;

	if (argc != 4) {
		fprintf(stderr, "usage: growing NAME BATCH EPOCHS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	opts.batch_size = (uint32_t)strtoul(argv[2], NULL, 10);
	r.name = argv[1];
	r.opts = opts;
	left = strtol(argv[3], NULL, 10);
	if (tsock_open(r.name, &r.opts, &r.t))
		die(r.name);
	describe(&r);
	while (left > 0) {
		if (!read_epoch(&r))
			left--;
		else if (!go_on(&r))
			break;
	}
	tsock_close(r.t);
	free(r.identity);
	return 0;
}
