/* SPDX-License-Identifier: MIT */
/*
 * test_err.c - error messages per thread, and the names of the codes.
 */
#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void message_is_kept_until_the_next_failure(void **state)
{
	(void)state;
	assert_int_equal(tsi_err(TSOCK_EARG, "batch size %d of %s", 0, "x"),
			 TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "batch size 0 of x");
	assert_int_equal(tsi_err(TSOCK_EDATA, "other"), TSOCK_EDATA);
	assert_string_equal(tsock_errmsg(), "other");
}

static void system_errors_say_why_and_keep_errno(void **state)
{
	(void)state;
	errno = ENOENT;
	assert_int_equal(tsi_err_sys("open %s", "/x"), TSOCK_ESYS);
	assert_string_equal(tsock_errmsg(),
			    "open /x: No such file or directory");
	assert_int_equal(errno, ENOENT);
}

static void lack_of_memory_has_its_own_code(void **state)
{
	(void)state;
	errno = ENOMEM;
	assert_int_equal(tsi_err_sys("map"), TSOCK_ENOMEM);
	assert_string_equal(tsock_errmsg(), "map: Cannot allocate memory");
}

static void long_messages_are_cut(void **state)
{
	char text[2 * TSI_ERR_BYTES];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	tsi_err(TSOCK_EARG, "%s", text);
	assert_in_range(strlen(tsock_errmsg()), 256, TSI_ERR_BYTES - 1);
	errno = EIO;
	tsi_err_sys("%s", text);
	assert_in_range(strlen(tsock_errmsg()), 256, TSI_ERR_BYTES - 1);
}

static void the_message_so_far_can_be_part_of_the_next(void **state)
{
	(void)state;
	tsi_err(TSOCK_EARG, "no such folder");
	tsi_err(TSOCK_EDATA, "the data set can't be read: %s", tsock_errmsg());
	assert_string_equal(tsock_errmsg(),
			    "the data set can't be read: no such folder");
}

static void an_error_survives_the_calls_that_clean_up(void **state)
{
	struct tsi_err_saved saved;

	(void)state;
	saved = tsi_err_save(tsi_err(TSOCK_EDATA, "the cause"));
	tsi_err(TSOCK_ESYS, "a failure of the clean-up");
	assert_int_equal(tsi_err_restore(&saved), TSOCK_EDATA);
	assert_string_equal(tsock_errmsg(), "the cause");
}

static void a_copy_is_cut_at_a_character(void **state)
{
	char text[8];

	(void)state;
	tsi_err(TSOCK_EDATA, "photo \xc3\xa9.jpg");
	tsi_err_copy(text, sizeof(text));
	assert_string_equal(text, "photo ");
}

static void *fail_elsewhere(void *arg)
{
	(void)arg;
	tsi_err(TSOCK_EARG, "elsewhere");
	return (void *)(intptr_t)strcmp(tsock_errmsg(), "elsewhere");
}

static void other_threads_have_their_own_message(void **state)
{
	pthread_t thread;
	void *differs;

	(void)state;
	tsi_err(TSOCK_EARG, "here");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL),
			 0);
	pthread_join(thread, &differs);
	assert_null(differs);
	assert_string_equal(tsock_errmsg(), "here");
}

static void every_code_has_its_name(void **state)
{
	(void)state;
#define named(code) assert_string_equal(tsock_strerror(code), #code)
	named(TSOCK_OK);
	named(TSOCK_EAGAIN);
	named(TSOCK_EEPOCH);
	named(TSOCK_EENDED);
	named(TSOCK_ELOST);
	named(TSOCK_EARG);
	named(TSOCK_ENOMEM);
	named(TSOCK_ESYS);
	named(TSOCK_ENOPROD);
	named(TSOCK_EREFUSED);
	named(TSOCK_EPROTO);
	named(TSOCK_EFORK);
	named(TSOCK_EHELD);
	named(TSOCK_ESTREAM);
	named(TSOCK_EDATA);
	named(TSOCK_ENOTSUP);
	named(TSOCK_EEXIST);
#undef named
}

static void unknown_codes_have_a_name_too(void **state)
{
	static const int codes[] = { 1, -17, -1000, INT32_MAX, INT32_MIN };

	(void)state;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_string_equal(tsock_strerror(codes[i]),
				    "unknown tsock error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_is_kept_until_the_next_failure),
		cmocka_unit_test(system_errors_say_why_and_keep_errno),
		cmocka_unit_test(lack_of_memory_has_its_own_code),
		cmocka_unit_test(long_messages_are_cut),
		cmocka_unit_test(the_message_so_far_can_be_part_of_the_next),
		cmocka_unit_test(an_error_survives_the_calls_that_clean_up),
		cmocka_unit_test(a_copy_is_cut_at_a_character),
		cmocka_unit_test(other_threads_have_their_own_message),
		cmocka_unit_test(every_code_has_its_name),
		cmocka_unit_test(unknown_codes_have_a_name_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
