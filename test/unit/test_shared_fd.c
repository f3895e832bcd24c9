/* SPDX-License-Identifier: MIT */
/*
 * test_shared_fd.c - one descriptor for all who have the same file.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/shared_fd.h"

static int is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void the_same_file_is_open_once(void **state)
{
	int a = memfd_create("a", MFD_CLOEXEC), b, c;

	(void)state;
	assert_true(a >= 0);
	b = fcntl(a, F_DUPFD_CLOEXEC, 0);
	c = memfd_create("a", MFD_CLOEXEC);
	assert_int_equal(tsi_shared_fd(a), a);
	assert_int_equal(tsi_shared_fd(b), a);
	assert_false(is_open(b));
	assert_int_equal(tsi_shared_fd(c), c);
	tsi_shared_fd_close(a);
	assert_true(is_open(a));
	tsi_shared_fd_close(c);
	assert_false(is_open(c));
	tsi_shared_fd_close(a);
	assert_false(is_open(a));
}

static void what_has_no_file_is_its_own(void **state)
{
	int a = eventfd(0, EFD_CLOEXEC), b = eventfd(0, EFD_CLOEXEC);

	(void)state;
	assert_int_equal(tsi_shared_fd(a), a);
	assert_int_equal(tsi_shared_fd(b), b);
	assert_int_equal(tsi_shared_fd(-1), -1);
	tsi_shared_fd_close(a);
	tsi_shared_fd_close(-1);
	assert_false(is_open(a));
	assert_true(is_open(b));
	tsi_shared_fd_close(b);
}

static void a_child_shares_nothing_with_its_parent(void **state)
{
	int a = memfd_create("a", MFD_CLOEXEC), status;
	int b = fcntl(a, F_DUPFD_CLOEXEC, 0);
	pid_t pid;

	(void)state;
	assert_int_equal(tsi_shared_fd(a), a);
	pid = fork();
	if (!pid)
		_exit(tsi_shared_fd(b) == b && is_open(a) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(b);
	tsi_shared_fd_close(a);
	assert_false(is_open(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_file_is_open_once),
		cmocka_unit_test(what_has_no_file_is_its_own),
		cmocka_unit_test(a_child_shares_nothing_with_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
