/* SPDX-License-Identifier: MIT */
/*
 * test_file_line.c - the first line of a small file.
 */
#include "base/file.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(const char *text, const char *line, bool ok)
{
	int fd = memfd_create("first_line", MFD_CLOEXEC);
	char got[8] = "before";

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(
		tsi_file_first_line(got, sizeof(got), "/proc/self/fd/%d", fd),
		ok);
	assert_string_equal(got, line);
	close(fd);
}

static void lines(void **state)
{
	(void)state;
	expect("one\ntwo\n", "one", true);
	expect("one", "one", true);
	expect("\ntwo\n", "", true);
	expect("", "", false);
	expect("123456789\n", "1234567", true);
}

static void no_file(void **state)
{
	static char long_path[PATH_MAX + 8];
	char got[8] = "before";

	(void)state;
	memset(long_path, '/', sizeof(long_path) - 1);
	assert_false(
		tsi_file_first_line(got, sizeof(got), "/proc/self/%s", "none"));
	assert_string_equal(got, "");
	assert_false(tsi_file_first_line(got, sizeof(got), "%s", long_path));
	assert_string_equal(got, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
