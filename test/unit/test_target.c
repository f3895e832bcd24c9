/* SPDX-License-Identifier: MIT */
/*
 * test_target.c - what becomes of a sample whose file can't be read or decoded.
 */
#include "run/target.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "test/lib/worker_fixture.h"

/* The five files' sampler and maker, and the target of sample seq. */
struct searched {
	struct tsi_sampler *s;
	struct tsi_maker *m;
	struct tsi_target t;
};

static void begin(struct searched *x, uint64_t seq)
{
	worker_put_five();
	x->s = worker_open_sampler();
	assert_int_equal(tsi_maker_create(x->s, NULL, &x->m), 0);
	assert_int_equal(tsi_target_first(&x->t, x->s, x->m, seq), 0);
	x->t.read_ns = tsi_badfiles_now();
}

static void finish(struct searched *x)
{
	tsi_maker_destroy(x->m);
	tsi_sampler_close(x->s);
}

static bool is_remembered(const struct searched *x, uint64_t file)
{
	struct tsi_image_extent e;

	return tsi_badfiles_look(tsi_sampler_badfiles(x->s), file, &e) ==
	       TSI_BAD_WHOLE;
}

static uint64_t listed(const struct searched *x)
{
	return tsi_badlist_count(tsi_sampler_badlist(x->s));
}

static int read_failed(struct searched *x, int err)
{
	struct tsi_outcome o = { .came = TSI_CAME_UNREAD, .err = err };

	return tsi_target_next(&x->t, x->s, x->m, &o);
}

static int undecodable(struct searched *x, const void *data, size_t len)
{
	struct tsi_outcome o = { .came = TSI_CAME_UNDECODABLE,
				 .reason = "ends too early" };

	o.measure_err = tsi_maker_measure(
		x->m, &(struct tsi_maker_bytes){ data, len, 0 }, &o.extent);
	return tsi_target_next(&x->t, x->s, x->m, &o);
}

static void a_file_that_cannot_be_opened_is_bad_for_all(void **state)
{
	static const int blamed[] = { ENOENT, EACCES, EISDIR, ELOOP };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct searched x;

		begin(&x, 2);
		assert_int_equal(read_failed(&x, blamed[i]), 0);
		assert_int_equal(x.t.file, 3);
		assert_int_equal(x.t.id.index, 2);
		assert_true(is_remembered(&x, 2));
		assert_int_equal(listed(&x), 1);
		finish(&x);
	}
}

/* Its next bytes may be good. */
static void a_file_that_was_replaced_is_bad_for_one_sample(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 4);
	/* The only one of its class: the next try is any other. */
	assert_int_equal(read_failed(&x, ESTALE), 0);
	assert_in_range(x.t.file, 0, 3);
	assert_false(is_remembered(&x, 4));
	assert_int_equal(listed(&x), 1);
	finish(&x);
}

static void too_few_descriptors_end_the_stream(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 0);
	assert_int_equal(read_failed(&x, EMFILE), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "a/0.png: "));
	assert_non_null(strstr(tsock_errmsg(), "ulimit -n"));
	assert_int_equal(read_failed(&x, ENFILE), TSOCK_ESYS);
	assert_int_equal(x.t.file, 0);
	assert_int_equal(listed(&x), 0);
	finish(&x);
}

static void a_disk_that_fails_is_tried_four_times(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read_failed(&x, EIO), 0);
		assert_int_equal(x.t.file, 1);
	}
	assert_int_equal(read_failed(&x, EIO), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "a/1.png: "));
	assert_non_null(strstr(tsock_errmsg(), "4 times in a row"));
	assert_int_equal(listed(&x), 0);
	finish(&x);
}

/* Of FUSE, whose process has ended. */
static void a_file_system_that_is_gone_ends_the_stream_at_once(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 1);
	assert_int_equal(read_failed(&x, ENOTCONN), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "a/1.png: the file system"));
	assert_non_null(strstr(tsock_errmsg(), "mount it again"));
	assert_int_equal(listed(&x), 0);
	finish(&x);
}

/* The next file is tried as often again. */
static void each_file_has_its_own_tries(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(read_failed(&x, EIO), 0);
	assert_int_equal(read_failed(&x, ENOENT), 0);
	assert_int_equal(x.t.file, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(read_failed(&x, EIO), 0);
	assert_int_equal(read_failed(&x, EIO), TSOCK_ESYS);
	finish(&x);
}

/* c/0 is all that its class has. */
static void a_class_is_lost_with_its_last_file(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 4);
	assert_false(tsi_badfiles_class_lost(tsi_sampler_badfiles(x.s), 4));
	assert_int_equal(read_failed(&x, ENOENT), 0);
	assert_true(tsi_badfiles_class_lost(tsi_sampler_badfiles(x.s), 4));
	assert_false(tsi_badfiles_class_lost(tsi_sampler_badfiles(x.s), 0));
	finish(&x);
}

static void a_file_without_pixels_is_bad_for_all(void **state)
{
	struct searched x;

	(void)state;
	begin(&x, 3);
	assert_int_equal(undecodable(&x, worker_png, sizeof(worker_png) / 2),
			 0);
	assert_int_equal(x.t.file, 2);
	assert_true(is_remembered(&x, 3));
	finish(&x);
}

/* Whatever was wrong is an error that names the file, and nothing is listed. */
static void with_raise_the_file_is_the_error(void **state)
{
	struct searched x;

	(void)state;
	worker_options.on_error = TSI_RAISE;
	begin(&x, 2);
	assert_int_equal(read_failed(&x, ESTALE), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b/0.png: "));
	assert_int_equal(read_failed(&x, EACCES), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b/0.png: "));
	assert_int_equal(undecodable(&x, worker_png, sizeof(worker_png) / 2),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b/0.png: ends too early"));
	assert_int_equal(x.t.file, 2);
	assert_int_equal(listed(&x), 0);
	finish(&x);
}

#define CASE(name) \
	cmocka_unit_test_setup_teardown(name, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_that_cannot_be_opened_is_bad_for_all),
		CASE(a_file_that_was_replaced_is_bad_for_one_sample),
		CASE(too_few_descriptors_end_the_stream),
		CASE(a_disk_that_fails_is_tried_four_times),
		CASE(a_file_system_that_is_gone_ends_the_stream_at_once),
		CASE(each_file_has_its_own_tries),
		CASE(a_class_is_lost_with_its_last_file),
		CASE(a_file_without_pixels_is_bad_for_all),
		CASE(with_raise_the_file_is_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
