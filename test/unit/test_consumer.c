/* SPDX-License-Identifier: MIT */
/*
 * test_consumer.c - a consumer reads: batches of any size, epochs, views, and
 * what a stream ends with.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "test/lib/inproc.h"

struct job {
	pthread_t thread;
	uint64_t n;
	uint32_t batch, flags;
	unsigned epochs, scribble;
	char failed[256];
};

#define EXPECT(j, x) \
	do { \
		if (!(x)) { \
			snprintf((j)->failed, sizeof((j)->failed), \
				 "line %d: %s (%.150s)", __LINE__, #x, \
				 tsock_errmsg()); \
			return; \
		} \
	} while (0)

/* One epoch: every sample once, in order, in batches as large as they go. */
static void read_epoch(struct job *j, tsock *t, uint64_t *next)
{
	uint64_t done = 0, batches = 0, want = j->n;
	tsock_batch *b;
	int err;

	if (j->flags & TSOCK_DROP_LAST)
		want -= j->n % j->batch;
	EXPECT(j, tsock_begin(t) == 0);
	while ((err = tsock_next(t, 20000, &b)) == 0) {
		uint64_t n = tsock_batch_count(b);

		if (*next == UINT64_MAX)
			*next = tsock_batch_seq(b);
		EXPECT(j, tsock_batch_seq(b) == *next + done);
		EXPECT(j,
		       n == (want - done < j->batch ? want - done : j->batch));
		EXPECT(j, tsock_batch_epoch(b) == tsock_epoch(t));
		EXPECT(j, inproc_good(b, j->n));
		if (j->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xaa,
			       n * INPROC_BYTES);
		tsock_batch_release(b);
		done += n;
		batches++;
	}
	EXPECT(j, err == TSOCK_EEPOCH);
	EXPECT(j, tsock_next(t, 0, &b) == TSOCK_EEPOCH);
	EXPECT(j, done == want);
	EXPECT(j, batches == tsock_epoch_batches(t));
	*next += j->n;
}

static void *consume(void *arg)
{
	struct job *j = arg;
	tsock *t = inproc_join(j->batch, j->flags);
	uint64_t next = UINT64_MAX;

	for (unsigned e = 0; e < j->epochs && !j->failed[0]; e++)
		read_epoch(j, t, &next);
	tsock_close(t);
	return NULL;
}

static void run_jobs(struct job *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(
			pthread_create(&j[i].thread, NULL, consume, &j[i]), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(j[i].thread, NULL);
	for (unsigned i = 0; i < n; i++)
		if (j[i].failed[0])
			fail_msg("batch size %u: %s", j[i].batch, j[i].failed);
}

static void every_sample_comes_once_for_any_batch_size(void **state)
{
	static const uint32_t size[] = { 1, 7, 48, 96, 100, 128 };
	struct job j[6];
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
		run_jobs(j, 6);
		inproc_stop(&st);
	}
}

static void tiny_data_sets_work(void **state)
{
	static const uint64_t n[] = { 1, 2, 5, 7, 8, 63 };

	(void)state;
	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		struct job j[3] = {
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
		run_jobs(j, 3);
		inproc_stop(&st);
	}
}

static void spinning_works(void **state)
{
	struct job j = {
		.n = 300, .batch = 32, .epochs = 2, .flags = TSOCK_SPIN
	};
	struct inproc st;

	(void)state;
	inproc_serve_n(&st, 300);
	run_jobs(&j, 1);
	inproc_stop(&st);
}

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

static void all_batches_of_some_epochs_can_be_kept(void **state)
{
	enum { BATCHES = 4 * 10 };
	tsock_batch *b[BATCHES], *none;
	unsigned n = 0;
	struct inproc st;
	struct job other = { .n = 500, .batch = 96, .epochs = 4, .flags = 0 };
	struct tsock_serve_opts o = inproc_opts(500);
	tsock *t;

	(void)state;
	/* Together: who came an epoch later would be held up at the end. */
	o.min_consumers = 2;
	inproc_serve(&st, &o);
	t = inproc_join(50, TSOCK_WRITABLE);
	assert_int_equal(pthread_create(&other.thread, NULL, consume, &other),
			 0);
	for (unsigned e = 0; e < 4; e++) {
		assert_int_equal(tsock_begin(t), 0);
		for (unsigned i = 0; i < 10; i++)
			b[n++] = inproc_next(t);
		assert_int_equal(tsock_next(t, 0, &none), TSOCK_EEPOCH);
	}
	/* Nobody waits for us, though we hold everything. */
	pthread_join(other.thread, NULL);
	if (other.failed[0])
		fail_msg("%s", other.failed);
	tsock_close(t);
	inproc_stop(&st);
	for (unsigned i = 0; i < BATCHES; i++)
		assert_true(inproc_good(b[i], 500));
	for (unsigned i = 0; i < BATCHES; i++)
		tsock_batch_release(b[i]);
}

static void read_only_hoarders_get_an_error(void **state)
{
	tsock_batch *b[32], *more;
	unsigned n = 0;
	struct inproc st;
	tsock *t;
	int err;

	(void)state;
	inproc_serve_n(&st, 500);
	t = inproc_join(32, 0);
	assert_int_equal(tsock_begin(t), 0);
	while (n < 32 &&
	       ((err = tsock_next(t, 100, &b[n])) == 0 || err == TSOCK_EAGAIN))
		n += !err;
	assert_int_equal(err, TSOCK_EHELD);
	assert_int_equal(n, 8); /* C - W = 256 samples */
	assert_non_null(strstr(tsock_errmsg(), "8 batches"));
	assert_int_equal(tsock_next(t, 0, &more), TSOCK_EHELD);
	tsock_batch_release(b[0]);
	more = inproc_next(t);
	assert_true(inproc_good(more, 500));
	tsock_batch_release(more);
	for (unsigned i = 1; i < n; i++) {
		assert_true(inproc_good(b[i], 500));
		tsock_batch_release(b[i]);
	}
	tsock_close(t);
	inproc_stop(&st);
}

static void *release_it(void *b)
{
	tsock_batch_release(b);
	return NULL;
}

static void a_claim_lasts_as_long_as_its_read_only_batches(void **state)
{
	struct inproc st;
	tsock_batch *b, *more;
	pthread_t thread;
	tsock *t;
	int err;

	(void)state;
	inproc_serve_n(&st, 500);
	t = inproc_join(64, 0);
	assert_int_equal(tsock_begin(t), 0);
	b = inproc_next(t);
	tsock_leave(t);
	assert_int_equal(inproc_consumers(&st), 1);
	/* The holder, and only he, is told. */
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(inproc_consumers(&st), 2);
	while (!(err = tsock_next(t, 20000, &more)))
		tsock_batch_release(more);
	assert_int_equal(err, TSOCK_EHELD);
	assert_non_null(strstr(tsock_errmsg(), "still held"));
	assert_true(inproc_good(b, 500));
	/* The thread that releases it says farewell. */
	assert_int_equal(pthread_create(&thread, NULL, release_it, b), 0);
	pthread_join(thread, NULL);
	assert_int_equal(inproc_consumers(&st), 1);
	tsock_batch_release(inproc_next(t));
	b = inproc_next(t);
	tsock_close(t);
	assert_int_equal(inproc_consumers(&st), 1);
	assert_true(inproc_good(b, 500));
	tsock_batch_release(b);
	assert_int_equal(inproc_consumers(&st), 0);
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

static void the_end_of_the_stream_has_its_code(void **state)
{
	struct tsock_serve_opts so = inproc_opts(100);
	struct job j = { .n = 100, .batch = 30, .epochs = 3 };
	uint64_t at = UINT64_MAX;
	struct inproc st;
	tsock *t;

	(void)state;
	so.epochs = 3;
	inproc_serve(&st, &so);
	t = inproc_join(30, 0);
	for (unsigned e = 0; e < 3; e++) {
		read_epoch(&j, t, &at);
		if (j.failed[0])
			fail_msg("%s", j.failed);
	}
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	assert_non_null(strstr(tsock_errmsg(), "3 epochs"));
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	assert_int_equal(inproc_consumers(&st), 0);
	tsock_close(t);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	inproc_stop(&st);
}

static void a_failed_stream_says_why(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t;
	int err;

	(void)state;
	inproc_serve_n(&st, 500);
	atomic_store(&st.upto, 100);
	t = inproc_join(10, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	tsock_serve_fail(st.s, "can't read /data/x.jpg: EIO");
	while (!(err = tsock_next(t, 20000, &b)))
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "/data/x.jpg"));
	assert_int_equal(tsock_begin(t), TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "/data/x.jpg"));
	atomic_store(&st.upto, UINT64_MAX);
	tsock_close(t);
	inproc_stop(&st);
}

static void a_long_reason_arrives_whole(void **state)
{
	char why[4001];
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	memset(why, 'w', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	inproc_serve_n(&st, 500);
	atomic_store(&st.upto, 0);
	t = inproc_join(10, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_serve_fail(st.s, why);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), why));
	atomic_store(&st.upto, UINT64_MAX);
	tsock_close(t);
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
		cmocka_unit_test(segments_and_now_and_leave),
		cmocka_unit_test(breaking_off_goes_on_at_the_next_epoch),
		cmocka_unit_test(an_epoch_that_was_rewound_is_begun_again),
		cmocka_unit_test(an_epoch_of_which_all_was_taken_is_finished),
		cmocka_unit_test(samples_are_skipped_without_being_waited_for),
		cmocka_unit_test(all_batches_of_some_epochs_can_be_kept),
		cmocka_unit_test(read_only_hoarders_get_an_error),
		cmocka_unit_test(
			a_claim_lasts_as_long_as_its_read_only_batches),
		cmocka_unit_test(nothing_to_read_is_eagain),
		cmocka_unit_test(begin_can_be_polled),
		cmocka_unit_test(the_end_of_the_stream_has_its_code),
		cmocka_unit_test(a_failed_stream_says_why),
		cmocka_unit_test(a_long_reason_arrives_whole),
		cmocka_unit_test(views_are_converted),
	};

	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
