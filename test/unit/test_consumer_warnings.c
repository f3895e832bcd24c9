/* SPDX-License-Identifier: MIT */
/*
 * test_consumer_warnings.c - what a producer warns of is heard by all who read,
 * once.
 */
#include <stdio.h>
#include <string.h>

#include "test/lib/inproc.h"

#define N 100
#define BATCH 30
#define MOST 64 /* warnings of a stream */
#define KEPT 8  /* of them, for a program that asks late */

static void warn(struct inproc *st, const char *text)
{
	assert_int_equal(tsock_serve_warn(st->s, TSOCK_WARNING_BAD_FILES, text),
			 0);
}

static void hears(tsock *t, const char *text)
{
	uint32_t kind = 77;
	const char *said = tsock_warning(t, 20000, &kind);

	if (!text) {
		assert_null(said);
		return;
	}
	assert_non_null(said);
	assert_string_equal(said, text);
	assert_int_equal(kind, TSOCK_WARNING_BAD_FILES);
}

/* To the end of its epoch. */
static void read_on(tsock *t)
{
	tsock_batch *b;
	int err;

	while (!(err = tsock_next(t, 20000, &b)))
		tsock_batch_release(b);
	if (err != TSOCK_EEPOCH)
		fail_msg("%s", tsock_errmsg());
}

static void a_warning_is_heard_at_the_epochs_end(void **state)
{
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, N);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	hears(t, NULL);
	warn(&st, "class dog is lost");
	hears(t, NULL);
	read_on(t);
	hears(t, "class dog is lost");
	/* And that is all. */
	hears(t, NULL);
	assert_int_equal(tsock_begin(t), 0);
	read_on(t);
	hears(t, NULL);
	tsock_close(t);
	inproc_stop(&st);
}

static void who_comes_later_hears_it_at_the_beginning(void **state)
{
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, N);
	warn(&st, "one");
	warn(&st, "two");
	for (int i = 0; i < 2; i++) {
		t = inproc_join(BATCH, 0);
		hears(t, NULL);
		assert_int_equal(tsock_begin(t), 0);
		hears(t, "one");
		hears(t, "two");
		hears(t, NULL);
		tsock_close(t);
	}
	inproc_stop(&st);
}

static tsock *join_view(uint32_t dtype)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = BATCH;
	o.dtype = dtype;
	if (tsock_open("unit", &o, &t) || tsock_begin(t))
		fail_msg("%s", tsock_errmsg());
	return t;
}

/* Each view has a ring of its own: those that are there, and those to come. */
static void readers_of_every_view_hear_it(void **state)
{
	struct inproc st;
	tsock *was, *comes;

	(void)state;
	inproc_serve_n(&st, N);
	was = join_view(TSOCK_F32);
	warn(&st, "one");
	comes = join_view(TSOCK_F16);
	hears(comes, "one");
	read_on(was);
	hears(was, "one");
	tsock_close(comes);
	tsock_close(was);
	inproc_stop(&st);
}

static void a_stream_has_only_so_many(void **state)
{
	char text[32], longest[2000];
	struct inproc st;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, N);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	for (int i = 0; i < MOST - 1; i++) {
		snprintf(text, sizeof(text), "warning %d", i);
		warn(&st, text);
	}
	warn(&st, longest);
	assert_int_equal(tsock_serve_warn(st.s, 0, "one more"), TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "64"));
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	for (int i = MOST - KEPT; i < MOST - 1; i++) {
		snprintf(text, sizeof(text), "warning %d", i);
		hears(t, text);
	}
	longest[1023] = 0;
	hears(t, longest);
	hears(t, NULL);
	tsock_close(t);
	inproc_stop(&st);
}

static void serve_again(struct inproc *st)
{
	struct tsock_serve_opts o = inproc_opts(N);

	o.identity = "the same";
	o.resumable = 1;
	inproc_serve(st, &o);
}

/* A consumer that goes on with it has heard that. */
static void the_next_producer_says_only_what_is_new(void **state)
{
	struct inproc st;
	tsock *t;

	(void)state;
	serve_again(&st);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	warn(&st, "one");
	read_on(t);
	hears(t, "one");
	inproc_stop(&st);
	serve_again(&st);
	warn(&st, "one");
	warn(&st, "two");
	/* Beyond what the first one had made. */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(tsock_begin(t), 0);
		read_on(t);
	}
	hears(t, "two");
	hears(t, NULL);
	tsock_close(t);
	inproc_stop(&st);
}

static void bad_files_are_in_the_statistics(void **state)
{
	struct tsock_stats st = { .size = sizeof(st) };
	struct tsock_serve_opts o = inproc_opts(N);
	struct inproc served;

	(void)state;
	o.bad_files = 7;
	inproc_serve(&served, &o);
	assert_int_equal(tsock_query("unit", 20000, &st), 0);
	assert_int_equal(st.bad_files, 7);
	tsock_serve_bad_files(served.s, UINT64_C(12345678901));
	assert_int_equal(tsock_query("unit", 20000, &st), 0);
	assert_int_equal(st.bad_files, UINT64_C(12345678901));
	inproc_stop(&served);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_warning_is_heard_at_the_epochs_end),
		cmocka_unit_test(who_comes_later_hears_it_at_the_beginning),
		cmocka_unit_test(readers_of_every_view_hear_it),
		cmocka_unit_test(a_stream_has_only_so_many),
		cmocka_unit_test(the_next_producer_says_only_what_is_new),
		cmocka_unit_test(bad_files_are_in_the_statistics),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
