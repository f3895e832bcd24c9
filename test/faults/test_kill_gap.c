/* SPDX-License-Identifier: MIT */
/*
 * test_kill_gap.c - a consumer is killed for which another one waits: how long
 * that one has still to wait for its batch, and what the wait ends by.
 *
 * TSOCK_KILLS is the number of consumers that are killed.
 */
#include <math.h>

#include "test/faults/inject.h"
#include "test/lib/reader.h"

#define LONG_MS 60000
#define BATCH 16
#define RING 64
#define FEW 3   /* kills of a kind, and so many if none was quick: */
#define MANY 60 /* this process, or the producer, may have got no CPU */
#define LIMIT_S 0.05

static struct source src = { .name = "gap",
			     .n = 6400,
			     .ring = RING,
			     .max_batch = BATCH,
			     .payload = 600,
			     .image = 8 };

/* The reader that is killed, and the one that waits; each of the stored samples
 * or of floats. */
static const struct kind {
	const char *what;
	bool victim_floats, waiter_floats, stopped;
	uint32_t flags;
} kinds[] = {
	{ .what = "both read the samples as stored" },
	{ .what = "the victim was stopped, and may write",
	  .stopped = true,
	  .flags = TSOCK_WRITABLE },
	{ .what = "the victim reads floats", .victim_floats = true },
	{ .what = "the one that waits reads floats", .waiter_floats = true },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The victim never releases its first batch. */
static pid_t start_victim(const struct kind *k)
{
	struct reader r = { .src = &src,
			    .batch = BATCH,
			    .epochs = 1,
			    .flags = k->flags,
			    .floats = k->victim_floats,
			    .hold_us = 1000000000 };
	pid_t pid = reader_start(&r);

	stream_wait_readers(src.name, 1);
	if (k->stopped)
		kill(pid, SIGSTOP);
	return pid;
}

static uint64_t tail_of(pid_t pid)
{
	struct tsock_stats st = stream_stats(src.name);

	for (unsigned i = 0; i < st.nrows; i++)
		if (st.row[i].pid == (uint32_t)pid)
			return st.row[i].tail;
	fail_msg("the victim is no reader");
	return 0;
}

/*
 * The victim has its epoch's first samples, so whatever it reads, the base ring
 * keeps them, and the others get no more than that ring has slots.
 */
static void read_all_there_is(tsock *t, uint64_t tail)
{
	uint64_t next = 0;
	tsock_batch *b;

	while (next < tail + RING) {
		assert_int_equal(tsock_next(t, LONG_MS, &b), 0);
		next = tsock_batch_seq(b) + tsock_batch_count(b);
		tsock_batch_release(b);
	}
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EAGAIN);
}

static double gap_after_the_kill(tsock *t, pid_t victim, const char *what)
{
	double t0 = now_s();
	tsock_batch *b;

	kill(victim, SIGKILL);
	if (tsock_next(t, LONG_MS, &b))
		fail_msg("%s: no batch comes", what);
	t0 = now_s() - t0;
	tsock_batch_release(b);
	return t0;
}

/* The producer is in a wait that no time ends. */
static void stop_timers(void)
{
	inject_stop_timers();
	while (!inject_untimed_polls())
		proc_pause_us(1000);
}

static double seconds_after_the_kill(const struct kind *k, bool untimed)
{
	struct reader me = { .src = &src,
			     .batch = BATCH,
			     .floats = k->waiter_floats };
	pid_t victim = start_victim(k);
	tsock *t = reader_connect(&me);
	double took;

	assert_int_equal(tsock_begin_timed(t, LONG_MS), 0);
	read_all_there_is(t, tail_of(victim));
	if (untimed)
		stop_timers();
	took = gap_after_the_kill(t, victim, k->what);
	inject_start_timers();
	tsock_close(t);
	assert_int_equal(proc_ended(victim), 1000 + SIGKILL);
	return took;
}

static int shorter_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void others_have_their_next_batch_soon_after_a_kill(void **state)
{
	const char *kills = getenv("TSOCK_KILLS");
	unsigned each = kills ? ((unsigned)atoi(kills) + 3) / 4 : FEW, n = 0;
	double *gap = calloc(KINDS * (each + MANY), sizeof(*gap));
	pid_t producer = stream_start_producer(&src);

	(void)state;
	assert_non_null(gap);
	for (unsigned i = 0; i < KINDS; i++) {
		double least = INFINITY;

		for (unsigned k = 0; k < each || (least > LIMIT_S && k < MANY);
		     k++) {
			gap[n] = seconds_after_the_kill(&kinds[i], false);
			least = fmin(least, gap[n++]);
		}
		if (least > LIMIT_S)
			fail_msg("%s: the other one waits %.0f ms at least",
				 kinds[i].what, least * 1e3);
	}
	proc_kill_and_reap(producer);
	qsort(gap, n, sizeof(*gap), shorter_first);
	print_message("%u kills; until the next batch: median %.1f ms, "
		      "longest %.1f ms\n",
		      n, gap[n / 2] * 1e3, gap[n - 1] * 1e3);
	free(gap);
}

/* The death is an event, and so is all that follows from it. */
static void no_time_has_to_pass_after_a_kill(void **state)
{
	pid_t producer = stream_start_producer(&src);

	(void)state;
	for (unsigned i = 0; i < KINDS; i++)
		seconds_after_the_kill(&kinds[i], true);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			others_have_their_next_batch_soon_after_a_kill,
			proc_end_children),
		cmocka_unit_test_teardown(no_time_has_to_pass_after_a_kill,
					  proc_end_children),
	};

	proc_own_folder();
	if (!inject_share_timers())
		return 1;
	return cmocka_run_group_tests_name("kill_gap", tests, NULL, NULL);
}
