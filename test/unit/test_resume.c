/* SPDX-License-Identifier: MIT */
/*
 * test_resume.c - going on at a saved position: tsock_position() and
 * tsock_resume().
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test/lib/inproc.h"
#include "test/lib/served.h"

#define N 1000
#define RING 128
#define BATCH 10

static struct served v;

static int serve(void **state)
{
	(void)state;
	served_start_as(&v, "resume", N, RING, 16, "kind=test\n");
	return 0;
}

static int serve_no_more(void **state)
{
	(void)state;
	served_stop(&v);
	return 0;
}

static tsock *open_as(uint32_t dtype, uint32_t rank, uint32_t world)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = BATCH;
	o.dtype = dtype;
	o.layout = dtype ? TSOCK_CHW : TSOCK_HWC;
	o.normalize = dtype ? TSOCK_UNIT : TSOCK_RAW;
	o.rank = rank;
	o.world = world;
	assert_int_equal(tsock_open("resume", &o, &t), 0);
	return t;
}

/* The next batch has these samples. */
static void next_is(tsock *t, uint64_t seq, uint64_t count)
{
	tsock_batch *b;

	assert_int_equal(tsock_next(t, 20000, &b), 0);
	assert_int_equal(tsock_batch_seq(b), seq);
	assert_int_equal(tsock_batch_count(b), count);
	assert_true(served_good(b));
	tsock_batch_release(b);
}

static void read_some(tsock *t, unsigned batches)
{
	tsock_batch *b;

	while (batches--) {
		assert_int_equal(tsock_next(t, 20000, &b), 0);
		tsock_batch_release(b);
	}
}

static void is_at(tsock *t, uint64_t start, uint64_t samples)
{
	uint64_t s, n;

	assert_int_equal(tsock_position(t, &s, &n), 0);
	assert_int_equal(s, start);
	assert_int_equal(n, samples);
}

static void a_position_follows_the_batches(void **state)
{
	tsock *t = open_as(0, 0, 1);
	uint64_t s, n;

	(void)state;
	assert_int_equal(tsock_position(t, &s, &n), TSOCK_EARG);
	assert_int_equal(tsock_begin(t), 0);
	is_at(t, 0, 0);
	read_some(t, 7);
	is_at(t, 0, 70);
	read_some(t, 93);
	is_at(t, 0, N);
	assert_int_equal(tsock_begin(t), 0);
	is_at(t, N, 0);
	read_some(t, 3);
	is_at(t, N, 30);
	tsock_leave(t);
	is_at(t, N, 30);
	tsock_rewind(t);
	is_at(t, N, 0);
	tsock_close(t);
}

/* In the ring's memory of before there are other samples. */
static void a_reader_alone_takes_the_stream_back(void **state)
{
	tsock *t = open_as(0, 0, 1), *u = open_as(0, 0, 1);

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	read_some(t, 70);
	tsock_leave(t);
	assert_int_equal(tsock_resume(u, 0, 130, 20000), 0);
	assert_int_equal(tsock_epoch(u), 0);
	is_at(u, 0, 130);
	for (uint64_t seq = 130; seq < N; seq += BATCH)
		next_is(u, seq, BATCH);
	assert_int_equal(tsock_begin(u), 0);
	next_is(u, N, BATCH);
	tsock_close(u);
	tsock_close(t);
}

static void a_reader_alone_takes_the_stream_ahead(void **state)
{
	tsock *t = open_as(0, 0, 1);

	(void)state;
	assert_int_equal(tsock_resume(t, 70 * N, 995, 20000), 0);
	assert_int_equal(tsock_epoch(t), 70);
	next_is(t, 70 * N + 995, 5);
	assert_int_equal(tsock_begin(t), 0);
	next_is(t, 71 * N, BATCH);
	/* And where an epoch was over, the next one begins. */
	assert_int_equal(tsock_resume(t, 3 * N, N, 20000), 0);
	next_is(t, 4 * N, BATCH);
	tsock_close(t);
}

/* All samples of 2^48 have their place. */
static void an_epoch_may_be_longer_than_any_data_set(void **state)
{
	uint64_t n = UINT64_C(1) << 48;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct served large;
	tsock *t;

	(void)state;
	served_start_as(&large, "large", n, RING, 16, "kind=test\n");
	o.batch_size = BATCH;
	assert_int_equal(tsock_open("large", &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	next_is(t, 0, BATCH);
	assert_int_equal(tsock_resume(t, 0, n / 2 + 3, 20000), 0);
	next_is(t, n / 2 + 3, BATCH);
	assert_int_equal(tsock_resume(t, 70 * n, n - 14, 20000), 0);
	assert_int_equal(tsock_epoch(t), 70);
	is_at(t, 70 * n, n - 14);
	next_is(t, 71 * n - 14, BATCH);
	next_is(t, 71 * n - 4, 4);
	assert_int_equal(tsock_begin(t), 0);
	next_is(t, 71 * n, BATCH);
	tsock_close(t);
	served_stop(&large);
}

static void a_view_goes_back_with_the_stream(void **state)
{
	tsock *t = open_as(TSOCK_F32, 0, 1);
	tsock_batch *b;

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	read_some(t, 60);
	assert_int_equal(tsock_resume(t, 0, 250, 20000), 0);
	for (uint64_t seq = 250; seq < 900; seq += BATCH) {
		const float *p;

		assert_int_equal(tsock_next(t, 20000, &b), 0);
		assert_int_equal(tsock_batch_seq(b), seq);
		p = tsock_batch_data(b, 0);
		for (unsigned i = 0; i < BATCH; i++)
			assert_true(p[i * SERVED_BYTES] ==
				    (float)served_pixel(seq + i) / 255.0f);
		tsock_batch_release(b);
	}
	tsock_close(t);
}

static void beside_others_it_is_a_reason(void **state)
{
	tsock *t = open_as(0, 0, 1), *u = open_as(0, 0, 1);

	(void)state;
	assert_int_equal(tsock_begin(t), 0);
	read_some(t, 50);
	assert_int_equal(tsock_resume(u, 0, 20, 20000), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "sample 20"));
	assert_non_null(strstr(tsock_errmsg(), "1 other consumer, "));
	/* What is held is given, and the handle is as good as before. */
	assert_int_equal(tsock_resume(u, 0, 500, 20000), 0);
	next_is(u, 500, BATCH);
	next_is(t, 500, BATCH);
	/* When the other one has left it goes. */
	tsock_close(t);
	assert_int_equal(tsock_resume(u, 0, 20, 20000), 0);
	next_is(u, 20, BATCH);
	tsock_close(u);
}

static void wrong_positions_are_refused(void **state)
{
	tsock *t = open_as(0, 0, 1);

	(void)state;
	assert_int_equal(tsock_resume(NULL, 0, 0, 0), TSOCK_EARG);
	assert_int_equal(tsock_resume(t, 0, N + 1, 0), TSOCK_EARG);
	assert_int_equal(tsock_resume(t, UINT64_MAX, 1, 0), TSOCK_EARG);
	assert_int_equal(tsock_resume(t, UINT64_C(1) << 61, 1, 20000),
			 TSOCK_EREFUSED);
	assert_int_equal(tsock_begin(t), 0);
	next_is(t, 0, BATCH);
	tsock_close(t);
}

struct rank {
	pthread_t thread;
	uint32_t rank;
	uint64_t samples, first, epoch_samples;
	int err;
};

static void *run_rank(void *arg)
{
	struct rank *k = arg;
	tsock *t = open_as(0, k->rank, 2);
	tsock_batch *b;

	k->err = tsock_resume(t, 2 * N, k->samples, 20000);
	while (!k->err && !(k->err = tsock_next(t, 20000, &b))) {
		if (!k->epoch_samples)
			k->first = tsock_batch_seq(b);
		k->epoch_samples += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	if (k->err == TSOCK_EEPOCH)
		k->err = tsock_begin(t);
	tsock_close(t);
	return NULL;
}

static void run_ranks(struct rank k[2], uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < 2; i++) {
		k[i] = (struct rank){ .rank = i, .samples = i ? b : a };
		assert_int_equal(
			pthread_create(&k[i].thread, NULL, run_rank, &k[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(k[i].thread, NULL);
}

static void the_ranks_of_a_job_go_on_together(void **state)
{
	struct rank k[2];

	(void)state;
	run_ranks(k, 420, 420);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(k[i].err, 0);
		assert_int_equal(k[i].first, 2 * N + 420 + i * BATCH);
		assert_int_equal(k[i].epoch_samples, (N - 420) / 2);
	}
	/* At different samples they would not read one epoch. */
	run_ranks(k, 420, 440);
	assert_true(k[0].err == TSOCK_EREFUSED || k[1].err == TSOCK_EREFUSED);
}

static void a_stream_that_is_another_each_time_has_no_positions(void **state)
{
	struct served w;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_info info = { .size = sizeof(info) };
	tsock *t;

	(void)state;
	served_start(&w, "changing", N, RING, 16);
	o.batch_size = BATCH;
	assert_int_equal(tsock_open("changing", &o, &t), 0);
	assert_int_equal(tsock_get_info(t, &info), 0);
	assert_int_equal(info.resumable, 0);
	assert_int_equal(tsock_resume(t, 0, 10, 20000), TSOCK_ENOTSUP);
	tsock_close(t);
	served_stop(&w);
}

#define STREAM_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, serve, serve_no_more)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM_TEST(a_position_follows_the_batches),
		STREAM_TEST(a_reader_alone_takes_the_stream_back),
		STREAM_TEST(a_reader_alone_takes_the_stream_ahead),
		cmocka_unit_test(an_epoch_may_be_longer_than_any_data_set),
		STREAM_TEST(a_view_goes_back_with_the_stream),
		STREAM_TEST(beside_others_it_is_a_reason),
		STREAM_TEST(wrong_positions_are_refused),
		STREAM_TEST(the_ranks_of_a_job_go_on_together),
		cmocka_unit_test(
			a_stream_that_is_another_each_time_has_no_positions),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests_name("resume", tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
