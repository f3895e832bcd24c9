/* SPDX-License-Identifier: MIT */
#include "test/lib/steady_reader.h"

#include <stdatomic.h>

void steady_reader_check_floats(const struct reader *r, const tsock_batch *b)
{
	uint32_t side = r->src->image, plane = side * side, n = plane * 3;
	const float *p = tsock_batch_data(b, 3);
	uint8_t raw[8 * 8 * 3];

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		stream_fill_payload(raw, n, (tsock_batch_seq(b) + i) ^ 77);
		for (uint32_t k = 0; k < n; k++)
			if (p[i * n + k] !=
			    (float)raw[k % plane * 3 + k / plane] / 255.0f)
				die("a wrong pixel of %llu",
				    (unsigned long long)(tsock_batch_seq(b) +
							 i));
	}
}

/* An epoch of a rank: its part of each block, and nothing else. */
static void read_part(const struct reader *r, tsock *t)
{
	uint64_t world = r->world ? r->world : 1, block = world * r->batch;
	uint64_t want = 0, start = UINT64_MAX, n = r->src->n;
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, -1, &b)) == 0) {
		uint64_t seq = tsock_batch_seq(b);

		if (start == UINT64_MAX) {
			start = seq - seq % n;
			want = start + r->rank * r->batch;
		}
		if (seq != want || seq % n + tsock_batch_count(b) > n)
			die("rank %u: %llu in the place of %llu", r->rank,
			    (unsigned long long)seq, (unsigned long long)want);
		reader_check_batch(r, b, 0);
		reader_add_checked(tsock_batch_count(b));
		if (r->floats)
			steady_reader_check_floats(r, b);
		tsock_batch_release(b);
		want += block;
	}
	if (err != TSOCK_EEPOCH)
		die("rank %u: %s", r->rank, tsock_errmsg());
	need(want == start + n / block * block + r->rank * r->batch);
}

pid_t steady_reader_start(const struct reader *r)
{
	pid_t pid = proc_spawn();
	uint64_t epoch = UINT64_MAX;
	tsock *t;

	if (pid)
		return pid;
	t = reader_connect(r);
	for (uint32_t e = 0; e < r->epochs; e++) {
		if (r->enough && atomic_load(r->enough))
			break;
		if (tsock_begin(t))
			die("begin: %s", tsock_errmsg());
		if (epoch != UINT64_MAX && r->between != TSOCK_BETWEEN_LEAVE &&
		    tsock_epoch(t) != epoch + 1)
			die("epoch %llu after %llu",
			    (unsigned long long)tsock_epoch(t),
			    (unsigned long long)epoch);
		epoch = tsock_epoch(t);
		if (r->world || r->floats)
			read_part(r, t);
		else
			reader_read_epoch(r, t);
	}
	tsock_close(t);
	_exit(0);
}
