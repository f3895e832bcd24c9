/* SPDX-License-Identifier: MIT */
/*
 * made.c - a server of made-up samples in this process, and the thread that
 * makes them.
 */
#include "test/faults/made.h"

#include "test/faults/inject.h"
#include "test/lib/proc.h"

static uint8_t pixel(uint64_t seq)
{
	return (uint8_t)(seq * 7 + 3);
}

static void *fill(void *arg)
{
	tsock_server *s = arg;
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(s, 3, -1, &first)) > 0) {
		for (uint64_t q = first; q < first + (unsigned)n; q++) {
			int64_t label = (int64_t)q;

			memset(tsock_serve_slot(s, 0, q), pixel(q), MADE_BYTES);
			memcpy(tsock_serve_slot(s, 1, q), &label,
			       sizeof(label));
		}
		tsock_serve_commit(s, first, (unsigned)n);
	}
	return NULL;
}

int made_open(struct made_opts opts, struct made *out)
{
	static const char *const classes[] = { "cat", "dog" };
	static const struct tsock_field field[] = {
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = TSOCK_FIELD_IMAGE,
		  .ndim = 3,
		  .shape = { MADE_SIDE, MADE_SIDE, 3 } },
		{ .name = "label", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	int err;

	o.fields = field;
	o.nfields = 2;
	o.epoch_len = MADE_EPOCH;
	o.ring = MADE_RING;
	o.max_batch = 16;
	o.classes = (const char **)classes;
	o.nclasses = 2;
	o.identity = "made=up";
	o.resumable = opts.resumable;
	o.slow = opts.detach_ms ? TSOCK_SLOW_DETACH : TSOCK_SLOW_BLOCK;
	o.slow_ms = opts.detach_ms;
	err = tsock_serve_open(MADE_NAME, &o, &out->server);
	if (err)
		return err;
	inject_pause();
	need(!pthread_create(&out->thread, NULL, fill, out->server));
	inject_resume();
	return 0;
}

void made_close(struct made *m)
{
	tsock_serve_stop(m->server);
	inject_pause();
	pthread_join(m->thread, NULL);
	inject_resume();
	tsock_serve_close(m->server);
}

void made_check(const tsock_batch *b, bool stored)
{
	const int64_t *label = tsock_batch_data(b, 1);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		uint64_t q = tsock_batch_seq(b) + i;
		const uint8_t *p = tsock_batch_data(b, 0);
		const float *f = tsock_batch_data(b, 0);

		need(label[i] == (int64_t)q);
		for (unsigned k = 0; k < MADE_BYTES; k++)
			if (stored ? p[i * MADE_BYTES + k] != pixel(q)
				   : f[i * MADE_BYTES + k] != pixel(q) / 255.0f)
				die("sample %llu is wrong",
				    (unsigned long long)q);
	}
}
