/* SPDX-License-Identifier: MIT */
/*
 * test_no_gpu.c - a process that sees no GPU is told so in a sentence, in a
 * build with CUDA as in one without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "mem/gpu.h"
#include "tsock/tsock.h"

static void said(int err)
{
	assert_int_equal(err, TSOCK_ENOTSUP);
	if (strlen(tsock_errmsg()) < 10)
		fail_msg("\"%s\" says nothing", tsock_errmsg());
}

static void looking_for_a_gpu_says_why_there_is_none(void **state)
{
	uint8_t uuid[TSI_UUID] = { 1 };
	struct tsi_gpu_info info;
	unsigned n;

	(void)state;
	said(tsi_gpu_count(&n));
	said(tsi_gpu_info(0, &info));
	said(tsi_gpu_find(uuid, &n));
}

static void see_line(void *arg, const char *line)
{
	unsigned *lines = arg;

	assert_true(strlen(line) > 10);
	assert_null(strchr(line, '\n'));
	++*lines;
}

static void the_list_of_devices_is_one_line_that_says_why(void **state)
{
	unsigned lines = 0;

	(void)state;
	assert_int_equal(tsock_devices(see_line, &lines), 0);
	assert_int_equal(lines, 1);
}

static void
a_reader_on_a_gpu_is_refused_before_it_looks_for_a_stream(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t = NULL;

	(void)state;
	o.batch_size = 1;
	o.device = 0;
	o.timeout_ms = 60000;
	said(tsock_open("nobody-serves-this", &o, &t));
	assert_null(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looking_for_a_gpu_says_why_there_is_none),
		cmocka_unit_test(the_list_of_devices_is_one_line_that_says_why),
		cmocka_unit_test(
			a_reader_on_a_gpu_is_refused_before_it_looks_for_a_stream),
	};

	/* CUDA reads it at its first call. */
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
