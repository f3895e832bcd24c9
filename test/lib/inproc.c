/* SPDX-License-Identifier: MIT */
/*
 * inproc.c - a stream of small images that threads of this process fill.
 */
#include "test/lib/inproc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint8_t inproc_pixel(uint64_t seq)
{
	return (uint8_t)(seq * 7 + seq / 256);
}

static void make_sample(struct inproc *st, uint64_t seq)
{
	int64_t index = (int64_t)(seq % st->n);

	memset(tsock_serve_slot(st->s, 0, seq), inproc_pixel(seq),
	       INPROC_BYTES);
	memcpy(tsock_serve_slot(st->s, 1, seq), &index, sizeof(index));
}

void *inproc_work(void *arg)
{
	struct inproc *st = arg;
	uint64_t first;

	for (;;) {
		int n = tsock_serve_claim(st->s, 3, -1, &first);

		if (n < 0)
			return NULL;
		for (int i = 0; i < n; i++)
			make_sample(st, first + (uint64_t)i);
		/* Not beyond what the test allows. */
		while (first >= atomic_load(&st->upto))
			if (tsock_serve_drained(st->s) < 0)
				return NULL;
		tsock_serve_commit(st->s, first, (unsigned)n);
	}
}

static const struct tsock_field fields[] = {
	{ .name = "image",
	  .dtype = TSOCK_U8,
	  .flags = TSOCK_FIELD_IMAGE,
	  .ndim = 3,
	  .shape = { INPROC_SIDE, INPROC_SIDE, 3 } },
	{ .name = "index", .dtype = TSOCK_I64 },
};

struct tsock_serve_opts inproc_opts(uint64_t n)
{
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	o.fields = fields;
	o.nfields = 2;
	o.epoch_len = n;
	o.ring = 512;
	o.max_batch = 128;
	return o;
}

void inproc_serve(struct inproc *st, const struct tsock_serve_opts *o)
{
	memset(st, 0, sizeof(*st));
	st->n = o->epoch_len;
	atomic_store(&st->upto, UINT64_MAX);
	if (tsock_serve_open("unit", o, &st->s)) {
		fprintf(stderr, "serve: %s\n", tsock_errmsg());
		abort();
	}
	for (unsigned i = 0; i < INPROC_WORKERS; i++)
		if (pthread_create(&st->worker[i], NULL, inproc_work, st))
			abort();
}

void inproc_serve_n(struct inproc *st, uint64_t n)
{
	struct tsock_serve_opts o = inproc_opts(n);

	inproc_serve(st, &o);
}

void inproc_stop(struct inproc *st)
{
	tsock_serve_stop(st->s);
	for (unsigned i = 0; i < INPROC_WORKERS; i++)
		pthread_join(st->worker[i], NULL);
	tsock_serve_close(st->s);
}

tsock *inproc_join(uint32_t batch, uint32_t flags)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = batch;
	o.flags = flags;
	if (tsock_open("unit", &o, &t)) {
		fprintf(stderr, "open: %s\n", tsock_errmsg());
		abort();
	}
	return t;
}

bool inproc_good(const tsock_batch *b, uint64_t n)
{
	const uint8_t *image = tsock_batch_data(b, 0);
	const int64_t *index = tsock_batch_data(b, 1);
	uint64_t seq = tsock_batch_seq(b);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++, seq++) {
		if (index[i] != (int64_t)(seq % n))
			return false;
		for (uint64_t j = 0; j < INPROC_BYTES; j++)
			if (image[i * INPROC_BYTES + j] != inproc_pixel(seq))
				return false;
	}
	return true;
}

tsock_batch *inproc_next(tsock *t)
{
	tsock_batch *b;
	int err = tsock_next(t, 20000, &b);

	if (err)
		fail_msg("tsock_next: %s: %s", tsock_strerror(err),
			 tsock_errmsg());
	return b;
}

uint64_t inproc_consumers(struct inproc *st)
{
	struct tsock_stats s = { .size = sizeof(s) };

	if (tsock_serve_stats(st->s, &s))
		abort();
	return s.consumers;
}

static char folder[] = "/tmp/tsock-unit-XXXXXX";
static bool own_folder;

void inproc_open_folder(void)
{
	own_folder = !getenv("TSOCK_DIR");
	if (own_folder && (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)))
		exit(1);
}

/* A killed producer leaves its sockets behind. */
void inproc_close_folder(void)
{
	static const char *const left[] = { "unit.bus", "unit.door",
					    "unit.lock" };
	char path[64];

	if (!own_folder)
		return;
	for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
		unlink(path);
	}
	rmdir(folder);
}
