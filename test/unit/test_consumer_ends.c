/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_ends.c - what a consumer is told when its stream ends, by its
 * last epoch or by an error.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "serve/server.h"
#include "test/lib/epoch_job.h"

static void the_end_of_the_stream_has_its_code(void **state)
{
	struct tsock_serve_opts so = inproc_opts(100);
	struct epoch_job j = { .n = 100, .batch = 30, .epochs = 3 };
	uint64_t at = UINT64_MAX;
	struct inproc st;
	tsock *t;

	(void)state;
	so.epochs = 3;
	inproc_serve(&st, &so);
	t = inproc_join(30, 0);
	for (unsigned e = 0; e < 3; e++) {
		epoch_job_read(&j, t, &at);
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

/* Samples that this thread makes. */
static void make_samples(tsock_server *s, unsigned n)
{
	uint64_t first;

	assert_int_equal(tsock_serve_claim(s, n, 20000, &first), n);
	tsock_serve_commit(s, first, n);
}

static void read_samples(tsock *t, uint64_t n)
{
	while (n) {
		tsock_batch *b = inproc_next(t);

		n -= tsock_batch_count(b);
		tsock_batch_release(b);
	}
}

static void the_end_may_be_decided_while_it_is_read(void **state)
{
	struct epoch_job j = { .n = 1000, .batch = 30 };
	struct tsock_info info = { .size = sizeof(info) };
	uint64_t at = 1000;
	struct inproc st;
	tsock *t, *u;

	(void)state;
	inproc_serve_n(&st, 1000);
	t = inproc_join(30, 0);
	u = inproc_join(7, 0);
	assert_int_equal(tsock_begin(t), 0);
	read_samples(t, 90);
	assert_int_equal(tsock_serve_end_after(st.s, 1), 1);
	assert_int_equal(tsock_serve_end_after(st.s, 2), 1);
	read_samples(t, 910);
	assert_int_equal(tsock_serve_drained(st.s), 0);
	epoch_job_read(&j, t, &at);
	assert_string_equal(j.failed, "");
	assert_int_equal(at, 2000);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	assert_non_null(strstr(tsock_errmsg(), "after 2 epochs"));
	assert_int_equal(tsock_serve_drained(st.s), 1);
	/* This handle was opened before the end was decided. */
	assert_int_equal(tsock_begin(u), TSOCK_EENDED);
	tsock_close(t);
	tsock_close(u);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_get_info(t, &info), 0);
	assert_int_equal(info.epochs, 2);
	tsock_close(t);
	inproc_stop(&st);
}

/* The reader has begun an epoch of which no sample was handed out. */
static void who_waits_for_an_epoch_that_is_no_more_is_told(void **state)
{
	struct tsock_serve_opts so = inproc_opts(100);
	tsock_server *s;
	tsock_batch *b;
	tsock *t;

	(void)state;
	assert_int_equal(tsock_serve_open("unit", &so, &s), 0);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_begin(t), 0);
	make_samples(s, 100);
	read_samples(t, 100);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EEPOCH);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EAGAIN);
	assert_int_equal(tsock_serve_end_after(s, 0), 0);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_EENDED);
	assert_non_null(strstr(tsock_errmsg(), "after 1 epochs"));
	assert_int_equal(tsock_serve_drained(s), 1);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	tsock_serve_stop(s);
	tsock_serve_close(s);
}

/* One is in an epoch, and another one waits for the next. */
static void close_with_one_who_waits(bool fails, int told)
{
	struct tsock_serve_opts so = inproc_opts(1000);
	tsock_server *s;
	tsock *t, *waits;
	tsock_batch *b;

	assert_int_equal(tsock_serve_open("unit", &so, &s), 0);
	t = inproc_join(20, 0);
	assert_int_equal(tsock_begin(t), 0);
	make_samples(s, 512);
	read_samples(t, 500);
	make_samples(s, 48); /* over the epoch's first ones */
	waits = inproc_join(20, 0);
	assert_int_equal(tsock_begin(waits), 0);
	if (fails)
		tsock_serve_fail(s, "as the test wants it");
	tsock_serve_stop(s);
	tsock_serve_close(s);
	assert_int_equal(tsock_next(waits, 20000, &b), told);
	read_samples(t, 60);
	/* No sample was made beyond these. */
	assert_int_equal(tsock_next(t, 20000, &b), told);
	tsock_close(waits);
	tsock_close(t);
}

static void a_closed_stream_has_what_was_made_and_no_more(void **state)
{
	(void)state;
	close_with_one_who_waits(false, TSOCK_ELOST);
	close_with_one_who_waits(true, TSOCK_ESTREAM);
}

/* Threads that make samples are told, too. */
static void whoever_claims_hears_of_the_end(void **state)
{
	struct tsock_serve_opts so = inproc_opts(100);
	tsock_server *s;
	uint64_t first;
	tsock *t;

	(void)state;
	assert_int_equal(tsock_serve_open("unit", &so, &s), 0);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_begin(t), 0);
	make_samples(s, 50);
	assert_int_equal(tsock_serve_end_after(s, 0), 0);
	make_samples(s, 50);
	assert_int_equal(tsock_serve_claim(s, 1, -1, &first), TSOCK_EENDED);
	read_samples(t, 100);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	tsock_serve_stop(s);
	tsock_serve_close(s);
}

static void a_stream_begins_with_the_epoch_that_is_asked_for(void **state)
{
	struct epoch_job j = { .n = 700, .batch = 30 };
	struct tsock_serve_opts so = inproc_opts(700);
	uint64_t at = UINT64_MAX;
	struct inproc st;
	tsock *t;

	(void)state;
	so.first_epoch = 5;
	so.epochs = 7;
	inproc_serve(&st, &so);
	t = inproc_join(30, 0);
	epoch_job_read(&j, t, &at);
	assert_string_equal(j.failed, "");
	assert_int_equal(at, 6 * 700);
	assert_int_equal(tsock_epoch(t), 5);
	epoch_job_read(&j, t, &at);
	assert_string_equal(j.failed, "");
	assert_int_equal(at, 7 * 700);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	inproc_stop(&st);
	so.epochs = 5;
	assert_int_equal(tsock_serve_open("unit", &so, &st.s), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "epoch 5"));
	so.epochs = 0;
	so.first_epoch = UINT64_MAX;
	assert_int_equal(tsock_serve_open("unit", &so, &st.s), TSOCK_EARG);
}

static void who_comes_first_waits_for_others_for_a_time(void **state)
{
	struct tsock_serve_opts so = inproc_opts(100);
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	so.min_consumers = 2;
	so.min_wait_ms = 1;
	inproc_serve(&st, &so);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	tsock_close(t);
	inproc_stop(&st);
	so.min_wait_ms = 60000;
	inproc_serve(&st, &so);
	t = inproc_join(30, 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 300, &b), TSOCK_EAGAIN);
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

/* Its answer would be waited for in vain. */
static void a_producer_that_has_closed_is_told_nothing(void **state)
{
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 500);
	t = inproc_join(10, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(inproc_next(t));
	inproc_stop(&st);
	assert_int_equal(tsock_next(NULL, 0, NULL), TSOCK_EARG);
	tsock_close(t);
	assert_non_null(strstr(tsock_errmsg(), "tsock_next"));
}

/*
 * Both hear it: the worker from its claim.  Memory that can't be reserved is
 * another file in the place of the ring's.
 */
static void a_stream_whose_memory_runs_out_says_how_much_is_there(void **state)
{
	struct tsock_serve_opts so = inproc_opts(1000);
	struct tsock_field f = { .name = "image",
				 .dtype = TSOCK_U8,
				 .ndim = 1,
				 .shape = { 1 << 20 } };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	uint64_t first;
	tsock_server *s;
	tsock_batch *b;
	tsock *t;

	(void)state;
	so.fields = &f;
	so.nfields = 1;
	so.ring = 40;
	so.max_batch = 8;
	assert_int_equal(tsock_serve_open("unit", &so, &s), 0);
	t = inproc_join(8, 0);
	assert_int_equal(tsock_begin(t), 0);
	make_samples(s, 8);
	fd = s->views.view[0].ring.data[0].fd;
	assert_int_equal(dup3(null, fd, O_CLOEXEC), fd);
	assert_int_equal(tsock_serve_claim(s, 8, 20000, &first), TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "the ring of field image (8.4 "
					       "of its 41.9 MB are there)"));
	assert_int_equal(tsock_serve_claim(s, 8, 0, &first), TSOCK_ESTREAM);
	/* What is there can be read. */
	b = inproc_next(t);
	assert_int_equal(tsock_batch_count(b), 8);
	tsock_batch_release(b);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "the ring of field image"));
	tsock_close(t);
	tsock_serve_close(s);
	close(null);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_stream_whose_memory_runs_out_says_how_much_is_there),
		cmocka_unit_test(the_end_of_the_stream_has_its_code),
		cmocka_unit_test(the_end_may_be_decided_while_it_is_read),
		cmocka_unit_test(
			who_waits_for_an_epoch_that_is_no_more_is_told),
		cmocka_unit_test(a_closed_stream_has_what_was_made_and_no_more),
		cmocka_unit_test(whoever_claims_hears_of_the_end),
		cmocka_unit_test(
			a_stream_begins_with_the_epoch_that_is_asked_for),
		cmocka_unit_test(who_comes_first_waits_for_others_for_a_time),
		cmocka_unit_test(a_failed_stream_says_why),
		cmocka_unit_test(a_long_reason_arrives_whole),
		cmocka_unit_test(a_producer_that_has_closed_is_told_nothing),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
