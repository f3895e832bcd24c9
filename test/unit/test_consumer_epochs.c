/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_epochs.c - where an epoch of a consumer begins: after joining,
 * leaving, rewinding, skipping, and when the one before was broken off.
 */
#include "test/lib/inproc.h"

static void segments_and_now_and_leave(void **state)
{
	struct tsock_serve_opts so = inproc_opts(400);
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct inproc st;
	tsock *t;

	(void)state;
	so.segments = 4;
	inproc_serve(&st, &so);
	o.batch_size = 30;
	o.between = TSOCK_BETWEEN_LEAVE;
	for (o.join = 0; o.join <= TSOCK_JOIN_NOW; o.join++) {
		uint64_t last = 0;

		assert_int_equal(tsock_open("unit", &o, &t), 0);
		for (unsigned e = 0; e < 3; e++) {
			uint64_t done = 0, first = 0;
			tsock_batch *b;
			int err;

			assert_int_equal(tsock_begin(t), 0);
			while (!(err = tsock_next(t, 20000, &b))) {
				if (!done)
					first = tsock_batch_seq(b);
				assert_true(inproc_good(b, 400));
				assert_int_equal(tsock_batch_seq(b),
						 first + done);
				done += tsock_batch_count(b);
				tsock_batch_release(b);
			}
			assert_int_equal(err, TSOCK_EEPOCH);
			assert_true(first >= last);
			last = first + done;
			if (o.join == TSOCK_JOIN_EPOCH)
				assert_int_equal(first % 400, 0);
			if (o.join == TSOCK_JOIN_SEGMENT)
				assert_int_equal(first % 100, 0);
			if (o.join == TSOCK_JOIN_NOW)
				assert_int_equal(last % 400, 0);
			else
				assert_int_equal(done, 400);
		}
		tsock_close(t);
	}
	inproc_stop(&st);
}

static void breaking_off_goes_on_at_the_next_epoch(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 300);
	t = inproc_join(50, 0);
	assert_int_equal(tsock_epoch(t), UINT64_MAX);
	for (unsigned e = 0; e < 5; e++) {
		assert_int_equal(tsock_begin(t), 0);
		b = inproc_next(t);
		assert_int_equal(tsock_batch_seq(b), e * 300);
		assert_int_equal(tsock_epoch(t), e);
		tsock_batch_release(b);
		tsock_batch_release(inproc_next(t));
	}
	/* All batches taken, EEPOCH not heard: that epoch is finished. */
	for (unsigned i = 2; i < 6; i++)
		tsock_batch_release(inproc_next(t));
	assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	assert_int_equal(tsock_batch_seq(b), 5 * 300);
	tsock_batch_release(b);
	tsock_leave(t);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EARG);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	tsock_close(t);
	inproc_stop(&st);
}

static void take_first(tsock *t, uint64_t seq)
{
	tsock_batch *b;

	assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	assert_int_equal(tsock_batch_seq(b), seq);
	tsock_batch_release(b);
}

static void an_epoch_that_was_rewound_is_begun_again(void **state)
{
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 300);
	t = inproc_join(50, TSOCK_DROP_LAST);
	tsock_rewind(t); /* nothing was begun */
	for (unsigned e = 0; e < 2; e++) {
		for (unsigned i = 0; i < 3; i++) {
			take_first(t, e * 300);
			tsock_rewind(t); /* nothing was left */
			tsock_leave(t);
			tsock_rewind(t);
		}
		take_first(t, e * 300);
		tsock_leave(t);
	}
	tsock_close(t);
	inproc_stop(&st);
}

static void an_epoch_of_which_all_was_taken_is_finished(void **state)
{
	struct inproc st;
	tsock_batch *first;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 200);
	t = inproc_join(50, 0);
	take_first(t, 0);
	/* EEPOCH is not heard, and the first batch keeps the start held. */
	assert_int_equal(tsock_begin(t), 0);
	first = inproc_next(t);
	assert_int_equal(tsock_batch_seq(first), 200);
	for (unsigned i = 1; i < 4; i++)
		tsock_batch_release(inproc_next(t));
	tsock_leave(t);
	tsock_rewind(t);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_epoch(t), 2);
	tsock_batch_release(first);
	tsock_batch_release(inproc_next(t));
	tsock_close(t);
	inproc_stop(&st);
}

static void samples_are_skipped_without_being_waited_for(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 10000);
	t = inproc_join(50, 0);
	assert_int_equal(tsock_skip(t, 1), TSOCK_EARG);
	take_first(t, 0);
	assert_int_equal(tsock_skip(t, 9000), 0); /* rings further on */
	assert_int_equal(tsock_skip(t, 0), 0);
	b = inproc_next(t);
	assert_int_equal(tsock_batch_seq(b), 9050);
	assert_true(inproc_good(b, 10000));
	tsock_batch_release(b);
	assert_int_equal(tsock_skip(t, 880), 0);
	b = inproc_next(t);
	assert_int_equal(tsock_batch_seq(b), 9980);
	assert_int_equal(tsock_batch_count(b), 20);
	tsock_batch_release(b);
	take_first(t, 10000);
	assert_int_equal(tsock_skip(t, UINT64_MAX), 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EEPOCH);
	assert_int_equal(tsock_skip(t, 1), TSOCK_EARG);
	take_first(t, 20000);
	tsock_close(t);
	inproc_stop(&st);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_and_now_and_leave),
		cmocka_unit_test(breaking_off_goes_on_at_the_next_epoch),
		cmocka_unit_test(an_epoch_that_was_rewound_is_begun_again),
		cmocka_unit_test(an_epoch_of_which_all_was_taken_is_finished),
		cmocka_unit_test(samples_are_skipped_without_being_waited_for),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
