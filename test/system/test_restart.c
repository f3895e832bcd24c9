/* SPDX-License-Identifier: MIT */
/*
 * test_restart.c - producers that die at any moment and are started again:
 * readers of all kinds go on at the exact next sample, and none is lost, comes
 * twice or has other bytes.
 */
#include "test/lib/next_producer.h"
#include "test/lib/steady_reader.h"

static unsigned kills(unsigned otherwise)
{
	const char *n = getenv("TSOCK_KILLS");

	return n ? (unsigned)atoi(n) : otherwise;
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
		proc_pause_us((unsigned)rand_r(&seed) % 120000);
		if (killed < most) {
			proc_kill_and_reap(producer);
			killed++;
			if (rand_r(&seed) % 2)
				proc_pause_us((unsigned)rand_r(&seed) % 50000);
			producer = stream_start_producer(src);
		}
		for (unsigned i = 0; i < n; i++) {
			if (over[i] || !proc_has_ended(pid[i]))
				continue;
			assert_int_equal(proc_ended(pid[i]), 0);
			over[i] = true;
			left--;
		}
	}
	proc_kill_and_reap(producer);
	return killed;
}

/*
 * Until all have begun.  Or until the first one is through: it may have read
 * all before this process looks, and a stream that ends may have ended then.
 */
static void await_readers(const char *name, unsigned n, pid_t first)
{
	struct tsock_stats st = { .size = sizeof(st) };

	while (!proc_has_ended(first)) {
		if (!tsock_query(name, 1000, &st) && st.consumers >= n)
			return;
		proc_pause_us(1000);
	}
}

static unsigned deaths; /* of producers, in all cases */

static void read_through_deaths(const struct source *src, struct reader *r,
				unsigned n, unsigned seed, unsigned most)
{
	pid_t producer = stream_start_producer(src), pid[8];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = steady_reader_start(&r[i]);
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
	struct source src = next_producer_restart("one");
	struct reader r[] = { { .batch = 7, .epochs = 6 } };

	(void)state;
	read_through_deaths(&src, r, 1, 1, kills(15));
}

static void two_readers_at_different_paces_go_on(void **state)
{
	struct source src = next_producer_restart("two");
	struct reader r[] = {
		{ .batch = 32, .epochs = 5 },
		{ .batch = 5,
		  .epochs = 4,
		  .hold_us = 500,
		  .flags = TSOCK_WRITABLE,
		  .scribble = true },
	};

	(void)state;
	read_through_deaths(&src, r, 2, 2, kills(12));
}

static void three_readers_of_different_views_go_on(void **state)
{
	struct source src = next_producer_restart("three");
	struct reader r[] = {
		{ .batch = 10, .epochs = 4 },
		{ .batch = 20, .epochs = 4, .floats = true },
		{ .batch = 16,
		  .epochs = 4,
		  .flags = TSOCK_DROP_LAST,
		  .between = TSOCK_BETWEEN_LEAVE },
	};

	(void)state;
	read_through_deaths(&src, r, 3, 3, kills(12));
}

static void the_ranks_of_a_job_go_on(void **state)
{
	struct source src = next_producer_restart("ranks");
	struct reader r[] = {
		{ .batch = 10, .epochs = 4, .rank = 0, .world = 2 },
		{ .batch = 10, .epochs = 4, .rank = 1, .world = 2 },
	};

	(void)state;
	read_through_deaths(&src, r, 2, 4, kills(10));
}

/* One is a reader, or has taken batches even, and the other one isn't yet. */
static void ranks_that_have_not_all_begun_begin_together(void **state)
{
	struct source src = next_producer_restart("begin");
	struct reader r[] = {
		{ .batch = 10, .epochs = 1, .rank = 0, .world = 2 },
		{ .batch = 10, .epochs = 1, .rank = 1, .world = 2 },
	};

	(void)state;
	src.pace_us = 0;
	for (unsigned k = 0; k < 6; k++) {
		pid_t producer = stream_start_producer(&src), pid[2];

		for (unsigned i = 0; i < 2; i++) {
			r[i].src = &src;
			pid[i] = steady_reader_start(&r[i]);
		}
		/* Both may have read all before this process looks. */
		while (!stream_stats(src.name).consumers &&
		       !proc_has_ended(pid[0]))
			;
		proc_kill_and_reap(producer);
		producer = stream_start_producer(&src);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(proc_ended(pid[i]), 0);
		proc_kill_and_reap(producer);
	}
}

static void segments_and_a_stream_that_ends_go_on(void **state)
{
	struct source src = next_producer_restart("ends");
	struct reader r[] = {
		{ .batch = 9, .epochs = 3 },
		{ .batch = 13, .epochs = 2, .join = TSOCK_JOIN_SEGMENT },
	};

	(void)state;
	src.segments = 8;
	src.epochs = 3;
	src.min_consumers = 2;
	read_through_deaths(&src, r, 2, 5, kills(8));
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
	};

	int failed;

	proc_own_folder();
	reader_count_checked();
	failed = cmocka_run_group_tests_name("restart", tests, NULL,
					     proc_end_children);
	print_message("%u producers killed, %llu samples checked\n", deaths,
		      (unsigned long long)reader_samples_checked());
	return failed;
}
