/* SPDX-License-Identifier: MIT */
/*
 * test_restart.c - producers that die and are started again: readers go on at
 * the exact next sample, and none is lost, comes twice or has other bytes.
 */
#include "test/lib/reader.h"

static struct source source_of(const char *name)
{
	return (struct source){ .name = name,
				.n = 2000,
				.ring = 256,
				.max_batch = 32,
				.payload = 600,
				.image = 8,
				.pace_us = 30,
				.identity = "kind=test\nseed=1\n" };
}

static unsigned kills(unsigned otherwise)
{
	const char *n = getenv("TSOCK_KILLS");

	return n ? (unsigned)atoi(n) : otherwise;
}

/* ---- readers ---- */

/* The image of a sample, as floats: of its stored bytes. */
static void check_floats(const struct reader *r, const tsock_batch *b)
{
	uint32_t side = r->src->image, plane = side * side, n = plane * 3;
	const float *p = tsock_batch_data(b, 3);
	uint8_t raw[8 * 8 * 3];

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		fill_payload(raw, n, (tsock_batch_seq(b) + i) ^ 77);
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
		check_batch(r, b, 0);
		add_checked(tsock_batch_count(b));
		if (r->floats)
			check_floats(r, b);
		tsock_batch_release(b);
		want += block;
	}
	if (err != TSOCK_EEPOCH)
		die("rank %u: %s", r->rank, tsock_errmsg());
	need(want == start + n / block * block + r->rank * r->batch);
}

/* Epochs follow each other; each whole, by parts or by all samples. */
static pid_t start_steady(const struct reader *r)
{
	pid_t pid = spawn();
	uint64_t epoch = UINT64_MAX;
	tsock *t;

	if (pid)
		return pid;
	t = connect_reader(r);
	for (uint32_t e = 0; e < r->epochs; e++) {
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
			read_epoch(r, t);
	}
	tsock_close(t);
	_exit(0);
}

/* ---- deaths ---- */

/* Kill and start the producer until the readers are through: how often. */
static unsigned disturb(const struct source *src, pid_t producer,
			const pid_t *pid, unsigned n, unsigned seed,
			unsigned most)
{
	unsigned left = n, killed = 0;
	bool over[8] = { false };

	while (left) {
		pause_us((unsigned)rand_r(&seed) % 120000);
		if (killed < most) {
			kill_and_reap(producer);
			killed++;
			if (rand_r(&seed) % 2)
				pause_us((unsigned)rand_r(&seed) % 50000);
			producer = start_producer(src);
		}
		for (unsigned i = 0; i < n; i++) {
			int status;

			if (over[i] || waitpid(pid[i], &status, WNOHANG) == 0)
				continue;
			forget_child(pid[i]);
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			over[i] = true;
			left--;
		}
	}
	kill_and_reap(producer);
	return killed;
}

static unsigned deaths; /* of producers, in all cases */

static void run(const struct source *src, struct reader *r, unsigned n,
		unsigned seed, unsigned most)
{
	pid_t producer = start_producer(src), pid[8];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = start_steady(&r[i]);
	}
	/*
	 * Ranks begin together once, and from then on go on by themselves; one
	 * may have read all before this process looks.  And a stream that
	 * waits for readers waits no longer once its producer has died.
	 */
	while ((r[0].world || src->min_consumers) &&
	       stats_of(src->name).consumers < n && !has_ended(pid[0]))
		pause_us(1000);
	print_message("%u producers killed, %llu samples checked\n", deaths,
		      (unsigned long long)samples_checked());
	return failed;
}
