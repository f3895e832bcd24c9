/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_refused.c - what a consumer asks for and is refused, and what
 * it may ask about a stream.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "test/lib/inproc.h"

static void what_is_served_can_be_asked(void **state)
{
	struct tsock_serve_opts so = inproc_opts(500);
	char text[1000][16];
	const char *name[1000];
	struct tsock_info info = { .size = sizeof(info) };
	struct inproc st;
	tsock *t;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text[i], sizeof(text[i]), "class %u", i);
		name[i] = text[i];
	}
	so.classes = name;
	so.nclasses = 1000; /* several pages of metadata */
	so.dataset_len = 499;
	so.identity = "made of=nothing\n";
	so.sequential = 1;
	inproc_serve(&st, &so);
	t = inproc_join(32, 0);
	assert_int_equal(tsock_get_info(t, &info), 0);
	assert_int_equal(info.epoch_len, 500);
	assert_int_equal(info.dataset_len, 499);
	assert_int_equal(info.max_batch, 128);
	assert_int_equal(info.capacity, 512);
	assert_int_equal(info.join_window, 256);
	assert_int_equal(info.nclasses, 1000);
	assert_int_equal(info.sequential, 1);
	assert_int_equal(info.producer_pid, getpid());
	assert_int_equal(info.nfields, 2);
	for (unsigned i = 0; i < 1000; i++)
		assert_string_equal(tsock_class_name(t, i), name[i]);
	assert_null(tsock_class_name(t, 1000));
	assert_string_equal(tsock_identity(t), "made of=nothing\n");
	assert_int_equal(tsock_epoch_batches(t), 16);
	info.size = 0;
	assert_int_equal(tsock_get_info(t, &info), TSOCK_EARG);
	tsock_close(t);
	inproc_stop(&st);
}

static void refused(const struct tsock_opts *o, int code, const char *text)
{
	tsock *t;

	assert_int_equal(tsock_open("unit", o, &t), code);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

static void wrong_options_are_named(void **state)
{
	struct tsock_opts good_opts = TSOCK_OPTS_INIT, o;
	struct inproc st;

	(void)state;
	good_opts.batch_size = 8;
	good_opts.timeout_ms = 20000;
	inproc_serve_n(&st, 500);
	refused(NULL, TSOCK_EARG, "opts is NULL");
#define WITH(set, code, text) \
	do { \
		o = good_opts; \
		set; \
		refused(&o, code, text); \
	} while (0)

	WITH(o.size = 0, TSOCK_EARG, "TSOCK_OPTS_INIT");
	WITH(o.batch_size = 0, TSOCK_EARG, "batch_size is 0");
	WITH(o.batch_size = 129, TSOCK_EREFUSED, "129");
	WITH(o.batch_size = 129, TSOCK_EREFUSED, "128");
	WITH(o.device = -2, TSOCK_EARG, "device");
	WITH(o.flags = TSOCK_GPU_STORED, TSOCK_EARG, "TSOCK_GPU_STORED");
	WITH(o.transport = TSOCK_TRANSPORT_STAGED, TSOCK_EARG, "transport");
	WITH(o.transport = 4, TSOCK_EARG, "transport");
	WITH(o.join = 3, TSOCK_EARG, "join");
	WITH(o.between = 3, TSOCK_EARG, "between");
	WITH(o.flags = 1u << 31, TSOCK_EARG, "flags");
	WITH(o.dtype = 99, TSOCK_EARG, "dtype");
	WITH(o.dtype = TSOCK_I64, TSOCK_EARG, "dtype");
	WITH(o.layout = 2, TSOCK_EARG, "layout");
	WITH(o.normalize = TSOCK_UNIT, TSOCK_EARG, "u8");
	WITH((o.dtype = TSOCK_F32, o.normalize = 9), TSOCK_EARG, "normalize");
	WITH((o.dtype = TSOCK_F32, o.normalize = TSOCK_MEAN_STD, o.std[1] = 0),
	     TSOCK_EARG, "std");
#undef WITH
	inproc_stop(&st);
}

static void no_producer_is_an_error_that_helps(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	int64_t begin = tsi_now_ms();
	tsock *t;

	(void)state;
	o.batch_size = 8;
	o.timeout_ms = 200;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_true(tsi_now_ms() - begin >= 199);
	assert_non_null(strstr(tsock_errmsg(), "nobody"));
	assert_non_null(strstr(tsock_errmsg(), "tsock-producer"));
	assert_int_equal(tsock_open("", &o, &t), TSOCK_EARG);
	assert_int_equal(tsock_open(NULL, &o, &t), TSOCK_EARG);
	assert_int_equal(tsock_open("nobody", &o, NULL), TSOCK_EARG);
}

static void a_wrong_name_lists_what_runs(void **state)
{
	struct tsock_stats stats = { .size = sizeof(stats) };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct inproc st;
	tsock *t;

	(void)state;
	o.batch_size = 8;
	o.timeout_ms = 1;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; none runs here"));
	inproc_serve_n(&st, 500);
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; these run: unit"));
	assert_int_equal(tsock_query("nobody", 1, &stats), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; these run: unit"));
	inproc_stop(&st);
}

static void an_epoch_that_would_have_no_batch_is_refused(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 50);
	o.batch_size = 51;
	o.flags = TSOCK_DROP_LAST;
	assert_int_equal(tsock_open("unit", &o, &t), TSOCK_EREFUSED);
	assert_null(t);
	assert_non_null(strstr(tsock_errmsg(), "51"));
	assert_non_null(strstr(tsock_errmsg(), "50 samples"));
	o.batch_size = 50;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	tsock_close(t);
	inproc_stop(&st);
}

#define MIB (1 << 20)

static tsock *open_floats(uint32_t dtype)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = 8;
	o.dtype = dtype;
	o.normalize = TSOCK_UNIT;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	return t;
}

/* A ring of 512 samples: 7 MiB as stored, twice that as float16. */
static void a_view_beyond_the_memory_is_refused_with_the_sizes(void **state)
{
	struct tsock_serve_opts so = inproc_opts(500);
	tsock *stored, *half, *full;
	char text[128];
	struct inproc st;

	(void)state;
	so.memory = 24 * MIB;
	inproc_serve(&st, &so);
	stored = inproc_join(8, 0);
	half = open_floats(TSOCK_F16);
	full = open_floats(TSOCK_F32);
	assert_int_equal(tsock_begin(stored), 0);
	assert_int_equal(tsock_begin(half), 0);
	assert_int_equal(tsock_begin(full), TSOCK_EREFUSED);
	snprintf(text, sizeof(text),
		 "need a ring of %d MiB; %d MiB of the 24 MiB that the "
		 "producer may use (--memory) are taken",
		 512 * (4 * INPROC_BYTES + 8) / MIB,
		 512 * (3 * INPROC_BYTES + 2 * 8) / MIB);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
	/* Nobody else has noticed. */
	for (unsigned i = 0; i < 500 / 8; i++) {
		tsock_batch_release(inproc_next(stored));
		tsock_batch_release(inproc_next(half));
	}
	tsock_close(full);
	tsock_close(half);
	tsock_close(stored);
	inproc_stop(&st);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_served_can_be_asked),
		cmocka_unit_test(wrong_options_are_named),
		cmocka_unit_test(no_producer_is_an_error_that_helps),
		cmocka_unit_test(a_wrong_name_lists_what_runs),
		cmocka_unit_test(an_epoch_that_would_have_no_batch_is_refused),
		cmocka_unit_test(
			a_view_beyond_the_memory_is_refused_with_the_sizes),
	};

	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
