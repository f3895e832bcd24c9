/* SPDX-License-Identifier: MIT */
/*
 * test_text.c - text from elsewhere, made safe for a terminal and a log.
 */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/log.h"

static void is_printed_as(const char *from, const char *want)
{
	char got[256], again[256];

	assert_int_equal(tsi_text_printable(got, sizeof(got), from),
			 strlen(want));
	assert_string_equal(got, want);
	tsi_text_printable(again, sizeof(again), got);
	assert_string_equal(again, want);
}

static void what_prints_is_left_alone(void **state)
{
	(void)state;
	is_printed_as("", "");
	is_printed_as("a/b c.jpg: 100%, \\n \"x\" ~",
		      "a/b c.jpg: 100%, \\n \"x\" ~");
	is_printed_as("\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x90\x88",
		      "\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x90\x88");
}

static void what_a_terminal_obeys_is_spelt_out(void **state)
{
	(void)state;
	is_printed_as("a\nb\tc\rd", "a\\nb\\tc\\rd");
	is_printed_as("\033[2J\033]0;x\007", "\\x1b[2J\\x1b]0;x\\x07");
	is_printed_as("\x01\x7f", "\\x01\\x7f");
	/* CSI as one character, a line separator, right to left. */
	is_printed_as("\xc2\x9b", "\\xc2\\x9b");
	is_printed_as("\xe2\x80\xa8", "\\xe2\\x80\\xa8");
	is_printed_as("\xe2\x80\xaegpj", "\\xe2\\x80\\xaegpj");
	is_printed_as("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
}

static void what_is_no_utf8_is_spelt_out(void **state)
{
	(void)state;
	is_printed_as("\xff\xfe", "\\xff\\xfe");
	is_printed_as("caf\xe9.jpg", "caf\\xe9.jpg");
	is_printed_as("\xc3", "\\xc3");
	is_printed_as("\xc0\xaf", "\\xc0\\xaf");
	is_printed_as("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	is_printed_as("\xed\xa0\x80", "\\xed\\xa0\\x80");
	is_printed_as("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	is_printed_as("\xf0\x9f\x90", "\\xf0\\x9f\\x90");
}

static void it_is_cut_between_characters(void **state)
{
	char to[8];

	(void)state;
	assert_int_equal(tsi_text_printable(to, sizeof(to), "abcdefghi"), 7);
	assert_string_equal(to, "abcdefg");
	assert_int_equal(tsi_text_printable(to, sizeof(to), "abcdef\xc3\xa9"),
			 6);
	assert_string_equal(to, "abcdef");
	assert_int_equal(tsi_text_printable(to, sizeof(to), "abcd\033"), 4);
	assert_string_equal(to, "abcd");
	assert_int_equal(tsi_text_printable(to, 1, "a"), 0);
	assert_string_equal(to, "");
	assert_int_equal(tsi_text_printable(to, 0, "a"), 0);
}

static char logged[256];

static void keep(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	strncpy(logged, line, sizeof(logged) - 1);
}

static void messages_and_log_lines_are_one_line(void **state)
{
	(void)state;
	tsi_err(TSOCK_EDATA, "%s: bad", "a\nb\033.jpg");
	assert_string_equal(tsock_errmsg(), "a\\nb\\x1b.jpg: bad");
	tsi_err_sys("open %s", "x\ny");
	assert_non_null(strstr(tsock_errmsg(), "open x\\ny: "));
	tsock_set_logger(keep, NULL);
	tsi_log(TSOCK_LOG_INFO, "bad file %s", "a\nb\033.jpg");
	tsock_set_logger(NULL, NULL);
	assert_string_equal(logged, "bad file a\\nb\\x1b.jpg");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_prints_is_left_alone),
		cmocka_unit_test(what_a_terminal_obeys_is_spelt_out),
		cmocka_unit_test(what_is_no_utf8_is_spelt_out),
		cmocka_unit_test(it_is_cut_between_characters),
		cmocka_unit_test(messages_and_log_lines_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
