/* SPDX-License-Identifier: MIT */
/*
 * stream.c - a producer of made-up samples, in a process of its own.
 */
#include "test/lib/stream.h"

#define LOOKS 6000 /* a hundredth of a second each */

uint64_t stream_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t stream_index_of(const struct source *src, uint64_t s)
{
	uint64_t e = s / src->n, place = s % src->n, lo = 0, len = src->n;
	uint32_t k = src->segments ? src->segments : 1;

	for (uint32_t i = 0; i < k; i++) {
		uint64_t a = src->n * i / k, b = src->n * (i + 1) / k;

		if (a <= place && place < b) {
			lo = a;
			len = b - a;
		}
	}
	return lo + (place - lo + stream_mix(e) % len) % len;
}

void stream_fill_payload(uint8_t *p, uint32_t bytes, uint64_t s)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t x = stream_mix(s * 4099 + i / 8);

		memcpy(p + i, &x, bytes - i < 8 ? bytes - i : 8);
	}
}

bool stream_payload_is(const uint8_t *p, uint32_t bytes, uint64_t s)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t x = stream_mix(s * 4099 + i / 8);

		if (memcmp(p + i, &x, bytes - i < 8 ? bytes - i : 8))
			return false;
	}
	return true;
}

void (*stream_serves)(void);

tsock_server *stream_serve(const struct source *src)
{
	struct tsock_field f[] = {
		{ .name = "payload",
		  .dtype = TSOCK_U8,
		  .ndim = 1,
		  .shape = { src->payload } },
		{ .name = "label", .dtype = TSOCK_I64 },
		{ .name = "index", .dtype = TSOCK_I64 },
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = TSOCK_FIELD_IMAGE,
		  .ndim = 3,
		  .shape = { src->image, src->image, 3 } },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	if (stream_serves)
		stream_serves();
	o.fields = f;
	o.nfields = src->image ? 4 : 3;
	o.epoch_len = src->n;
	o.epochs = src->epochs;
	o.ring = src->ring;
	o.max_batch = src->max_batch;
	o.join_window = src->window;
	o.segments = src->segments;
	o.min_consumers = src->min_consumers;
	o.sequential = src->sequential;
	o.slow = src->slow_ms ? TSOCK_SLOW_KILL : TSOCK_SLOW_BLOCK;
	if (src->detach)
		o.slow = TSOCK_SLOW_DETACH;
	o.slow_ms = src->slow_ms;
	o.memory = src->memory;
	o.fanout = src->fanout;
	o.gpu_transport = src->gpu_transport;
	o.gpu_memory = src->gpu_memory;
	o.identity = src->identity;
	o.classes = src->classes;
	o.nclasses = src->nclasses;
	o.resumable = src->identity != NULL;
	o.commit_views = !src->view_threads;
	if (tsock_serve_open(src->name, &o, &s))
		die("serve: %s", tsock_errmsg());
	return s;
}

void stream_write_sample(tsock_server *s, const struct source *src, uint64_t q)
{
	int64_t *label = tsock_serve_slot(s, 1, q);
	int64_t *index = tsock_serve_slot(s, 2, q);

	stream_fill_payload(tsock_serve_slot(s, 0, q), src->payload, q);
	*label = (int64_t)q;
	*index = (int64_t)stream_index_of(src, q);
	if (src->image)
		stream_fill_payload(tsock_serve_slot(s, 3, q),
				    src->image * src->image * 3, q ^ 77);
}

void stream_produce(tsock_server *s, const struct source *src)
{
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(s, 4, -1, &first)) > 0) {
		/* Out of order, as workers finish. */
		for (int i = n; i-- > 0;) {
			if (src->pace_us)
				proc_pause_us(src->pace_us);
			stream_write_sample(s, src, first + (uint64_t)i);
			tsock_serve_commit(s, first + (uint64_t)i, 1);
		}
	}
}

pid_t stream_start_producer(const struct source *src)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		tsock_server *s;
		char byte;

		if (src->go && read(src->go, &byte, 1) != 1)
			die("nobody said when the producer is to begin");
		s = stream_serve(src);
		if (src->served)
			src->served(s, src);
		stream_produce(s, src);
		while (!tsock_serve_drained(s))
			proc_pause_us(10000);
		tsock_serve_close(s);
		if (src->closed)
			src->closed();
		_exit(0);
	}
	return pid;
}

void stream_check_samples(const struct source *src, const char *who,
			  uint64_t seq, uint64_t n, const uint8_t *payload,
			  const int64_t *label, const int64_t *index)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t q = seq + i;

		if (label[i] != (int64_t)q)
			die("%s: label %lld at place of %llu", who,
			    (long long)label[i], (unsigned long long)q);
		if (index[i] != (int64_t)stream_index_of(src, q))
			die("%s: wrong index at %llu", who,
			    (unsigned long long)q);
		if (!stream_payload_is(payload + i * src->payload, src->payload,
				       q))
			die("%s: torn sample %llu", who, (unsigned long long)q);
	}
}

struct tsock_stats stream_stats(const char *name)
{
	struct tsock_stats st = { .size = sizeof(st) };
	int err = 0;

	/* The producer may be about to begin. */
	for (int i = 0; i < LOOKS; i++) {
		err = tsock_query(name, 60000, &st);
		if (err != TSOCK_ENOPROD)
			break;
		proc_pause_us(10000);
	}
	assert_int_equal(err, 0);
	return st;
}

void stream_wait_readers(const char *name, uint32_t n)
{
	for (int i = 0; i < LOOKS; i++) {
		if (stream_stats(name).consumers == n)
			return;
		proc_pause_us(10000);
	}
	fail_msg("the stream never had %u readers", n);
}
