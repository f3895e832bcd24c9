/* SPDX-License-Identifier: MIT */
/*
 * test_process_epochs.c - an epoch that a process has read to its end is not
 * given to its next handle again, although others still read it.
 *
 * Beside every test a reader of another process is in epoch 0, all of which is
 * in the ring as long as it stays there.
 */
#include "test/lib/reader.h"

#define N 60
#define BATCH 8

/* Its name is another one in each test, for this process reads them all. */
static char name[16];
static const struct source usual = { .name = name,
				     .n = N,
				     .ring = 16 * N,
				     .max_batch = BATCH,
				     .payload = 16,
				     .segments = 4,
				     .identity = "data=1\n" };
static const struct reader other = {
	.src = &usual, .batch = 4, .epochs = 100, .hold_us = 3600 * 1000000u
};

static pid_t producer;

static int another_stream(void **state)
{
	static int streams;

	(void)state;
	snprintf(name, sizeof(name), "process%d", streams++);
	return 0;
}

/* Serve it, to a reader that keeps its first batch. */
static void start_beside_other(const struct source *src)
{
	producer = stream_start_producer(src);
	reader_start(&other);
	stream_wait_readers(src->name, 1);
}

static tsock *open_as(struct tsock_opts o)
{
	tsock *t;

	o.batch_size = BATCH;
	o.timeout_ms = 60000;
	if (tsock_open(usual.name, &o, &t))
		die("open: %s", tsock_errmsg());
	return t;
}

static tsock *open_usual(void)
{
	return open_as((struct tsock_opts)TSOCK_OPTS_INIT);
}

static uint64_t begun(tsock *t)
{
	assert_int_equal(tsock_begin(t), 0);
	return tsock_epoch(t);
}

static void take(tsock *t, unsigned batches)
{
	tsock_batch *b;

	while (batches--) {
		assert_int_equal(tsock_next(t, 60000, &b), 0);
		tsock_batch_release(b);
	}
}

static void take_all(tsock *t)
{
	tsock_batch *b;

	take(t, (N + BATCH - 1) / BATCH);
	assert_int_equal(tsock_next(t, 60000, &b), TSOCK_EEPOCH);
}

/* A handle that reads one epoch to its end, which it was to be. */
static void read_by_a_handle(uint64_t epoch)
{
	tsock *t = open_usual();

	assert_int_equal(begun(t), epoch);
	take_all(t);
	tsock_close(t);
}

static void begins_with(uint64_t epoch)
{
	tsock *t = open_usual();

	assert_int_equal(begun(t), epoch);
	tsock_close(t);
}

static void the_next_handle_gets_the_next_epoch(void **state)
{
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	for (uint64_t e = 0; e < 5; e++)
		read_by_a_handle(e);
	/* For a handle that reads several the last one counts. */
	t = open_usual();
	for (uint64_t e = 5; e < 7; e++) {
		assert_int_equal(begun(t), e);
		take_all(t);
	}
	assert_int_equal(begun(t), 7);
	take(t, 2);
	tsock_close(t);
	begins_with(7);
}

static void an_epoch_that_was_left_may_be_had_again(void **state)
{
	tsock_batch *b;
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	for (unsigned batches = 0; batches < 3; batches++) {
		t = open_usual();
		assert_int_equal(begun(t), 0);
		take(t, batches);
		tsock_close(t);
	}
	/* All was taken, and only its end not heard. */
	t = open_usual();
	assert_int_equal(begun(t), 0);
	take(t, (N + BATCH - 1) / BATCH);
	tsock_close(t);
	t = open_usual();
	assert_int_equal(begun(t), 1);
	assert_int_equal(tsock_skip(t, N), 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EEPOCH);
	tsock_close(t);
	begins_with(2);
}

static void handles_that_read_at_once_are_two_readers(void **state)
{
	tsock *t, *second;
	tsock_batch *b;

	(void)state;
	start_beside_other(&usual);
	t = open_usual();
	assert_int_equal(begun(t), 0);
	take(t, 1);
	/* As evaluation in the middle of training on one stream. */
	read_by_a_handle(0);
	read_by_a_handle(0);
	take(t, (N + BATCH - 1) / BATCH - 1);
	assert_int_equal(tsock_next(t, 60000, &b), TSOCK_EEPOCH);
	/* This one hasn't closed. */
	second = open_usual();
	assert_int_equal(begun(second), 1);
	tsock_close(second);
	tsock_close(t);
	/* Two that begin now know both of the same epochs. */
	t = open_usual();
	second = open_usual();
	assert_int_equal(begun(t), 1);
	assert_int_equal(begun(second), 1);
	tsock_close(t);
	tsock_close(second);
}

static void one_that_was_left_open_changes_nothing(void **state)
{
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	t = open_usual();
	assert_int_equal(begun(t), 0);
	take(t, 1);
	tsock_leave(t);
	for (uint64_t e = 0; e < 3; e++)
		read_by_a_handle(e);
	tsock_close(t);
	begins_with(3);
}

static void a_forked_child_has_read_nothing(void **state)
{
	pid_t child;
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	read_by_a_handle(0);
	child = proc_spawn();
	if (!child) {
		t = open_usual();
		need(!tsock_begin(t));
		need(tsock_epoch(t) == 0);
		tsock_close(t);
		_exit(0);
	}
	assert_int_equal(proc_ended(child), 0);
	begins_with(1);
}

static void the_newest_sample_is_the_newest(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_stats st;
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	read_by_a_handle(0);
	do
		st = stream_stats(usual.name);
	while (st.head < st.limit);
	o.join = TSOCK_JOIN_NOW;
	t = open_as(o);
	assert_int_equal(begun(t), st.head / N);
	tsock_close(t);
}

static void segments_go_on_where_the_last_one_ended(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	uint64_t start, samples;
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	o.join = TSOCK_JOIN_SEGMENT;
	o.between = TSOCK_BETWEEN_LEAVE;
	for (uint64_t e = 0; e < 3; e++) {
		t = open_as(o);
		assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(tsock_position(t, &start, &samples), 0);
		assert_int_equal(start, e * N);
		take_all(t);
		tsock_close(t);
	}
}

static void who_goes_back_has_not_read_what_lies_behind(void **state)
{
	tsock *t;

	(void)state;
	start_beside_other(&usual);
	read_by_a_handle(0);
	read_by_a_handle(1);
	t = open_usual();
	assert_int_equal(tsock_resume(t, N, BATCH, 60000), 0);
	take(t, 1);
	tsock_close(t);
	begins_with(1);
	t = open_usual();
	assert_int_equal(tsock_resume(t, 0, N, 60000), 0);
	assert_int_equal(tsock_epoch(t), 1);
	take_all(t);
	tsock_close(t);
	begins_with(2);
}

static void ranks_are_counted_by_themselves(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *rank[2];

	(void)state;
	start_beside_other(&usual);
	read_by_a_handle(0);
	read_by_a_handle(1);
	o.world = 2;
	for (unsigned e = 0; e < 2; e++) {
		for (o.rank = 0; o.rank < 2; o.rank++)
			rank[o.rank] = open_as(o);
		o.job[0]++;
		for (unsigned asked = 0; asked < 100; asked++)
			for (unsigned i = 0; i < 2; i++)
				if (tsock_epoch(rank[i]) == UINT64_MAX)
					(void)tsock_begin_timed(rank[i], 50);
		for (unsigned i = 0; i < 2; i++) {
			tsock_batch *b;

			assert_int_equal(tsock_epoch(rank[i]), e);
			assert_int_equal(tsock_skip(rank[i], N), 0);
			assert_int_equal(tsock_next(rank[i], 60000, &b),
					 TSOCK_EEPOCH);
		}
		for (unsigned i = 0; i < 2; i++)
			tsock_close(rank[i]);
	}
}

/* ---- the next producer ---- */

static void start_anew(const struct source *src)
{
	proc_kill_and_reap(producer);
	producer = stream_start_producer(src);
}

static void a_producer_that_begins_anew_serves_another_stream(void **state)
{
	struct source renamed = usual;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	(void)state;
	o.flags = TSOCK_CONTINUE;
	producer = stream_start_producer(&usual);
	for (uint64_t e = 0; e < 3; e++)
		read_by_a_handle(e);
	start_anew(&usual);
	begins_with(0);
	/* A handle that asks for that goes on where it was. */
	t = open_as(o);
	assert_int_equal(begun(t), 3);
	take_all(t);
	tsock_close(t);
	start_anew(&usual);
	reader_start(&other);
	stream_wait_readers(usual.name, 1);
	/* But no others wait for that, nor it for them. */
	t = open_as(o);
	assert_int_equal(begun(t), 0);
	take_all(t);
	tsock_close(t);
	begins_with(1);
	renamed.identity = "data=2\n";
	start_anew(&renamed);
	t = open_as(o);
	assert_int_equal(begun(t), 0);
	tsock_close(t);
}

static void a_producer_that_goes_on_serves_the_same_stream(void **state)
{
	(void)state;
	start_beside_other(&usual);
	for (uint64_t e = 0; e < 3; e++)
		read_by_a_handle(e);
	/* The new handle continues where the other one is, in epoch 0. */
	start_anew(&usual);
	read_by_a_handle(3);
	start_anew(&usual);
	begins_with(4);
}

static void an_end_that_comes_before_is_none(void **state)
{
	struct source last = usual;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	(void)state;
	o.flags = TSOCK_CONTINUE;
	last.epochs = 2;
	producer = stream_start_producer(&last);
	read_by_a_handle(0);
	read_by_a_handle(1);
	start_anew(&last);
	t = open_as(o);
	assert_int_equal(begun(t), 0);
	take_all(t);
	tsock_close(t);
	t = open_as(o);
	assert_int_equal(begun(t), 1);
	take_all(t);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_next_handle_gets_the_next_epoch, another_stream,
			proc_end_children),
		cmocka_unit_test_setup_teardown(
			an_epoch_that_was_left_may_be_had_again, another_stream,
			proc_end_children),
		cmocka_unit_test_setup_teardown(
			handles_that_read_at_once_are_two_readers,
			another_stream, proc_end_children),
		cmocka_unit_test_setup_teardown(
			one_that_was_left_open_changes_nothing, another_stream,
			proc_end_children),
		cmocka_unit_test_setup_teardown(a_forked_child_has_read_nothing,
						another_stream,
						proc_end_children),
		cmocka_unit_test_setup_teardown(the_newest_sample_is_the_newest,
						another_stream,
						proc_end_children),
		cmocka_unit_test_setup_teardown(
			segments_go_on_where_the_last_one_ended, another_stream,
			proc_end_children),
		cmocka_unit_test_setup_teardown(
			who_goes_back_has_not_read_what_lies_behind,
			another_stream, proc_end_children),
		cmocka_unit_test_setup_teardown(ranks_are_counted_by_themselves,
						another_stream,
						proc_end_children),
		cmocka_unit_test_setup_teardown(
			a_producer_that_begins_anew_serves_another_stream,
			another_stream, proc_end_children),
		cmocka_unit_test_setup_teardown(
			a_producer_that_goes_on_serves_the_same_stream,
			another_stream, proc_end_children),
		cmocka_unit_test_setup_teardown(
			an_end_that_comes_before_is_none, another_stream,
			proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("process_epochs", tests, NULL, NULL);
}
