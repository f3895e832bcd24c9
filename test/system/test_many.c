/* SPDX-License-Identifier: MIT */
/*
 * test_many.c - more consumers than the statistics have rows.
 */
#include "test/lib/reader.h"

#define MANY (TSOCK_STATS_ROWS + 8)

static struct tsock_stats ask(const char *name)
{
	struct tsock_stats st = { .size = sizeof(st) };

	assert_int_equal(tsock_query(name, 60000, &st), 0);
	return st;
}

/* Consumer i takes one sample less than the one before: the last are behind. */
static void the_rows_are_those_who_are_behind(void **state)
{
	struct source src = { .name = "many",
			      .n = 1000,
			      .ring = 256,
			      .max_batch = 16,
			      .payload = 16 };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	pid_t producer = stream_start_producer(&src);
	struct tsock_stats st;
	tsock *t[MANY];
	uint64_t highest = 0;

	(void)state;
	o.timeout_ms = 60000;
	o.batch_size = 1;
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(tsock_open("many", &o, &t[i]), 0);
		assert_int_equal(tsock_begin(t[i]), 0);
	}
	for (unsigned i = 0; i < MANY; i++) {
		for (unsigned k = 0; k < MANY - i; k++) {
			tsock_batch *b;

			assert_int_equal(tsock_next(t[i], 60000, &b), 0);
			tsock_batch_release(b);
		}
	}
	st = ask("many");
	assert_int_equal(st.consumers, MANY);
	assert_int_equal(st.nrows, TSOCK_STATS_ROWS);
	for (uint32_t i = 0; i < st.nrows; i++) {
		assert_int_equal(st.row[i].pid, getpid());
		if (st.row[i].tail > highest)
			highest = st.row[i].tail;
	}
	/* 1 to 32 of 1 to 40. */
	assert_int_equal(highest, TSOCK_STATS_ROWS);
	for (unsigned i = 0; i < MANY; i++)
		tsock_close(t[i]);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_rows_are_those_who_are_behind,
					  proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
