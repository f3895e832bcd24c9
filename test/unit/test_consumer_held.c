/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_held.c - batches that a consumer keeps: in writable memory as
 * many as it likes, in read-only memory until the stream needs their room.
 */
#include <poll.h>
#include <string.h>

#include "test/lib/epoch_job.h"
#include "test/lib/sanitized.h"

static void all_batches_of_some_epochs_can_be_kept(void **state)
{
	enum { BATCHES = 4 * 10 };
	tsock_batch *b[BATCHES], *none;
	unsigned n = 0;
	struct inproc st;
	struct epoch_job other = {
		.n = 500, .batch = 96, .epochs = 4, .flags = 0
	};
	struct tsock_serve_opts o = inproc_opts(500);
	tsock *t;

	(void)state;
	/* Start together: one that joined later would wait at the end. */
	o.min_consumers = 2;
	inproc_serve(&st, &o);
	t = inproc_join(50, TSOCK_WRITABLE);
	epoch_job_start(&other);
	for (unsigned e = 0; e < 4; e++) {
		assert_int_equal(tsock_begin(t), 0);
		for (unsigned i = 0; i < 10; i++)
			b[n++] = inproc_next(t);
		assert_int_equal(tsock_next(t, 0, &none), TSOCK_EEPOCH);
	}
	/* Nobody waits for us, though we hold everything. */
	epoch_job_finish(&other);
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

static void read_with_one_in_hand(uint64_t n, uint32_t batch, unsigned epochs)
{
	tsock *t = inproc_join(batch, 0);
	tsock_batch *held = NULL, *b;

	for (unsigned e = 0; e < epochs; e++) {
		uint64_t left = n;

		assert_int_equal(tsock_begin(t), 0);
		while (left) {
			b = inproc_next(t);
			assert_true(inproc_good(b, n));
			left -= tsock_batch_count(b);
			tsock_batch_release(held);
			held = b;
		}
		assert_int_equal(tsock_next(t, 0, &b), TSOCK_EEPOCH);
	}
	tsock_batch_release(held);
	tsock_close(t);
}

/* For a small data set the ring has little more than two epochs; that is enough
 * for all batches that the stream allows. */
static void a_batch_is_in_hand_while_the_next_is_taken(void **state)
{
	static const uint64_t length[] = { 5, 100, 511, 512, 700 };
	static const uint32_t batch[] = { 3, 99, 100, 350, 511, 512 };

	(void)state;
	for (unsigned i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		uint64_t n = length[i];
		struct tsock_serve_opts o = inproc_opts(n);
		struct tsock_info info = { .size = sizeof(info) };
		struct inproc st;
		tsock *t;

		o.ring = o.max_batch = 0;
		inproc_serve(&st, &o);
		t = inproc_join(1, 0);
		assert_int_equal(tsock_get_info(t, &info), 0);
		assert_int_equal(info.max_batch, 512);
		/* Up to 63 more let images be mapped twice. */
		assert_true(info.capacity <= (n > 512 ? 2 : 3) * n + 64);
		assert_true(info.join_window >= n);
		tsock_close(t);
		/* Two batch sizes for each length where reading is slow. */
		for (unsigned k = SANITIZED ? i % 3 : 0;
		     k < sizeof(batch) / sizeof(batch[0]);
		     k += SANITIZED ? 3 : 1)
			read_with_one_in_hand(n, batch[k], 4);
		inproc_stop(&st);
	}
}

static void *release_it(void *b)
{
	tsock_batch_release(b);
	return NULL;
}

/* The producer sees it a moment after the release. */
static void await_consumers(struct inproc *st, uint64_t n)
{
	unsigned ms = 0;

	while (inproc_consumers(st) != n && ms++ < 20000)
		poll(NULL, 0, 1);
	assert_int_equal(inproc_consumers(st), n);
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
	/* The thread that releases it leaves. */
	assert_int_equal(pthread_create(&thread, NULL, release_it, b), 0);
	pthread_join(thread, NULL);
	await_consumers(&st, 1);
	tsock_batch_release(inproc_next(t));
	b = inproc_next(t);
	tsock_close(t);
	assert_int_equal(inproc_consumers(&st), 1);
	assert_true(inproc_good(b, 500));
	tsock_batch_release(b);
	await_consumers(&st, 0);
	inproc_stop(&st);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_batches_of_some_epochs_can_be_kept),
		cmocka_unit_test(read_only_hoarders_get_an_error),
		cmocka_unit_test(a_batch_is_in_hand_while_the_next_is_taken),
		cmocka_unit_test(
			a_claim_lasts_as_long_as_its_read_only_batches),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
