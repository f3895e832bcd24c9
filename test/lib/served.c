/* SPDX-License-Identifier: MIT */
/*
 * served.c - a stream that this process serves itself.
 */
#include "test/lib/served.h"

uint8_t served_pixel(uint64_t seq)
{
	return (uint8_t)(seq * 7 + seq / 256);
}

static void *served_work(void *arg)
{
	struct served *v = arg;
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(v->s, 3, -1, &first)) > 0) {
		for (uint64_t q = first; q < first + (unsigned)n; q++)
			memset(tsock_serve_slot(v->s, 0, q), served_pixel(q),
			       SERVED_BYTES);
		tsock_serve_commit(v->s, first, (unsigned)n);
	}
	return NULL;
}

void served_open_as(struct served *v, const char *name, uint64_t n,
		    uint32_t ring, uint32_t max_batch, const char *identity)
{
	static const struct tsock_field field = {
		.name = "image",
		.dtype = TSOCK_U8,
		.flags = TSOCK_FIELD_IMAGE,
		.ndim = 3,
		.shape = { SERVED_SIDE, SERVED_SIDE, 3 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	*v = (struct served){ .name = name, .n = n };
	o.fields = &field;
	o.nfields = 1;
	o.epoch_len = n;
	o.ring = ring;
	o.max_batch = max_batch;
	o.identity = identity;
	o.resumable = identity != NULL;
	if (tsock_serve_open(name, &o, &v->s)) {
		fprintf(stderr, "serve: %s\n", tsock_errmsg());
		abort();
	}
}

void served_start_as(struct served *v, const char *name, uint64_t n,
		     uint32_t ring, uint32_t max_batch, const char *identity)
{
	served_open_as(v, name, n, ring, max_batch, identity);
	if (pthread_create(&v->worker, NULL, served_work, v))
		abort();
}

void served_start(struct served *v, const char *name, uint64_t n, uint32_t ring,
		  uint32_t max_batch)
{
	served_start_as(v, name, n, ring, max_batch, NULL);
}

void served_stop(struct served *v)
{
	tsock_serve_stop(v->s);
	pthread_join(v->worker, NULL);
	tsock_serve_close(v->s);
}

tsock *served_begin(const struct served *v, uint32_t batch, uint32_t dtype,
		    uint32_t flags)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = batch;
	o.dtype = dtype;
	o.flags = flags;
	if (tsock_open(v->name, &o, &t) || tsock_begin(t)) {
		fprintf(stderr, "open: %s\n", tsock_errmsg());
		abort();
	}
	return t;
}

bool served_good(const tsock_batch *b)
{
	const uint8_t *p = tsock_batch_data(b, 0);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++)
		for (unsigned j = 0; j < SERVED_BYTES; j++)
			if (p[i * SERVED_BYTES + j] !=
			    served_pixel(tsock_batch_seq(b) + i))
				return false;
	return true;
}
