/* SPDX-License-Identifier: MIT */
/*
 * test_coverage.c - each consumer sees every sample of each of its epochs
 * exactly once, in stream order, whatever the others do.
 */
#include "test/lib/reader.h"

static void serve_readers(const struct source *src, struct reader *r,
			  unsigned n)
{
	pid_t producer = stream_start_producer(src), pid[32];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = reader_start(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

static void batch_sizes_that_divide_nothing(void **state)
{
	static const uint32_t size[] = { 1, 7, 48, 96, 100, 128, 256 };
	struct source src = { .name = "cover",
			      .n = 1501,
			      .ring = 1024,
			      .max_batch = 256,
			      .payload = 1500 };
	struct reader r[7] = { { 0 } };
	unsigned seed = 5;

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		r[i].batch = size[i];
		r[i].epochs = 4;
		r[i].delay_us = (uint32_t)rand_r(&seed) % 400000;
		r[i].flags = i % 3 == 1   ? TSOCK_WRITABLE
			     : i % 3 == 2 ? TSOCK_DROP_LAST
					  : 0;
		r[i].between = i % 2 ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
	}
	serve_readers(&src, r, 7);
}

static void data_sets_smaller_than_a_batch_or_a_ring(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 15, 16, 17, 63, 64, 65 };

	(void)state;
	for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct source src = { .name = "small",
				      .n = sizes[k],
				      .ring = 64,
				      .max_batch = 16,
				      .payload = 33 };
		struct reader r[4] = {
			{ .batch = 16, .epochs = 5 },
			{ .batch = 1, .epochs = 3 },
			/* With more than an epoch has it isn't let in. */
			{ .batch = sizes[k] < 7 ? (uint32_t)sizes[k] : 7,
			  .epochs = 4,
			  .flags = TSOCK_DROP_LAST },
			{ .batch = 16,
			  .epochs = 6,
			  .flags = TSOCK_WRITABLE,
			  .delay_us = 30000 }
		};

		serve_readers(&src, r, 4);
	}
}

static void every_segment_boundary_is_a_way_in(void **state)
{
	struct source src = { .name = "segments",
			      .n = 403,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 40,
			      .segments = 8,
			      .pace_us = 200 };
	struct reader r[20] = { { 0 } };

	(void)state;
	r[0].batch = 16;
	r[0].epochs = 4;
	for (unsigned i = 1; i < 20; i++) {
		r[i].batch = 1 + i % 16;
		r[i].epochs = 2;
		r[i].join = TSOCK_JOIN_SEGMENT;
		r[i].delay_us = i * 12000;
	}
	serve_readers(&src, r, 20);
}

static void joining_now_gives_a_short_first_epoch(void **state)
{
	struct source src = { .name = "now",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 40 };
	struct reader lead = {
		.src = &src, .batch = 16, .epochs = 1000, .hold_us = 1000
	};
	struct reader late = { .src = &src,
			       .batch = 10,
			       .join = TSOCK_JOIN_NOW };
	pid_t producer = stream_start_producer(&src), pid = reader_start(&lead);
	uint64_t first = 0, last = 0;
	tsock_batch *b;
	tsock *t;

	(void)state;
	while (stream_stats("now").head < 300)
		proc_pause_us(5000);
	t = reader_connect(&late);
	assert_int_equal(tsock_begin(t), 0);
	while (tsock_next(t, -1, &b) == 0) {
		reader_check_batch(&late, b, 0);
		if (!last)
			first = tsock_batch_seq(b);
		last = tsock_batch_seq(b) + tsock_batch_count(b);
		tsock_batch_release(b);
	}
	assert_true(first >= 236 && first < last);
	assert_int_equal(last % 1000, 0);
	assert_true(last - first <= 1000);
	tsock_close(t);
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
}

static void a_stream_without_readers_jumps_to_a_fresh_epoch(void **state)
{
	struct source src = { .name = "jump",
			      .n = 100000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16 };
	struct reader one = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src);
	tsock_batch *b;
	tsock *t = reader_connect(&one);

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		assert_int_equal(tsock_begin(t), 0);
		for (unsigned i = 0; i < 10; i++) {
			assert_int_equal(tsock_next(t, -1, &b), 0);
			assert_int_equal(tsock_batch_seq(b),
					 round * 100000 + i * 16);
			reader_check_batch(&one, b, 0);
			tsock_batch_release(b);
		}
		tsock_leave(t);
	}
	/* Five epochs begun, and no more made than was asked for. */
	assert_true(stream_stats("jump").produced <= 5 * (160 + 64));
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void break_and_iterate_again_is_a_fresh_epoch_beside_others(void **state)
{
	struct source src = { .name = "again",
			      .n = 500,
			      .ring = 128,
			      .max_batch = 32,
			      .payload = 16 };
	struct reader other = { .src = &src, .batch = 32, .epochs = 40 };
	struct reader me = { .src = &src, .batch = 20 };
	pid_t producer = stream_start_producer(&src),
	      pid = reader_start(&other);
	uint64_t after = 0;
	tsock_batch *b;
	tsock *t = reader_connect(&me);

	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(tsock_next(t, -1, &b), 0);
		assert_true(tsock_batch_seq(b) >= after);
		assert_int_equal(tsock_batch_seq(b) % 500, 0);
		after = tsock_batch_seq(b) + 500;
		reader_check_batch(&me, b, 0);
		tsock_batch_release(b);
		/* An epoch begun and not finished is left by the next one. */
	}
	tsock_close(t);
	assert_int_equal(proc_ended(pid), 0);
	proc_kill_and_reap(producer);
}

static void epochs_end_the_stream(void **state)
{
	struct source src = { .name = "ends",
			      .n = 100,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .epochs = 3 };
	struct reader r = { .src = &src, .batch = 9 };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&r);

	(void)state;
	for (unsigned e = 0; e < 3; e++) {
		assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(tsock_epoch(t), e);
		reader_read_epoch(&r, t);
	}
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	assert_int_equal(proc_ended(producer), 0);
}

static void min_consumers_start_together(void **state)
{
	struct source src = { .name = "together",
			      .n = 300,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .min_consumers = 3 };
	struct reader r[3] = { { .src = &src, .batch = 16, .epochs = 2 },
			       { .src = &src, .batch = 5, .epochs = 2 },
			       { .src = &src, .batch = 9, .epochs = 2 } };
	pid_t producer = stream_start_producer(&src), pid[3];

	(void)state;
	pid[0] = reader_start(&r[0]);
	pid[1] = reader_start(&r[1]);
	stream_wait_readers("together", 2);
	assert_int_equal(stream_stats("together").claimed, 0);
	pid[2] = reader_start(&r[2]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_sizes_that_divide_nothing),
		cmocka_unit_test(data_sets_smaller_than_a_batch_or_a_ring),
		cmocka_unit_test(every_segment_boundary_is_a_way_in),
		cmocka_unit_test(joining_now_gives_a_short_first_epoch),
		cmocka_unit_test(
			a_stream_without_readers_jumps_to_a_fresh_epoch),
		cmocka_unit_test(
			break_and_iterate_again_is_a_fresh_epoch_beside_others),
		cmocka_unit_test(epochs_end_the_stream),
		cmocka_unit_test(min_consumers_start_together),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("coverage", tests, NULL, NULL);
}
