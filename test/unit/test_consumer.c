/* SPDX-License-Identifier: MIT */
/*
 * test_consumer.c - a consumer reads batches of any size, converted as it
 * asked, and is told when there is none yet.
 */
#include <string.h>

#include "base/clock.h"
#include "test/lib/epoch_job.h"

static void every_sample_comes_once_for_any_batch_size(void **state)
{
	static const uint32_t size[] = { 1, 7, 48, 96, 100, 128 };
	struct epoch_job j[6];
	struct inproc st;

	(void)state;
	for (unsigned pass = 0; pass < 3; pass++) {
		inproc_serve_n(&st, 500);
		memset(j, 0, sizeof(j));
		for (unsigned i = 0; i < 6; i++) {
			j[i].n = 500;
			j[i].batch = size[i];
			j[i].epochs = 3;
			j[i].flags = pass == 0   ? 0
				     : pass == 1 ? TSOCK_WRITABLE
				     : i % 2 ? TSOCK_WRITABLE | TSOCK_DROP_LAST
					     : TSOCK_DROP_LAST;
			j[i].scribble = j[i].flags & TSOCK_WRITABLE && i % 2;
		}
		epoch_job_run_all(j, 6);
		inproc_stop(&st);
	}
}

static void tiny_data_sets_work(void **state)
{
	static const uint64_t n[] = { 1, 2, 5, 7, 8, 63 };

	(void)state;
	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		struct epoch_job j[3] = {
			{ .n = n[i], .batch = 7, .epochs = 40 },
			{ .n = n[i],
			  .batch = 1,
			  .epochs = 40,
			  .flags = TSOCK_WRITABLE },
			{ .n = n[i],
			  .batch = n[i] < 8 ? (uint32_t)n[i] : 8,
			  .epochs = 40,
			  .flags = TSOCK_DROP_LAST },
		};
		struct inproc st;

		inproc_serve_n(&st, n[i]);
		epoch_job_run_all(j, 3);
		inproc_stop(&st);
	}
}

static void spinning_works(void **state)
{
	struct epoch_job j = {
		.n = 300, .batch = 32, .epochs = 2, .flags = TSOCK_SPIN
	};
	struct inproc st;

	(void)state;
	inproc_serve_n(&st, 300);
	epoch_job_run_all(&j, 1);
	inproc_stop(&st);
}

static void nothing_to_read_is_eagain(void **state)
{
	struct inproc st;
	tsock_batch *b;
	int64_t begin;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 500);
	atomic_store(&st.upto, 3);
	t = inproc_join(32, 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EARG);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EAGAIN);
	begin = tsi_now_ms();
	assert_int_equal(tsock_next(t, 250, &b), TSOCK_EAGAIN);
	assert_true(tsi_now_ms() - begin >= 249);
	atomic_store(&st.upto, UINT64_MAX);
	tsock_batch_release(inproc_next(t));
	tsock_close(t);
	inproc_stop(&st);
}

static void begin_can_be_polled(void **state)
{
	struct inproc st;
	int err, calls = 0;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 500);
	t = inproc_join(32, 0);
	while ((err = tsock_begin_timed(t, 0)) == TSOCK_EAGAIN)
		if (++calls > 50000000)
			fail_msg("never joined");
	assert_int_equal(err, 0);
	tsock_batch_release(inproc_next(t));
	tsock_close(t);
	assert_int_equal(inproc_consumers(&st), 0);
	inproc_stop(&st);
}

static void views_are_converted(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_field f;
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 200);
	o.batch_size = 33;
	o.flags = TSOCK_WRITABLE;
	o.dtype = TSOCK_F32;
	o.layout = TSOCK_CHW;
	o.normalize = TSOCK_UNIT;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	assert_int_equal(tsock_get_field(t, 0, &f), 0);
	assert_int_equal(f.dtype, TSOCK_F32);
	assert_int_equal(f.shape[0], 3);
	assert_int_equal(f.shape[2], INPROC_SIDE);
	assert_int_equal(tsock_get_field(t, 1, &f), 0);
	assert_int_equal(f.dtype, TSOCK_I64);
	assert_int_equal(tsock_get_field(t, 2, &f), TSOCK_EARG);
	for (unsigned e = 0; e < 3; e++) {
		uint64_t seq = e * 200;
		tsock_batch *b;
		int err;

		assert_int_equal(tsock_begin(t), 0);
		while (!(err = tsock_next(t, 20000, &b))) {
			const float *p = tsock_batch_data(b, 0);

			for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
				float want =
					(float)inproc_pixel(seq++) / 255.0f;

				for (unsigned k = 0; k < INPROC_BYTES; k++)
					if (*p++ != want)
						fail_msg("not %f", want);
			}
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_EEPOCH);
	}
	tsock_close(t);
	inproc_stop(&st);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_comes_once_for_any_batch_size),
		cmocka_unit_test(tiny_data_sets_work),
		cmocka_unit_test(spinning_works),
		cmocka_unit_test(nothing_to_read_is_eagain),
		cmocka_unit_test(begin_can_be_polled),
		cmocka_unit_test(views_are_converted),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
