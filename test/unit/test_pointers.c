/* SPDX-License-Identifier: MIT */
/*
 * test_pointers.c - every function of tsock.h with pointers that are NULL, and
 * what is handed out by a call that fails.
 *
 * The functions are those that its parts declare: one that no case here calls
 * is a failure.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/pointer_cases.h"
#include "test/lib/public_functions.h"

/* A server, a consumer of it, and a batch. */
static tsock_server *server;
static tsock *handle;
static tsock_batch *batch;
static char junk; /* what a call that fails must not leave there */

#define JUNK ((void *)&junk)

/* ---- one case per function ---- */

static void tsock_open_case(void)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t = JUNK;

	o.timeout_ms = 1;
	wrong(tsock_open(NULL, &o, &t));
	assert_null(t);
	t = JUNK;
	wrong(tsock_open("pointers", NULL, &t));
	assert_null(t);
	wrong(tsock_open("pointers", &o, NULL));
	t = JUNK;
	wrong(tsock_open("pointers", &o, &t)); /* batch_size 0 */
	assert_null(t);
	o.size = 0;
	t = JUNK;
	wrong(tsock_open("pointers", &o, &t));
	assert_null(t);
	o.size = sizeof(o);
	o.batch_size = 1;
	t = JUNK;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_null(t);
}

static void tsock_get_info_case(void)
{
	struct tsock_info info = { .size = sizeof(info) };

	wrong(tsock_get_info(NULL, &info));
	wrong(tsock_get_info(handle, NULL));
	info.size = 0;
	wrong(tsock_get_info(handle, &info));
}

static void tsock_get_field_case(void)
{
	struct tsock_field f;

	wrong(tsock_get_field(NULL, 0, &f));
	wrong(tsock_get_field(handle, 0, NULL));
}

ONLY(tsock_identity, wrong_is(tsock_identity(NULL), NULL))
ONLY(tsock_class_name, wrong_is(tsock_class_name(NULL, 0), NULL))
ONLY(tsock_begin, wrong(tsock_begin(NULL)))
ONLY(tsock_begin_timed, wrong(tsock_begin_timed(NULL, 0)))
ONLY(tsock_begin_from, wrong(tsock_begin_from(NULL, 0, 0)))

static void tsock_next_case(void)
{
	tsock_batch *b = JUNK;

	wrong(tsock_next(NULL, 0, &b));
	assert_null(b);
	wrong(tsock_next(handle, 0, NULL));
	/* All samples that were made are taken. */
	b = JUNK;
	assert_int_equal(tsock_next(handle, 0, &b), TSOCK_EAGAIN);
	assert_null(b);
}

ONLY(tsock_batch_count, wrong_is(tsock_batch_count(NULL), 0))
ONLY(tsock_batch_seq, wrong_is(tsock_batch_seq(NULL), UINT64_MAX))
ONLY(tsock_batch_epoch, wrong_is(tsock_batch_epoch(NULL), UINT64_MAX))
ONLY(tsock_batch_data, wrong_is(tsock_batch_data(NULL, 0), NULL))
ONLY(tsock_batch_data_mut, wrong_is(tsock_batch_data_mut(NULL, 0), NULL))

static void tsock_batch_dlpack_case(void)
{
	void *tensor = JUNK;

	wrong(tsock_batch_dlpack(NULL, 0, 1, &tensor));
	assert_null(tensor);
	wrong(tsock_batch_dlpack(batch, 0, 1, NULL));
	tensor = JUNK;
	wrong(tsock_batch_dlpack(batch, 9, 1, &tensor));
	assert_null(tensor);
}

ONLY(tsock_batch_use, wrong(tsock_batch_use(NULL, NULL)))

static void tsock_batch_convert_case(void)
{
	wrong(tsock_batch_convert(NULL, 0, JUNK, NULL));
	wrong(tsock_batch_convert(batch, 0, NULL, NULL));
}

ONLY(tsock_transport, wrong(tsock_transport(NULL)))
ONLY(tsock_batch_release, tsock_batch_release(NULL))
ONLY(tsock_epoch, wrong_is(tsock_epoch(NULL), UINT64_MAX))
ONLY(tsock_epoch_batches, wrong_is(tsock_epoch_batches(NULL), 0))
ONLY(tsock_leave, tsock_leave(NULL))
ONLY(tsock_leave_timed,
     assert_int_equal(tsock_leave_timed(NULL, 0), TSOCK_EARG))
ONLY(tsock_rewind, tsock_rewind(NULL))
ONLY(tsock_skip, wrong(tsock_skip(NULL, 1)))

static void tsock_position_case(void)
{
	uint64_t n;

	wrong(tsock_position(NULL, &n, &n));
	wrong(tsock_position(handle, NULL, &n));
	wrong(tsock_position(handle, &n, NULL));
}

ONLY(tsock_lost, wrong(tsock_lost(NULL)))

static void tsock_waits_for_case(void)
{
	char buf[TSOCK_WAITS_FOR];

	wrong(tsock_waits_for(NULL, 0, buf, sizeof(buf)));
	wrong(tsock_waits_for(handle, 0, NULL, sizeof(buf)));
	wrong(tsock_waits_for(handle, 0, buf, 0));
}

ONLY(tsock_missed, assert_int_equal(tsock_missed(NULL), 0))
ONLY(tsock_warning, assert_null(tsock_warning(NULL, 0, NULL)))
ONLY(tsock_resume, wrong(tsock_resume(NULL, 0, 0, 0)))

static void tsock_set_rank_case(void)
{
	const uint8_t job[TSOCK_JOB] = { 0 };

	wrong(tsock_set_rank(NULL, 0, 1, job));
	wrong(tsock_set_rank(handle, 0, 2, NULL));
}

ONLY(tsock_close, tsock_close(NULL))

static void tsock_query_case(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	wrong(tsock_query(NULL, 0, &st));
	wrong(tsock_query("pointers", 0, NULL));
	st.size = 0;
	wrong(tsock_query("pointers", 0, &st));
}

static void tsock_serve_geometry_case(void)
{
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	struct tsock_geometry g = { .size = sizeof(g) };

	wrong(tsock_serve_geometry(NULL, &g));
	wrong(tsock_serve_geometry(&o, NULL));
	g.size = 0;
	wrong(tsock_serve_geometry(&o, &g));
	g.size = sizeof(g);
	o.epoch_len = 1;
	o.nfields = 1;
	wrong(tsock_serve_geometry(&o, &g)); /* no fields */
}

static void tsock_serve_open_case(void)
{
	static const struct tsock_field field = { .name = "a",
						  .dtype = TSOCK_U8 };
	static const char *const unnamed[] = { NULL };
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s = JUNK;

	o.epoch_len = 1;
	o.nfields = 1;
	wrong(tsock_serve_open("other", &o, &s)); /* no fields */
	assert_null(s);
	o.fields = &field;
	wrong(tsock_serve_open(NULL, &o, &s));
	wrong(tsock_serve_open("other", NULL, &s));
	wrong(tsock_serve_open("other", &o, NULL));
	o.size = 0;
	s = JUNK;
	wrong(tsock_serve_open("other", &o, &s));
	assert_null(s);
	o.size = sizeof(o);
	o.nclasses = 1;
	s = JUNK;
	wrong(tsock_serve_open("other", &o, &s)); /* no classes */
	o.classes = unnamed;
	wrong(tsock_serve_open("other", &o, &s));
	assert_null(s);
	o.nclasses = 0;
	s = JUNK;
	assert_int_equal(tsock_serve_open("pointers", &o, &s), TSOCK_EEXIST);
	assert_null(s);
}

static void tsock_serve_claim_case(void)
{
	uint64_t first;

	wrong(tsock_serve_claim(NULL, 1, 0, &first));
	wrong(tsock_serve_claim(server, 1, 0, NULL));
}

static void tsock_serve_slot_case(void)
{
	wrong_is(tsock_serve_slot(NULL, 0, 0), NULL);
	wrong_is(tsock_serve_slot(server, 9, 0), NULL);
}

ONLY(tsock_serve_commit, tsock_serve_commit(NULL, 0, 1))

static void never(void *arg)
{
	(void)arg;
	fail();
}

static void tsock_serve_commit_gpu_case(void)
{
	struct tsock_gpu_samples g = TSOCK_GPU_SAMPLES_INIT;
	const void *data[TSOCK_MAX_FIELDS] = { NULL };

	g.release = never;
	wrong(tsock_serve_commit_gpu(server, 0, 1, &g)); /* no data */
	g.data = data;
	wrong(tsock_serve_commit_gpu(NULL, 0, 1, &g));
	wrong(tsock_serve_commit_gpu(server, 0, 1, NULL));
	wrong(tsock_serve_commit_gpu(server, 0, 0, &g));
	g.release = NULL;
	wrong(tsock_serve_commit_gpu(server, 0, 1, &g));
	g.release = never;
	g.size = 0;
	wrong(tsock_serve_commit_gpu(server, 0, 1, &g));
}

static void tsock_serve_fail_case(void)
{
	tsock_batch *b = JUNK;

	tsock_serve_fail(NULL, "why");
	tsock_serve_fail(server, NULL);
	assert_int_equal(tsock_next(handle, 0, &b), TSOCK_ESTREAM);
	assert_null(b);
}

ONLY(tsock_serve_stopped, wrong(tsock_serve_stopped(NULL)))
ONLY(tsock_stop, wrong(tsock_stop(NULL, 0, 0)))
ONLY(tsock_stopped, wrong(tsock_stopped(NULL, 0)))
ONLY(tsock_serve_count, tsock_serve_count(NULL, 1, 1))
ONLY(tsock_serve_bad_files, tsock_serve_bad_files(NULL, 1))

static void tsock_serve_warn_case(void)
{
	wrong(tsock_serve_warn(NULL, 0, "text"));
	wrong(tsock_serve_warn(server, 0, NULL));
}

static void tsock_serve_doing_case(void)
{
	tsock_serve_doing(NULL, "reading");
	tsock_serve_doing(server, NULL);
}

static void tsock_serve_stats_case(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	wrong(tsock_serve_stats(NULL, &st));
	wrong(tsock_serve_stats(server, NULL));
	st.size = 0;
	wrong(tsock_serve_stats(server, &st));
}

static void tsock_serve_connected_case(void)
{
	wrong(tsock_serve_connected(NULL));
	assert_int_equal(tsock_serve_connected(server), 1);
}

static void tsock_serve_end_after_case(void)
{
	wrong(tsock_serve_end_after(NULL, 0));
	wrong(tsock_serve_end_after(server, UINT64_MAX));
}

ONLY(tsock_serve_drained, wrong(tsock_serve_drained(NULL)))
ONLY(tsock_serve_stop, tsock_serve_stop(NULL))
ONLY(tsock_serve_close, tsock_serve_close(NULL))

/* ---- all of them ---- */

static const struct pointer_case cases[] = {
	CASE(tsock_open),
	CASE(tsock_get_info),
	CASE(tsock_get_field),
	CASE(tsock_class_name),
	CASE(tsock_identity),
	CASE(tsock_begin_timed),
	CASE(tsock_begin_from),
	CASE(tsock_begin),
	CASE(tsock_next),
	CASE(tsock_batch_count),
	CASE(tsock_batch_seq),
	CASE(tsock_batch_epoch),
	CASE(tsock_batch_data),
	CASE(tsock_batch_data_mut),
	CASE(tsock_batch_dlpack),
	CASE(tsock_batch_use),
	CASE(tsock_batch_convert),
	CASE(tsock_transport),
	CASE(tsock_batch_release),
	CASE(tsock_epoch),
	CASE(tsock_epoch_batches),
	CASE(tsock_leave),
	CASE(tsock_leave_timed),
	CASE(tsock_rewind),
	CASE(tsock_skip),
	CASE(tsock_position),
	CASE(tsock_lost),
	CASE(tsock_waits_for),
	CASE(tsock_missed),
	CASE(tsock_warning),
	CASE(tsock_resume),
	CASE(tsock_set_rank),
	CASE(tsock_close),
	CASE(tsock_query),
	CASE(tsock_serve_geometry),
	CASE(tsock_serve_open),
	CASE(tsock_serve_claim),
	CASE(tsock_serve_slot),
	CASE(tsock_serve_commit),
	CASE(tsock_serve_commit_gpu),
	CASE(tsock_serve_count),
	CASE(tsock_serve_stopped),
	CASE(tsock_stop),
	CASE(tsock_stopped),
	CASE(tsock_serve_doing),
	CASE(tsock_serve_bad_files),
	CASE(tsock_serve_warn),
	CASE(tsock_serve_stats),
	CASE(tsock_serve_connected),
	CASE(tsock_serve_end_after),
	CASE(tsock_serve_drained),
	CASE(tsock_serve_stop),
	/* the stream's end */
	CASE(tsock_serve_fail),
	CASE(tsock_serve_close),
	{ NULL, NULL },
};

static void run_all(const struct pointer_case *of)
{
	for (; of->name; of++)
		of->run();
}

static void *fill_one(void *arg)
{
	uint64_t first;

	(void)arg;
	if (tsock_serve_claim(server, 1, -1, &first) != 1)
		abort();
	*(uint8_t *)tsock_serve_slot(server, 0, first) = 7;
	tsock_serve_commit(server, first, 1);
	return NULL;
}

static void null_pointers_never_crash(void **state)
{
	static const struct tsock_field field = { .name = "a",
						  .dtype = TSOCK_U8 };
	struct tsock_serve_opts so = TSOCK_SERVE_OPTS_INIT;
	struct tsock_opts o = TSOCK_OPTS_INIT;
	pthread_t worker;

	(void)state;
	so.epoch_len = 100;
	so.nfields = 1;
	so.fields = &field;
	assert_int_equal(tsock_serve_open("pointers", &so, &server), 0);
	o.batch_size = 1;
	assert_int_equal(tsock_open("pointers", &o, &handle), 0);
	assert_int_equal(tsock_begin(handle), 0);
	assert_int_equal(pthread_create(&worker, NULL, fill_one, NULL), 0);
	assert_int_equal(tsock_next(handle, -1, &batch), 0);
	pthread_join(worker, NULL);
	run_all(pointer_cases_alone);
	run_all(cases);
	assert_int_equal(*(const uint8_t *)tsock_batch_data(batch, 0), 7);
	tsock_batch_release(batch);
	tsock_close(handle);
	tsock_serve_close(server);
}

static bool has_case(const struct pointer_case *of, const char *name,
		     size_t len)
{
	for (; of->name; of++)
		if (strlen(of->name) == len && !strncmp(of->name, name, len))
			return true;
	return false;
}

static void must_have_a_case(const char *name, size_t len)
{
	if (!has_case(cases, name, len) &&
	    !has_case(pointer_cases_alone, name, len))
		fail_msg("no case for %.*s", (int)len, name);
}

static unsigned count(const struct pointer_case *of)
{
	unsigned n = 0;

	while (of[n].name)
		n++;
	return n;
}

static void every_function_of_the_header_has_a_case(void **state)
{
	(void)state;
	assert_int_equal(public_functions(must_have_a_case),
			 count(cases) + count(pointer_cases_alone));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_pointers_never_crash),
		cmocka_unit_test(every_function_of_the_header_has_a_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
