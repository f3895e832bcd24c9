/* SPDX-License-Identifier: MIT */
/*
 * test_detach.c - TSOCK_SLOW_DETACH: the others go on without a reader that
 * they wait for; what it has in hand stays whole, and it is told what it
 * missed.
 */
#include "test/lib/detached_reader.h"
#include "test/lib/warnings.h"

#include <poll.h>

/* Read so many batches, each kept so long; then it has missed samples, or not.
 */
static void follow(const struct reader *r, unsigned batches, bool misses)
{
	tsock *t = reader_connect(r);
	struct trail w = { 0 };

	need(tsock_begin(t) == 0);
	for (unsigned i = 0; i < batches; i++) {
		tsock_batch *b = detached_trail_take(r, t, &w);

		if (r->hold_us)
			proc_pause_us(r->hold_us);
		reader_check_batch(r, b, 0);
		tsock_batch_release(b);
	}
	need(misses == (w.missed > 0));
	tsock_close(t);
}

static pid_t start_following(const struct reader *r, unsigned batches,
			     bool misses)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		follow(r, batches, misses);
		_exit(0);
	}
	return pid;
}

/* ---- the others ---- */

#define AT_LAST_S 10 /* the limit, and what a busy machine may add */

/* They read as stored, or, like the stuck one, as floats. */
static void the_others_go_on(struct source *src, struct reader *stuck,
			     unsigned held, bool floats)
{
	struct reader me = { .src = src, .batch = 16, .floats = floats };
	struct trail w = { 0 };
	pid_t producer = stream_start_producer(src), pid;
	double longest;
	tsock *t;

	pid = detached_start_stopping(stuck, held, true);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	longest = detached_read_ahead(t, &me, &w, 64 * 20);
	assert_int_equal(w.missed, 0);
	/* They wait for as long as was asked for, and then no longer. */
	assert_true(longest > DETACH_MS / 1e3 * 0.9);
	assert_true(longest < AT_LAST_S);
	assert_int_equal(stream_stats(src->name).detached, 1);
	assert_int_equal(stream_stats(src->name).consumers, 1);
	kill(pid, SIGCONT);
	/* The reader reads with the others again. */
	detached_read_until_ended(t, &me, &w, pid);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void the_others_go_on_without_a_stopped_reader(void **state)
{
	struct source src = detached_source("stop");
	struct reader r = { .src = &src, .batch = 16 };

	(void)state;
	the_others_go_on(&src, &r, 1, false);
	/* One that holds all that it may. */
	r.batch = 7;
	the_others_go_on(&src, &r, 4, false);
	r.flags = TSOCK_WRITABLE;
	the_others_go_on(&src, &r, 4, false);
}

/* The floats that it has in hand are what they were when it goes on, whoever
 * made that view go on. */
static void so_they_do_without_the_reader_of_a_view(void **state)
{
	struct source src = detached_source("view");
	struct reader r = { .src = &src, .batch = 16, .floats = true };

	(void)state;
	the_others_go_on(&src, &r, 1, false);
	r.batch = 7;
	the_others_go_on(&src, &r, 4, false);
	the_others_go_on(&src, &r, 4, true);
	r.flags = TSOCK_WRITABLE;
	the_others_go_on(&src, &r, 4, true);
}

static void who_dawdles_is_detached_again_and_again(void **state)
{
	struct source src = detached_source("dawdles");
	struct reader me = { .src = &src, .batch = 16 };
	struct reader slow = { .src = &src,
			       .batch = 9,
			       .hold_us = 4 * DETACH_MS * 1000 };
	pid_t producer = stream_start_producer(&src), pid;
	struct trail w = { 0 };
	tsock *t;

	(void)state;
	pid = start_following(&slow, UINT32_MAX, true);
	stream_wait_readers("dawdles", 1);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	while (stream_stats("dawdles").detached < 3)
		detached_read_ahead(t, &me, &w, 64);
	proc_kill_and_reap(pid);
	/* What it had is free. */
	detached_read_ahead(t, &me, &w, 64 * 5);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* The second one is stopped before the first one is detached, and lies further
 * on: both have the same half of the ring. */
static void two_are_detached_one_after_the_other(void **state)
{
	struct source src = detached_source("two");
	struct reader a = { .src = &src, .batch = 8 };
	struct reader b = { .src = &src, .batch = 16 };
	struct reader me = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src), pid[2];
	struct trail w = { 0 };
	tsock *t;

	(void)state;
	pid[0] = detached_start_stopping(&a, 1, true);
	pid[1] = detached_start_stopping(&b, 2, true);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	detached_read_ahead(t, &me, &w, 64 * 10);
	assert_int_equal(w.missed, 0);
	assert_int_equal(stream_stats("two").detached, 2);
	for (unsigned i = 0; i < 2; i++)
		kill(pid[i], SIGCONT);
	for (unsigned i = 0; i < 2; i++)
		detached_read_until_ended(t, &me, &w, pid[i]);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* A child that stops itself with a batch in its hands, and keeps that while it
 * reads as much as the ring holds, many times over. */
static pid_t start_keeping(const struct reader *r)
{
	pid_t pid = proc_spawn();
	struct trail w = { 0 };
	tsock_batch *held;
	tsock *t;

	if (pid)
		return detached_await_stop(pid);
	t = reader_connect(r);
	need(tsock_begin(t) == 0);
	held = detached_trail_take(r, t, &w);
	raise(SIGSTOP);
	for (unsigned i = 0; i < 50; i++)
		tsock_batch_release(detached_trail_take(r, t, &w));
	need(w.missed > 0);
	reader_check_batch(r, held, 0);
	tsock_batch_release(held);
	tsock_batch_release(detached_trail_take(r, t, &w));
	tsock_close(t);
	_exit(0);
}

/* That is in a half of the ring that it has to itself. */
static void who_was_detached_may_keep_what_it_has(void **state)
{
	struct source src = detached_source("keeps");
	struct reader r = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src), pid;
	struct trail w = { 0 };
	tsock *t;

	(void)state;
	pid = start_keeping(&r);
	t = reader_connect(&r);
	need(tsock_begin(t) == 0);
	detached_read_ahead(t, &r, &w, 64 * 4);
	assert_int_equal(stream_stats("keeps").detached, 1);
	kill(pid, SIGCONT);
	detached_read_until_ended(t, &r, &w, pid);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* The half that it had is free: another reader can be detached. */
static void who_dies_detached_has_let_go(void **state)
{
	struct source src = detached_source("dies");
	struct reader a = { .src = &src, .batch = 8 };
	struct reader b = { .src = &src, .batch = 16 };
	struct reader me = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src), dead, pid;
	struct trail w = { 0 };
	tsock *t;

	(void)state;
	dead = detached_start_stopping(&a, 1, true);
	pid = start_following(&b, UINT32_MAX, false);
	stream_wait_readers("dies", 2);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	detached_read_ahead(t, &me, &w, 64 * 4);
	proc_kill_and_reap(dead);
	kill(pid, SIGSTOP);
	detached_read_ahead(t, &me, &w, 64 * 4);
	assert_true(stream_stats("dies").detached >= 2);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* ---- where it can't be done ---- */

/* Has such a warning come by now?  Each is written at once. */
static bool is_warned_of(FILE *f, const char *want)
{
	struct pollfd p = { .fd = fileno(f), .events = POLLIN };
	char line[512] = "";

	while (!strstr(line, want))
		if (poll(&p, 1, 0) != 1 || !fgets(line, sizeof(line), f))
			return false;
	return true;
}

static void without_memory_all_wait_and_the_log_says_why(void **state)
{
	struct source src = detached_source("poor");
	struct reader r = { .src = &src, .batch = 16 };
	struct reader me = { .src = &src, .batch = 16 };
	struct trail w = { 0 };
	pid_t producer, pid;
	tsock_batch *b;
	FILE *log;
	tsock *t;
	int err;

	(void)state;
	/* For one ring, and half of another. */
	src.memory = (uint64_t)64 * (3000 + 8 + 8 + 192) * 3 / 2 + 16384;
	src.served = warnings_pass;
	warnings_begin();
	producer = stream_start_producer(&src);
	log = warnings_file();
	pid = detached_start_stopping(&r, 1, false);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	while (!is_warned_of(log,
			     "and is waited for: it can't be detached, since "
			     "its ring needs")) {
		err = tsock_next(t, DETACH_MS, &b);
		if (err) {
			assert_int_equal(err, TSOCK_EAGAIN);
			continue;
		}
		detached_trail_step(&w, t, b);
		tsock_batch_release(b);
	}
	assert_int_equal(stream_stats("poor").detached, 0);
	/* Still, some time later; what is ready now is less than a ring. */
	for (unsigned i = 0; i < 3 + 64 / 16; i++) {
		err = tsock_next(t, DETACH_MS, &b);
		if (err)
			continue;
		detached_trail_step(&w, t, b);
		tsock_batch_release(b);
	}
	assert_true(w.next <= 64);
	assert_int_equal(stream_stats("poor").detached, 0);
	kill(pid, SIGCONT);
	detached_read_until_ended(t, &me, &w, pid);
	tsock_close(t);
	fclose(log);
	proc_kill_and_reap(producer);
}

static void ranks_and_rings_on_gpus_are_refused(void **state)
{
	struct source src = detached_source("ranks");
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_serve_opts s = TSOCK_SERVE_OPTS_INIT;
	struct tsock_field f = { .name = "x", .dtype = TSOCK_U8 };
	pid_t producer = stream_start_producer(&src);
	tsock_server *server;
	tsock *t;

	(void)state;
	stream_stats("ranks");
	o.batch_size = 8;
	o.world = 2;
	assert_int_equal(tsock_open("ranks", &o, &t), 0);
	assert_int_equal(tsock_begin(t), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "ranks go on together"));
	tsock_close(t);
	proc_kill_and_reap(producer);
	s.fields = &f;
	s.nfields = 1;
	s.epoch_len = 100;
	s.slow = TSOCK_SLOW_DETACH;
	s.slow_ms = 1000;
	s.gpu_transport = TSOCK_TRANSPORT_VMM;
	assert_int_equal(tsock_serve_open("gpu", &s, &server), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "host memory alone"));
}

/* ---- anything ---- */

/* Readers that are stopped and go on at any moment, with all habits. */
static void
whoever_is_stopped_sees_whole_samples_and_knows_what_it_missed(void **state)
{
	struct source src = detached_source("any");
	struct reader me = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src), pid[4];
	struct trail w = { 0 };
	unsigned seed = 7;
	tsock *t;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct reader r = { .src = &src,
				    .batch = 1 + (uint32_t)i * 5,
				    .join = i == 3 ? TSOCK_JOIN_NOW
						   : TSOCK_JOIN_EPOCH,
				    .flags = i % 2 ? TSOCK_WRITABLE : 0,
				    .hold_us = 100 };

		pid[i] = start_following(&r, UINT32_MAX, false);
	}
	stream_wait_readers("any", 4);
	t = reader_connect(&me);
	need(tsock_begin(t) == 0);
	for (unsigned round = 0; round < 8; round++) {
		unsigned which = (unsigned)rand_r(&seed) % 15 + 1;
		uint32_t before = stream_stats("any").detached;

		for (unsigned i = 0; i < 4; i++)
			if (which >> i & 1)
				kill(pid[i], SIGSTOP);
		/* Two that stand in different halves are waited for. */
		for (unsigned i = 0;
		     i < 15 && stream_stats("any").detached == before; i++) {
			tsock_batch *b;
			int err = tsock_next(t, DETACH_MS, &b);

			if (err == TSOCK_EEPOCH)
				need(tsock_begin(t) == 0);
			if (err)
				continue;
			detached_trail_step(&w, t, b);
			reader_check_batch(&me, b, 0);
			tsock_batch_release(b);
		}
		for (unsigned i = 0; i < 4; i++)
			kill(pid[i], SIGCONT);
		detached_read_ahead(t, &me, &w, 64 * 3);
	}
	assert_true(stream_stats("any").detached > 2);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pid[i], NULL, WNOHANG), 0);
		proc_kill_and_reap(pid[i]);
	}
	detached_read_ahead(t, &me, &w, 64 * 3);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

#define TEST(f) cmocka_unit_test_teardown(f, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_others_go_on_without_a_stopped_reader),
		TEST(so_they_do_without_the_reader_of_a_view),
		TEST(who_dawdles_is_detached_again_and_again),
		TEST(two_are_detached_one_after_the_other),
		TEST(who_was_detached_may_keep_what_it_has),
		TEST(who_dies_detached_has_let_go),
		TEST(without_memory_all_wait_and_the_log_says_why),
		TEST(ranks_and_rings_on_gpus_are_refused),
		TEST(whoever_is_stopped_sees_whole_samples_and_knows_what_it_missed),
	};

	proc_own_folder();
	tsock_set_logger(proc_log_line, NULL);
	return cmocka_run_group_tests_name("detach", tests, NULL, NULL);
}
