/* SPDX-License-Identifier: MIT */
/*
 * test_epochs.c - no epoch is lost between two of a reader's own, the stream
 * ends when nobody can get one any more, and slow is only who is waited for.
 */
#include "test/lib/reader.h"

#include <pthread.h>

#include "serve/server.h"

#define SIDE 4 /* of an image */

static const struct source stated = { .name = "stated",
				      .n = 1000,
				      .ring = 128,
				      .max_batch = 16,
				      .payload = 16,
				      .image = SIDE,
				      .view_threads = true };

/* A consumer of float32 images, which are a view of the stream. */
static tsock *connect_floats(const struct source *src, uint32_t batch,
			     uint32_t between)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = batch;
	o.between = between;
	o.dtype = TSOCK_F32;
	o.layout = TSOCK_CHW;
	o.normalize = TSOCK_UNIT;
	o.timeout_ms = 60000;
	if (tsock_open(src->name, &o, &t))
		die("open: %s", tsock_errmsg());
	return t;
}

static void take_and_release(tsock *t, unsigned batches)
{
	tsock_batch *b;

	while (batches--) {
		assert_int_equal(tsock_next(t, 60000, &b), 0);
		tsock_batch_release(b);
	}
}

/* The exit code of a process, which ends within a minute. */
static int ends(pid_t pid)
{
	for (unsigned i = 0; i < 6000; i++) {
		if (proc_has_ended(pid))
			return proc_ended(pid);
		proc_pause_us(10000);
	}
	fail_msg("the producer stays for ever");
	return -1;
}

static void wait_head(const char *name, uint64_t head)
{
	for (unsigned i = 0; i < 6000; i++) {
		if (stream_stats(name).head >= head)
			return;
		proc_pause_us(10000);
	}
	fail_msg("the head never came to %llu", (unsigned long long)head);
}

/* Validation: slower than what decodes, alone, and gone between two epochs. */
static void a_lone_reader_of_a_view_that_leaves_gets_every_epoch(void **state)
{
	struct source src = { .name = "leaves",
			      .n = 1000,
			      .ring = 128,
			      .max_batch = 16,
			      .payload = 16,
			      .image = SIDE,
			      .view_threads = true,
			      .sequential = true,
			      .epochs = 6 };
	pid_t producer = stream_start_producer(&src);
	struct reader r = { .src = &src, .batch = 16 };
	tsock *t = connect_floats(&src, 16, TSOCK_BETWEEN_AUTO);
	uint64_t capacity = stream_stats("leaves").capacity, produced = 0;

	(void)state;
	for (unsigned e = 0; e < 6; e++) {
		struct tally y;
		tsock_batch *b;
		int err;

		assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(tsock_epoch(t), e);
		reader_tally_begin(&y, &src, 16, 0);
		while ((err = tsock_next(t, 60000, &b)) == 0) {
			reader_tally_add(&y, b);
			reader_check_batch(&r, b, 0);
			/* The last batch is looked at until the producer has
			 * made all that it may. */
			if (y.got == src.n && e < 5)
				wait_head("leaves", (e + 1) * src.n + capacity);
			/* After the last one is released the producer ends. */
			if (y.got == src.n)
				produced = stream_stats("leaves").produced;
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_EEPOCH);
		reader_tally_end(&y, true);
	}
	assert_int_equal(produced, 6 * 1000);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	assert_int_equal(ends(producer), 0);
}

static void who_joins_near_an_epochs_end_gets_the_next(void **state)
{
	struct source src = { .name = "near",
			      .n = 1000,
			      .ring = 256,
			      .max_batch = 16,
			      .payload = 16,
			      .image = SIDE,
			      .view_threads = true };
	struct reader plain = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src);
	tsock *view = connect_floats(&src, 16, TSOCK_BETWEEN_HOLD);
	tsock *t = reader_connect(&plain);

	(void)state;
	assert_int_equal(tsock_begin(view), 0);
	take_and_release(view, 60);
	wait_head("near", 1000 + stream_stats("near").capacity);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_epoch(t), 1);
	tsock_close(view);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void *work(void *server)
{
	stream_produce(server, &stated);
	return NULL;
}

/* So that the tail which passes it wakes the base ring's writer. */
static void the_start_that_is_kept_is_stated_in_the_views_ring(void **state)
{
	tsock_server *s = stream_serve(&stated);
	uint64_t want = 0, capacity;
	pthread_t worker;
	tsock *t;

	(void)state;
	assert_int_equal(pthread_create(&worker, NULL, work, s), 0);
	t = connect_floats(&stated, 16, TSOCK_BETWEEN_HOLD);
	assert_int_equal(tsock_begin(t), 0);
	take_and_release(t, 60);
	capacity = stream_stats(stated.name).capacity;
	wait_head(stated.name, 1000 + capacity);
	for (unsigned i = 0; i < 6000 && want != 1000; i++) {
		proc_pause_us(10000);
		tsi_sync_lock(&s->sync);
		want = atomic_load(
			&tsi_gate_ring(&s->gate, 1)->shared->start_want);
		tsi_sync_unlock(&s->sync);
	}
	assert_int_equal(want, 1000);
	tsock_close(t);
	tsock_serve_stop(s);
	pthread_join(worker, NULL);
	tsock_serve_close(s);
}

/* Reads so many batches and says so; then, when it is told to, for ever. */
static pid_t start_leader(const struct reader *r, unsigned batches, int said,
			  int go)
{
	pid_t pid = proc_spawn();
	tsock_batch *b;
	char byte;
	tsock *t;
	int err;

	if (pid)
		return pid;
	t = reader_connect(r);
	need(!tsock_begin(t));
	for (unsigned i = 0;; i++) {
		if (i == batches)
			need(write(said, "s", 1) == 1 &&
			     read(go, &byte, 1) == 1);
		err = tsock_next(t, -1, &b);
		if (err == TSOCK_EEPOCH)
			err = tsock_begin(t) ? TSOCK_EARG
					     : tsock_next(t, -1, &b);
		if (err)
			die("the leader: %s", tsock_errmsg());
		tsock_batch_release(b);
	}
}

/* The leader stands in the middle of an epoch when the other one joins. */
static void only_the_first_epoch_of_joining_now_is_short(void **state)
{
	struct source src = { .name = "short",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 40 };
	struct reader lead = { .src = &src, .batch = 16 };
	struct reader late = { .src = &src,
			       .batch = 10,
			       .join = TSOCK_JOIN_NOW,
			       .between = TSOCK_BETWEEN_LEAVE };
	int said[2], go[2];
	pid_t producer, pid;
	char byte;
	tsock *t;

	(void)state;
	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(go), 0);
	producer = stream_start_producer(&src);
	pid = start_leader(&lead, 20, said[1], go[0]);
	close(said[1]);
	assert_int_equal(read(said[0], &byte, 1), 1);
	t = reader_connect(&late);
	for (unsigned e = 0; e < 4; e++) {
		uint64_t got = 0;
		tsock_batch *b;
		int err;

		assert_int_equal(tsock_begin(t), 0);
		if (!e)
			assert_int_equal(write(go[1], "g", 1), 1);
		while ((err = tsock_next(t, 60000, &b)) == 0) {
			reader_check_batch(&late, b, 0);
			got += tsock_batch_count(b);
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_EEPOCH);
		assert_true(e ? got == 1000 : got < 1000);
	}
	tsock_close(t);
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
	close(said[0]);
	close(go[0]);
	close(go[1]);
}

/* ---- the end ---- */

static void who_stops_in_the_last_epoch_ends_the_stream(void **state)
{
	struct source src = { .name = "stops",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .epochs = 2 };
	struct reader r = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&r);

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	take_and_release(t, 10);
	tsock_leave(t);
	/* There is one more. */
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_epoch(t), 1);
	take_and_release(t, 10);
	tsock_close(t);
	assert_int_equal(ends(producer), 0);
}

/* ---- who is slow ---- */

static void nobody_is_killed_whom_nobody_waits_for(void **state)
{
	struct source src = { .name = "pause",
			      .n = 4000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 64,
			      .slow_ms = 300 };
	/* One that pauses alone, then two. */
	struct reader idle = {
		.src = &src, .batch = 16, .epochs = 1, .hold_us = 100000000
	};
	pid_t producer = stream_start_producer(&src), one, two;

	(void)state;
	one = reader_start(&idle);
	stream_wait_readers("pause", 1);
	wait_head("pause", 64);
	proc_pause_us(1500000);
	assert_int_equal(stream_stats("pause").consumers, 1);
	two = reader_start(&idle);
	stream_wait_readers("pause", 2);
	proc_pause_us(1500000);
	assert_int_equal(stream_stats("pause").consumers, 2);
	proc_kill_and_reap(one);
	proc_kill_and_reap(two);
	proc_kill_and_reap(producer);
}

static void
the_slow_reader_of_a_view_is_killed_for_one_of_the_base(void **state)
{
	struct source src = { .name = "behind",
			      .n = 4000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 64,
			      .image = SIDE,
			      .slow_ms = 500 };
	struct reader quick = { .src = &src, .batch = 16, .epochs = 1 };
	pid_t producer = stream_start_producer(&src), good, bad = proc_spawn();
	int status;

	(void)state;
	if (bad == 0) {
		tsock *t = connect_floats(&src, 16, TSOCK_BETWEEN_HOLD);
		tsock_batch *b;

		need(tsock_begin(t) == 0);
		need(tsock_next(t, 60000, &b) == 0);
		pause();
		_exit(1);
	}
	stream_wait_readers("behind", 1);
	good = reader_start(&quick);
	status = proc_ended(bad);
	if (status != 1000 + SIGKILL)
		print_message("a kernel without SO_PEERPIDFD doesn't kill\n");
	assert_int_equal(status, 1000 + SIGKILL);
	assert_int_equal(proc_ended(good), 0);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			only_the_first_epoch_of_joining_now_is_short,
			proc_end_children),
		cmocka_unit_test_teardown(
			who_stops_in_the_last_epoch_ends_the_stream,
			proc_end_children),
		cmocka_unit_test_teardown(
			nobody_is_killed_whom_nobody_waits_for,
			proc_end_children),
		cmocka_unit_test_teardown(
			the_slow_reader_of_a_view_is_killed_for_one_of_the_base,
			proc_end_children),
		cmocka_unit_test_teardown(
			a_lone_reader_of_a_view_that_leaves_gets_every_epoch,
			proc_end_children),
		cmocka_unit_test_teardown(
			who_joins_near_an_epochs_end_gets_the_next,
			proc_end_children),
		/*
		 * The last, for it serves in this process: under ASan a fork
		 * while a thread ends can leave the child without memory.
		 */
		cmocka_unit_test(
			the_start_that_is_kept_is_stated_in_the_views_ring),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("epochs", tests, NULL, NULL);
}
