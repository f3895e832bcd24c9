/* SPDX-License-Identifier: MIT */
/*
 * reader.c - a consumer that checks every byte, in a process of its own.
 */
#include "test/lib/reader.h"

#include <stdatomic.h>
#include <sys/mman.h>

static _Atomic uint64_t *checked; /* shared with all children; or NULL */

void reader_count_checked(void)
{
	checked = mmap(NULL, sizeof(*checked), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(checked != MAP_FAILED);
}

void reader_add_checked(uint64_t samples)
{
	if (checked)
		atomic_fetch_add(checked, samples);
}

uint64_t reader_samples_checked(void)
{
	return checked ? atomic_load(checked) : 0;
}

void reader_tally_begin(struct tally *y, const struct source *src,
			uint32_t batch, uint32_t flags)
{
	*y = (struct tally){ .src = src, .batch = batch, .flags = flags };
	y->first = y->want = UINT64_MAX;
	y->seen = calloc(src->n, 1);
	need(y->seen);
}

void reader_tally_add(struct tally *y, const tsock_batch *b)
{
	uint64_t seq = tsock_batch_seq(b), c = tsock_batch_count(b);

	if (y->want == UINT64_MAX)
		y->first = y->want = seq;
	if (seq != y->want)
		die("batch %u: %llu follows %llu", y->batch,
		    (unsigned long long)seq, (unsigned long long)y->want);
	need(c >= 1 && c <= y->batch);
	for (uint64_t i = 0; i < c; i++)
		if (y->seen[stream_index_of(y->src, seq + i)]++)
			die("batch %u: index %llu twice", y->batch,
			    (unsigned long long)stream_index_of(y->src,
								seq + i));
	y->want = seq + c;
	y->got += c;
	y->full += c == y->batch;
}

void reader_tally_end(struct tally *y, bool whole)
{
	uint64_t n = y->src->n;

	free(y->seen);
	if (y->flags & TSOCK_DROP_LAST)
		need(y->got == n / y->batch * y->batch &&
		     y->full * y->batch == y->got);
	else if (whole)
		need(y->got == n);
	else
		need(y->got >= 1 && y->got <= n);
}

tsock *reader_connect(const struct reader *r)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = r->batch;
	o.join = r->join;
	o.between = r->between;
	o.flags = r->flags;
	o.rank = r->rank;
	o.world = r->world;
	if (r->floats) {
		o.dtype = TSOCK_F32;
		o.layout = TSOCK_CHW;
		o.normalize = TSOCK_UNIT;
	}
	o.timeout_ms = 60000;
	if (tsock_open(r->src->name, &o, &t))
		die("open: %s", tsock_errmsg());
	return t;
}

void reader_check_batch(const struct reader *r, const tsock_batch *b,
			uint64_t from)
{
	const uint8_t *payload = tsock_batch_data(b, 0);
	const int64_t *label = tsock_batch_data(b, 1);
	const int64_t *index = tsock_batch_data(b, 2);
	char who[32];

	snprintf(who, sizeof(who), "batch %u", r->batch);
	stream_check_samples(r->src, who, tsock_batch_seq(b) + from,
			     tsock_batch_count(b) - from,
			     payload + from * r->src->payload, label + from,
			     index + from);
}

void reader_read_epoch(const struct reader *r, tsock *t)
{
	struct tally y;
	tsock_batch *b;
	int err;

	reader_tally_begin(&y, r->src, r->batch, r->flags);
	while ((err = tsock_next(t, -1, &b)) == 0) {
		reader_tally_add(&y, b);
		reader_check_batch(r, b, 0);
		reader_add_checked(tsock_batch_count(b));
		if (r->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xee,
			       tsock_batch_count(b) * r->src->payload);
		if (r->hold_us)
			proc_pause_us(r->hold_us);
		if (!r->scribble)
			reader_check_batch(r, b, 0);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		die("batch %u: next: %s", r->batch, tsock_errmsg());
	reader_tally_end(&y, r->join != TSOCK_JOIN_NOW);
}

void reader_read_all(const struct reader *r)
{
	tsock *t;

	if (r->delay_us)
		proc_pause_us(r->delay_us);
	t = reader_connect(r);
	for (uint32_t e = 0; e < r->epochs; e++) {
		int err = tsock_begin(t);

		if (err == TSOCK_EENDED)
			break;
		if (err)
			die("begin: %s", tsock_errmsg());
		reader_read_epoch(r, t);
	}
	tsock_close(t);
}

pid_t reader_start(const struct reader *r)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		reader_read_all(r);
		_exit(0);
	}
	return pid;
}
