/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_ends.c - what a consumer is told when its stream ends, by its
 * last epoch or by an error.
 */
#include <string.h>

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_the_stream_has_its_code),
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
