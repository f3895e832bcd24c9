/* SPDX-License-Identifier: MIT */
/*
 * test_faults.c - deaths, stops and slowness: nobody else hangs or sees a
 * wrong byte, and nothing is left behind.
 */
#include "test/lib/reader.h"

#include <poll.h>

#include "test/lib/usage.h"
#include "test/lib/warnings.h"

#define LONG_MS 60000

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* One of some tries takes less: the others may have got no CPU. */
static void within(double seconds, double (*try)(void))
{
	double least = try();

	for (unsigned i = 0; least >= seconds && i < 20; i++) {
		double took = try();

		least = took < least ? took : least;
	}
	if (least >= seconds)
		fail_msg("it takes %.1f s, not %.1f s", least, seconds);
}

static unsigned kills(void)
{
	const char *n = getenv("TSOCK_KILLS");

	return n ? (unsigned)atoi(n) : 200;
}

/* So many samples at least are checked; fewer where that takes long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SAMPLES 1
#else
#define SAMPLES 1000000
#endif

static unsigned killed;

static bool go_on_killing(void)
{
	return killed < kills() ||
	       (!getenv("TSOCK_KILLS") && reader_samples_checked() < SAMPLES);
}

/* Victims with every kind of habit, killed at random moments. */
static void kills_at_random_moments_harm_nobody(void **state)
{
	struct source src = { .name = "kills",
			      .n = 3000,
			      .ring = 512,
			      .max_batch = 64,
			      .payload = 600,
			      .image = 8 };
	struct reader good[2] = {
		{ .src = &src, .batch = 64, .epochs = 1000000 },
		{ .src = &src,
		  .batch = 7,
		  .epochs = 1000000,
		  .flags = TSOCK_WRITABLE }
	};
	pid_t producer = stream_start_producer(&src), survivor[2], victim[4];
	unsigned seed = 11, fds, maps;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		survivor[i] = reader_start(&good[i]);
	stream_wait_readers("kills", 2);
	fds = usage_descriptors(producer);
	maps = usage_mappings(producer);
	for (; go_on_killing(); killed += 4) {
		struct tsock_stats st = stream_stats("kills");

		for (unsigned i = 0; i < 4; i++) {
			struct reader r = {
				.src = &src,
				.batch = 1 + (uint32_t)rand_r(&seed) % 64,
				.epochs = 1000000,
				.join = i % 2 ? TSOCK_JOIN_NOW
					      : TSOCK_JOIN_EPOCH,
				.flags = i & 2 ? TSOCK_WRITABLE : 0,
				.scribble = (i & 2) != 0,
			};

			victim[i] = reader_start(&r);
		}
		for (unsigned i = 0; i < 4; i++) {
			proc_pause_us((unsigned)rand_r(&seed) % 12000);
			proc_kill_and_reap(victim[i]);
		}
		/* The others go on. */
		for (unsigned i = 0; stream_stats("kills").head <= st.head;
		     i++) {
			assert_true(i < 12000);
			proc_pause_us(5000);
		}
	}
	stream_wait_readers("kills", 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(waitpid(survivor[i], NULL, WNOHANG), 0);
	for (unsigned i = 0; usage_descriptors(producer) > fds; i++) {
		assert_true(i < 12000);
		proc_pause_us(5000);
	}
	/* Thread arenas may come and go; tail pages may not pile up. */
	assert_true(usage_mappings(producer) <= maps + 20);
	for (unsigned i = 0; i < 2; i++)
		proc_kill_and_reap(survivor[i]);
	proc_kill_and_reap(producer);
}

static void a_stopped_reader_is_slow_and_not_dead(void **state)
{
	struct source src = { .name = "stopped",
			      .n = 2000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 64,
			      .min_consumers = 2 };
	struct reader r[2] = { { .src = &src, .batch = 16, .epochs = 3 },
			       { .src = &src, .batch = 9, .epochs = 3 } };
	pid_t producer = stream_start_producer(&src), pid[2];

	(void)state;
	/* This reader, stopped while it waits for the other, holds it up. */
	pid[1] = reader_start(&r[1]);
	stream_wait_readers("stopped", 1);
	kill(pid[1], SIGSTOP);
	pid[0] = reader_start(&r[0]);
	stream_wait_readers("stopped", 2);
	proc_pause_us(5000000);
	assert_int_equal(stream_stats("stopped").consumers, 2);
	kill(pid[1], SIGCONT);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

/* The producer's log says which one was killed, for whom, and why. */
static void is_warned_of(FILE *f, pid_t slow, pid_t waiter)
{
	struct pollfd p = { .fd = fileno(f), .events = POLLIN };
	char line[512] = "", want[256];

	snprintf(want, sizeof(want),
		 "consumer %d (test_faults) is killed: it has held up "
		 "consumer %d (test_faults) for ",
		 (int)slow, (int)waiter);
	while (!strstr(line, want)) {
		if (poll(&p, 1, LONG_MS) != 1 || !fgets(line, sizeof(line), f))
			fail_msg("no warning says: %s", want);
	}
	/* At least what was asked for, 0.5 s. */
	assert_true(strtod(strstr(line, want) + strlen(want), NULL) >= 0.5);
	fclose(f);
}

static void the_slow_are_killed_when_that_is_asked_for(void **state)
{
	struct source src = { .name = "slow",
			      .n = 4000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 64,
			      .slow_ms = 500,
			      .served = warnings_pass };
	struct reader quick = { .src = &src, .batch = 16, .epochs = 2 };
	struct reader stuck = {
		.src = &src, .batch = 16, .epochs = 2, .hold_us = 100000000
	};
	pid_t producer, bad, good;
	FILE *log;
	int status;

	(void)state;
	warnings_begin();
	producer = stream_start_producer(&src);
	log = warnings_file();
	bad = reader_start(&stuck);
	stream_wait_readers("slow", 1);
	good = reader_start(&quick);
	status = proc_ended(bad);
	if (status != 1000 + SIGKILL)
		print_message("a kernel without SO_PEERPIDFD doesn't kill\n");
	assert_int_equal(status, 1000 + SIGKILL);
	assert_int_equal(proc_ended(good), 0);
	is_warned_of(log, bad, good);
	proc_kill_and_reap(producer);
}

static double seconds_until_a_death_is_told(void)
{
	struct source src = { .name = "dies",
			      .n = 100000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 5000 };
	struct reader me = { .src = &src,
			     .batch = 16,
			     .flags = TSOCK_WRITABLE };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&me);
	tsock_batch *held, *b;
	double t0, took;
	int err;

	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, LONG_MS, &held), 0);
	proc_kill_and_reap(producer);
	t0 = now_s();
	while ((err = tsock_next(t, -1, &b)) == 0)
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_ELOST);
	took = now_s() - t0;
	assert_non_null(strstr(tsock_errmsg(), "dies"));
	/* What is in hand stays whole. */
	reader_check_batch(&me, held, 0);
	tsock_batch_release(held);
	t0 = now_s();
	assert_int_equal(tsock_begin_timed(t, LONG_MS), TSOCK_ELOST);
	took += now_s() - t0;
	tsock_close(t);
	return took;
}

static void a_dead_producer_is_a_named_error_within_two_seconds(void **state)
{
	(void)state;
	within(2.0, seconds_until_a_death_is_told);
}

static void a_new_producer_takes_a_dead_ones_name(void **state)
{
	struct source src = { .name = "successor",
			      .n = 100,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16 };
	struct reader r = { .src = &src, .batch = 16, .epochs = 2 };

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		pid_t producer = stream_start_producer(&src);
		pid_t pid = reader_start(&r);

		assert_int_equal(proc_ended(pid), 0);
		proc_kill_and_reap(producer);
	}
}

static void a_failed_stream_tells_every_reader_why(void **state)
{
	struct source src = { .name = "fails",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16 };
	struct reader me = { .src = &src, .batch = 16 };
	pid_t producer = proc_spawn();
	tsock_batch *b;
	tsock *t;
	int err;

	(void)state;
	if (producer == 0) {
		tsock_server *s = stream_serve(&src);
		uint64_t first;

		while (tsock_serve_claim(s, 1, -1, &first) == 1 &&
		       first < 100) {
			stream_write_sample(s, &src, first);
			tsock_serve_commit(s, first, 1);
		}
		tsock_serve_fail(s, "cat.JPEG: input/output error");
		for (;;)
			pause();
	}
	t = reader_connect(&me);
	assert_int_equal(tsock_begin(t), 0);
	while ((err = tsock_next(t, LONG_MS, &b)) == 0)
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "cat.JPEG"));
	tsock_close(t);
	t = reader_connect(&me);
	assert_int_equal(tsock_begin(t), TSOCK_ESTREAM);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void wrong_names_and_sizes_are_named(void **state)
{
	struct source src = { .name = "named",
			      .n = 100,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16 };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	pid_t producer = stream_start_producer(&src);
	tsock *t = NULL;

	(void)state;
	o.timeout_ms = LONG_MS;
	o.batch_size = 17;
	assert_int_not_equal(tsock_open("named", &o, &t), 0);
	assert_non_null(strstr(tsock_errmsg(), "17"));
	assert_non_null(strstr(tsock_errmsg(), "16"));
	o.batch_size = 0;
	assert_int_equal(tsock_open("named", &o, &t), TSOCK_EARG);
	o.batch_size = 4;
	o.timeout_ms = 300;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "nobody"));
	assert_int_equal(tsock_open("../x y", &o, &t), TSOCK_EARG);
	assert_null(t);
	proc_kill_and_reap(producer);
}

static void a_forked_child_that_exits_with_batches_harms_nobody(void **state)
{
	struct source src = { .name = "forks",
			      .n = 1000,
			      .ring = 128,
			      .max_batch = 16,
			      .payload = 5000 };
	struct reader me = { .src = &src,
			     .batch = 16,
			     .flags = TSOCK_WRITABLE };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&me);
	tsock_batch *held, *b;
	struct tsock_stats st;

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, LONG_MS, &held), 0);
	for (unsigned i = 0; i < 20; i++) {
		pid_t pid = proc_spawn();

		if (pid == 0) {
			reader_check_batch(&me, held, 0); /* still readable */
			if (tsock_next(t, 0, &b) != TSOCK_EFORK)
				die("the child may read");
			if (tsock_begin(t) != TSOCK_EFORK)
				die("the child may begin");
			tsock_batch_release(held);
			tsock_close(t);
			exit(0); /* with destructors */
		}
		assert_int_equal(proc_ended(pid), 0);
		reader_check_batch(&me, held, 0);
	}
	st = stream_stats("forks");
	assert_int_equal(st.consumers, 1);
	assert_int_equal(st.row[0].tail, 0);
	tsock_batch_release(held);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(tsock_next(t, LONG_MS, &b), 0);
		reader_check_batch(&me, b, 0);
		tsock_batch_release(b);
	}
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void nothing_is_left_in_the_folder_after_an_orderly_end(void **state)
{
	struct source src = { .name = "tidy",
			      .n = 100,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .epochs = 1 };
	struct reader r = { .src = &src, .batch = 16, .epochs = 2 };
	char path[256];
	pid_t producer = stream_start_producer(&src), pid = reader_start(&r);

	(void)state;
	assert_int_equal(proc_ended(pid), 0);
	assert_int_equal(proc_ended(producer), 0);
	snprintf(path, sizeof(path), "%s/tidy.door", getenv("TSOCK_DIR"));
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/tidy.bus", getenv("TSOCK_DIR"));
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kills_at_random_moments_harm_nobody),
		cmocka_unit_test(a_stopped_reader_is_slow_and_not_dead),
		cmocka_unit_test(the_slow_are_killed_when_that_is_asked_for),
		cmocka_unit_test(
			a_dead_producer_is_a_named_error_within_two_seconds),
		cmocka_unit_test(a_new_producer_takes_a_dead_ones_name),
		cmocka_unit_test(a_failed_stream_tells_every_reader_why),
		cmocka_unit_test(wrong_names_and_sizes_are_named),
		cmocka_unit_test(
			a_forked_child_that_exits_with_batches_harms_nobody),
		cmocka_unit_test(
			nothing_is_left_in_the_folder_after_an_orderly_end),
	};

	int failed;

	proc_own_folder();
	reader_count_checked();
	failed = cmocka_run_group_tests_name("faults", tests, NULL, NULL);
	print_message("%u consumers killed, %llu samples checked\n", killed,
		      (unsigned long long)reader_samples_checked());
	return failed;
}
