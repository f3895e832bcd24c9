/* SPDX-License-Identifier: MIT */
/*
 * address_fixture.h - a folder for sockets that is each test's own, in the
 * place of the user's.
 */
#ifndef TEST_LIB_ADDRESS_FIXTURE_H
#define TEST_LIB_ADDRESS_FIXTURE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/address.h"

static char base[64], dir[80], users[80];

static inline int make_base(void **s)
{
	(void)s;
	strcpy(base, "/tmp/tsock-address-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(dir, sizeof(dir), "%s/d", base);
	snprintf(users, sizeof(users), "%s/users", base);
	tsi_address_users = users;
	unsetenv("XDG_RUNTIME_DIR");
	return setenv("TSOCK_DIR", dir, 1);
}

static inline int remove_base(void **s)
{
	char command[100];

	(void)s;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static inline int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static inline void assert_path(const char *got, const char *folder,
			       const char *rest)
{
	char want[200];

	snprintf(want, sizeof(want), "%s%s", folder, rest);
	assert_string_equal(got, want);
}

static inline void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static inline bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

#endif
