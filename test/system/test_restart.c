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

/*
 * Until all have begun.  Or until the first one is through: it may have read
 * all before this process looks, and a stream that ends may have ended then.
 */
static void await_readers(const char *name, unsigned n, pid_t first)
{
	struct tsock_stats st = { .size = sizeof(st) };

	while (!has_ended(first)) {
		if (!tsock_query(name, 1000, &st) && st.consumers >= n)
			return;
		pause_us(1000);
	}
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
	 * Ranks begin together once, and from then on go on by themselves.  And
	 * a stream that waits for readers waits no longer once its producer has
	 * died.
	 */
	if (r[0].world || src->min_consumers)
		await_readers(src->name, n, pid[0]);
	deaths += disturb(src, producer, pid, n, seed, most);
}

static void one_reader_goes_on_after_any_death(void **state)
{
	struct source src = source_of("one");
	struct reader r[] = { { .batch = 7, .epochs = 6 } };

	(void)state;
	run(&src, r, 1, 1, kills(15));
}

static void two_readers_at_different_paces_go_on(void **state)
{
	struct source src = source_of("two");
	struct reader r[] = {
		{ .batch = 32, .epochs = 5 },
		{ .batch = 5,
		  .epochs = 4,
		  .hold_us = 500,
		  .flags = TSOCK_WRITABLE,
		  .scribble = true },
	};

	(void)state;
	run(&src, r, 2, 2, kills(12));
}

static void three_readers_of_different_views_go_on(void **state)
{
	struct source src = source_of("three");
	struct reader r[] = {
		{ .batch = 10, .epochs = 4 },
		{ .batch = 20, .epochs = 4, .floats = true },
		{ .batch = 16,
		  .epochs = 4,
		  .flags = TSOCK_DROP_LAST,
		  .between = TSOCK_BETWEEN_LEAVE },
	};

	(void)state;
	run(&src, r, 3, 3, kills(12));
}

static void the_ranks_of_a_job_go_on(void **state)
{
	struct source src = source_of("ranks");
	struct reader r[] = {
		{ .batch = 10, .epochs = 4, .rank = 0, .world = 2 },
		{ .batch = 10, .epochs = 4, .rank = 1, .world = 2 },
	};

	(void)state;
	run(&src, r, 2, 4, kills(10));
}

/* One is a reader, or has taken batches even, and the other one isn't yet. */
static void ranks_that_have_not_all_begun_begin_together(void **state)
{
	struct source src = source_of("begin");
	struct reader r[] = {
		{ .batch = 10, .epochs = 1, .rank = 0, .world = 2 },
		{ .batch = 10, .epochs = 1, .rank = 1, .world = 2 },
	};

	(void)state;
	src.pace_us = 0;
	for (unsigned k = 0; k < 6; k++) {
		pid_t producer = start_producer(&src), pid[2];

		for (unsigned i = 0; i < 2; i++) {
			r[i].src = &src;
			pid[i] = start_steady(&r[i]);
		}
		/* Both may have read all before this process looks. */
		while (!stats_of(src.name).consumers && !has_ended(pid[0]))
			;
		kill_and_reap(producer);
		producer = start_producer(&src);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(ended(pid[i]), 0);
		kill_and_reap(producer);
	}
}

static void segments_and_a_stream_that_ends_go_on(void **state)
{
	struct source src = source_of("ends");
	struct reader r[] = {
		{ .batch = 9, .epochs = 3 },
		{ .batch = 13, .epochs = 2, .join = TSOCK_JOIN_SEGMENT },
	};

	(void)state;
	src.segments = 8;
	src.epochs = 3;
	src.min_consumers = 2;
	run(&src, r, 2, 5, kills(8));
}

/* ---- one at a time ---- */

/*
 * The next producer, which begins when this process says so: it is forked
 * before this process has threads, since ThreadSanitizer lets no child of a
 * process that has some start threads of its own.
 */
struct next_producer {
	pid_t pid;
	int go[2];
};

static struct next_producer prepare_next(struct source src)
{
	struct next_producer p;

	assert_int_equal(pipe(p.go), 0);
	src.go = p.go[0];
	p.pid = start_producer(&src);
	return p;
}

static pid_t begin_next(struct next_producer *p)
{
	assert_int_equal(write(p->go[1], "", 1), 1);
	close(p->go[0]);
	close(p->go[1]);
	return p->pid;
}

static tsock *begin_with(const struct source *src, uint32_t rejoin_ms)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = 16;
	o.timeout_ms = 60000;
	o.rejoin_ms = rejoin_ms;
	assert_int_equal(tsock_open(src->name, &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	return t;
}

/* All that is there is given; then what? */
static int read_until_it_fails(tsock *t, uint64_t *next)
{
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, -1, &b)) == 0) {
		assert_int_equal(tsock_batch_seq(b), *next);
		*next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	return err;
}

static void
what_is_published_is_given_and_then_an_error_with_the_time(void **state)
{
	struct source src = source_of("alone");
	pid_t producer = start_producer(&src);
	tsock *t = begin_with(&src, 400);
	uint64_t next = 0;

	(void)state;
	while (stats_of("alone").head < 256)
		pause_us(5000);
	kill_and_reap(producer);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_int_equal(next, 256);
	assert_non_null(strstr(tsock_errmsg(), "within 0.4 s"));
	/* The handle is as good as after tsock_leave(). */
	assert_int_equal(tsock_next(t, 0, &(tsock_batch *){ NULL }),
			 TSOCK_EARG);
	tsock_close(t);
}

static void who_does_not_want_to_wait_is_told_at_once(void **state)
{
	struct source src = source_of("hasty");
	pid_t producer = start_producer(&src);
	tsock *t = begin_with(&src, 0);
	uint64_t next = 0;

	(void)state;
	kill_and_reap(producer);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "died"));
	tsock_close(t);
}

static void another_stream_is_refused_with_the_difference(void **state)
{
	struct source src = source_of("other"), other = source_of("other");
	struct next_producer another;
	pid_t producer;
	uint64_t next = 0;
	tsock *t;

	(void)state;
	other.identity = "kind=test\nseed=2\n";
	another = prepare_next(other);
	producer = start_producer(&src);
	t = begin_with(&src, 60000);
	kill_and_reap(producer);
	producer = begin_next(&another);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "seed was 1 and is 2"));
	tsock_close(t);
	kill_and_reap(producer);
}

/* A call ends at its own time, and the next one waits on. */
static void a_call_waits_no_longer_than_it_may(void **state)
{
	struct source src = source_of("patient");
	struct next_producer another = prepare_next(src);
	pid_t producer = start_producer(&src);
	tsock *t = begin_with(&src, 60000);
	uint64_t next = 0, start, samples;
	tsock_batch *b;
	int err;

	(void)state;
	kill_and_reap(producer);
	while ((err = tsock_next(t, 20, &b)) == 0) {
		next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	assert_int_equal(err, TSOCK_EAGAIN);
	assert_int_equal(tsock_lost(t), 1);
	assert_int_equal(tsock_position(t, &start, &samples), 0);
	assert_int_equal(start + samples, next);
	assert_int_equal(tsock_skip(t, 64), 0);
	producer = begin_next(&another);
	while ((err = tsock_next(t, 0, &b)) == TSOCK_EAGAIN)
		;
	assert_int_equal(err, 0);
	assert_int_equal(tsock_lost(t), 0);
	assert_int_equal(tsock_batch_seq(b), next + 64);
	check_batch(&(struct reader){ .src = &src, .batch = 16 }, b, 0);
	tsock_batch_release(b);
	tsock_close(t);
	kill_and_reap(producer);
}

/* The next producer is asked for the part that the epoch was begun with. */
static void a_rank_is_not_told_while_a_producer_is_awaited(void **state)
{
	const uint8_t job[TSOCK_JOB] = { 1 };
	struct source src = source_of("ranked");
	pid_t producer = start_producer(&src);
	tsock *t = begin_with(&src, 60000);
	tsock_batch *b;
	int err;

	(void)state;
	kill_and_reap(producer);
	while ((err = tsock_next(t, 20, &b)) == 0)
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_EAGAIN);
	assert_int_equal(tsock_set_rank(t, 1, 2, job), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "waits for the next producer"));
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 0, 2, job), 0);
	/* An epoch that isn't begun yet, for the same reason. */
	assert_int_equal(tsock_begin_timed(t, 20), TSOCK_EAGAIN);
	assert_int_equal(tsock_set_rank(t, 0, 1, NULL), TSOCK_EARG);
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 0, 1, NULL), 0);
	tsock_close(t);
}

#define FEW 96 /* samples; a reader may hold the first of them, and read all */

static void make_few(tsock_server *s, const struct source *src)
{
	uint64_t first;

	while (tsock_serve_claim(s, 1, -1, &first) == 1 && first < FEW) {
		write_sample(s, src, first);
		tsock_serve_commit(s, first, 1);
	}
	for (;;)
		pause();
}

/* They hold nobody up: their ring is nobody's any more. */
static void batches_of_the_dead_one_are_kept_as_long_as_wanted(void **state)
{
	struct source src = source_of("kept");
	struct reader me = { .src = &src, .batch = 16 };
	struct next_producer another = prepare_next(src);
	tsock_batch *held[4], *b;
	pid_t producer;
	tsock *t;

	(void)state;
	src.served = make_few;
	producer = start_producer(&src);
	t = begin_with(&src, 60000);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(tsock_next(t, 60000, &held[i]), 0);
	kill_and_reap(producer);
	producer = begin_next(&another);
	for (uint64_t next = 64; next < 1600; next += 16) {
		assert_int_equal(tsock_next(t, 60000, &b), 0);
		assert_int_equal(tsock_batch_seq(b), next);
		check_batch(&me, b, 0);
		tsock_batch_release(b);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(tsock_batch_seq(held[i]), 16 * i);
		check_batch(&me, held[i], 0);
		tsock_batch_release(held[i]);
	}
	tsock_close(t);
	kill_and_reap(producer);
}

static void nothing_is_left_when_nobody_reads(void **state)
{
	struct source src = source_of("tidy");
	struct reader r = { .src = &src, .batch = 16, .epochs = 2 };
	char path[256];
	pid_t producer, pid;

	(void)state;
	src.epochs = 1;
	snprintf(path, sizeof(path), "%s/tidy.readers", getenv("TSOCK_DIR"));
	producer = start_producer(&src);
	pid = start_reader(&r);
	assert_int_equal(ended(pid), 0);
	assert_int_equal(ended(producer), 0);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_reader_goes_on_after_any_death),
		cmocka_unit_test(two_readers_at_different_paces_go_on),
		cmocka_unit_test(three_readers_of_different_views_go_on),
		cmocka_unit_test(the_ranks_of_a_job_go_on),
		cmocka_unit_test(ranks_that_have_not_all_begun_begin_together),
		cmocka_unit_test(segments_and_a_stream_that_ends_go_on),
		cmocka_unit_test(
			what_is_published_is_given_and_then_an_error_with_the_time),
		cmocka_unit_test(who_does_not_want_to_wait_is_told_at_once),
		cmocka_unit_test(another_stream_is_refused_with_the_difference),
		cmocka_unit_test(a_call_waits_no_longer_than_it_may),
		cmocka_unit_test(
			a_rank_is_not_told_while_a_producer_is_awaited),
		cmocka_unit_test(
			batches_of_the_dead_one_are_kept_as_long_as_wanted),
		cmocka_unit_test(nothing_is_left_when_nobody_reads),
	};

	int failed;

	own_folder();
	count_checked();
	failed = cmocka_run_group_tests_name("restart", tests, NULL,
					     end_children);
	print_message("%u producers killed, %llu samples checked\n", deaths,
		      (unsigned long long)samples_checked());
	return failed;
}
