/* SPDX-License-Identifier: MIT */
/*
 * test_windows.c - batches may be written into and kept: nobody else sees it,
 * nobody waits for it, and no byte in hand ever changes.
 */
#include "test/lib/reader.h"

#define KEEP 400

/* As list(loader): keep every batch of an epoch, then look at all of them. */
static void keep_everything(const struct reader *r, unsigned epochs)
{
	tsock *t = reader_connect(r);
	tsock_batch *kept[KEEP];
	unsigned n = 0;
	int err = 0;

	for (unsigned e = 0; e < epochs; e++) {
		need(tsock_begin(t) == 0);
		while ((err = tsock_next(t, -1, &kept[n])) == 0) {
			reader_check_batch(r, kept[n], 0);
			if (++n == KEEP)
				die("too many batches");
		}
		if (err != TSOCK_EEPOCH)
			die("next: %s", tsock_errmsg());
	}
	for (unsigned i = 0; i < n; i++)
		reader_check_batch(r, kept[i], 0);
	tsock_close(t);
	for (unsigned i = 0; i < n; i++) {
		reader_check_batch(r, kept[i], 0);
		tsock_batch_release(kept[i]);
	}
}

static void several(const struct source *src, struct reader *r, unsigned n)
{
	pid_t producer = stream_start_producer(src), pid[8];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = reader_start(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

static void one_writes_all_over_its_batches_and_nobody_sees_it(void **state)
{
	struct source src = { .name = "scribble",
			      .n = 1000,
			      .ring = 256,
			      .max_batch = 32,
			      .payload = 5000 };
	struct reader r[4] = {
		{ .batch = 32,
		  .epochs = 3,
		  .flags = TSOCK_WRITABLE,
		  .scribble = true },
		{ .batch = 20, .epochs = 3, .hold_us = 300 },
		{ .batch = 7, .epochs = 3, .flags = TSOCK_WRITABLE },
		{ .batch = 31,
		  .epochs = 3,
		  .flags = TSOCK_WRITABLE,
		  .scribble = true,
		  .hold_us = 200 },
	};

	(void)state;
	several(&src, r, 4);
}

static void odd_sample_sizes_cross_the_rings_end_whole(void **state)
{
	static const uint32_t size[] = { 1, 3, 4095, 4096, 4097, 299 * 299 };

	(void)state;
	for (unsigned k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
		struct source src = { .name = "odd",
				      .n = 150,
				      .ring = 41,
				      .max_batch = 10,
				      .payload = size[k] };
		struct reader r[3] = {
			{ .batch = 10, .epochs = 3, .flags = TSOCK_WRITABLE },
			{ .batch = 3, .epochs = 3 },
			{ .batch = 9,
			  .epochs = 3,
			  .flags = TSOCK_WRITABLE,
			  .scribble = true },
		};

		several(&src, r, 3);
	}
}

static void keeping_three_rings_of_batches_holds_nobody_up(void **state)
{
	static const uint32_t size[] = { 1, 1000, 4096, 20011 };

	(void)state;
	for (unsigned k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
		struct source src = { .name = "kept",
				      .n = 3 * 128 + 5,
				      .ring = 128,
				      .max_batch = 16,
				      .payload = size[k] };
		struct reader r = { .src = &src,
				    .batch = 16,
				    .flags = TSOCK_WRITABLE };
		struct reader other = { .src = &src, .batch = 5, .epochs = 3 };
		pid_t producer = stream_start_producer(&src);
		pid_t keeper = proc_spawn(), pid;

		if (keeper == 0) {
			keep_everything(&r, 2);
			_exit(0);
		}
		pid = reader_start(&other);
		assert_int_equal(proc_ended(keeper), 0);
		assert_int_equal(proc_ended(pid), 0);
		proc_kill_and_reap(producer);
	}
}

static void a_first_batch_is_kept_for_the_whole_run(void **state)
{
	struct source src = { .name = "first",
			      .n = 500,
			      .ring = 128,
			      .max_batch = 16,
			      .payload = 3000 };
	struct reader me = { .src = &src,
			     .batch = 16,
			     .flags = TSOCK_WRITABLE };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&me);
	tsock_batch *first = NULL, *b;

	(void)state;
	for (unsigned e = 0; e < 5; e++) {
		assert_int_equal(tsock_begin(t), 0);
		while (tsock_next(t, -1, &b) == 0) {
			reader_check_batch(&me, b, 0);
			if (first)
				tsock_batch_release(b);
			else
				first = b;
		}
		reader_check_batch(&me, first, 0);
	}
	/* Written into late, it is still nobody else's. */
	memset(tsock_batch_data_mut(first, 0), 1, 3000);
	tsock_batch_release(first);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void a_read_only_reader_that_keeps_too_much_is_told_so(void **state)
{
	struct source src = { .name = "hoard",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 100 };
	struct reader me = { .src = &src, .batch = 16 };
	pid_t producer = stream_start_producer(&src);
	tsock *t = reader_connect(&me);
	tsock_batch *b[64];
	unsigned n = 0;
	int err;

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	while ((err = tsock_next(t, -1, &b[n])) == 0)
		assert_true(++n < 64);
	assert_int_equal(err, TSOCK_EHELD);
	assert_null(tsock_batch_data_mut(b[0], 0));
	for (unsigned i = 0; i < n; i++) {
		reader_check_batch(&me, b[i], 0);
		tsock_batch_release(b[i]);
	}
	assert_int_equal(tsock_next(t, -1, &b[0]), 0);
	tsock_batch_release(b[0]);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static void views_are_made_once_and_shared(void **state)
{
	struct source src = { .name = "views",
			      .n = 400,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .image = 10 };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	pid_t producer = stream_start_producer(&src);
	struct tsock_stats st;
	tsock_batch *b[3];
	tsock *t[3];

	(void)state;
	o.timeout_ms = 60000;
	for (unsigned i = 0; i < 3; i++) {
		o.batch_size = 4 + i;
		o.dtype = TSOCK_F32;
		o.layout = TSOCK_CHW;
		o.normalize = i < 2 ? TSOCK_UNIT : TSOCK_RAW;
		assert_int_equal(tsock_open("views", &o, &t[i]), 0);
		assert_int_equal(tsock_begin(t[i]), 0);
		assert_int_equal(tsock_next(t[i], 60000, &b[i]), 0);
	}
	st = stream_stats("views");
	assert_int_equal(st.views, 2);
	for (unsigned i = 0; i < 3; i++) {
		const float *x = tsock_batch_data(b[i], 3);
		uint64_t seq = tsock_batch_seq(b[i]);
		uint8_t raw[300];

		for (uint64_t k = 0; k < tsock_batch_count(b[i]); k++) {
			stream_fill_payload(raw, 300, (seq + k) ^ 77);
			for (unsigned px = 0; px < 100; px++)
				for (unsigned c = 0; c < 3; c++) {
					float v = raw[px * 3 + c];

					v = i < 2 ? v / 255.0f : v;
					assert_true(x[k * 300 + c * 100 + px] ==
						    v);
				}
		}
		assert_int_equal(*(const int64_t *)tsock_batch_data(b[i], 1),
				 (int64_t)seq);
		tsock_batch_release(b[i]);
		tsock_close(t[i]);
	}
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			one_writes_all_over_its_batches_and_nobody_sees_it),
		cmocka_unit_test(odd_sample_sizes_cross_the_rings_end_whole),
		cmocka_unit_test(
			keeping_three_rings_of_batches_holds_nobody_up),
		cmocka_unit_test(a_first_batch_is_kept_for_the_whole_run),
		cmocka_unit_test(
			a_read_only_reader_that_keeps_too_much_is_told_so),
		cmocka_unit_test(views_are_made_once_and_shared),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
