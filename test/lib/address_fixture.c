/* SPDX-License-Identifier: MIT */
/*
 * address_fixture.c - a folder for a test's sockets.
 */
#include "test/lib/address_fixture.h"

char address_base[64], address_dir[80], address_users[80];

int address_make_base(void **s)
{
	(void)s;
	strcpy(address_base, "/tmp/tsock-address-XXXXXX");
	if (!mkdtemp(address_base))
		return -1;
	snprintf(address_dir, sizeof(address_dir), "%s/d", address_base);
	snprintf(address_users, sizeof(address_users), "%s/users",
		 address_base);
	tsi_address_users = address_users;
	unsetenv("XDG_RUNTIME_DIR");
	return setenv("TSOCK_DIR", address_dir, 1);
}

int address_remove_base(void **s)
{
	char command[100];

	(void)s;
	snprintf(command, sizeof(command), "rm -rf %s", address_base);
	return system(command);
}

int address_exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

void address_assert_path(const char *got, const char *folder, const char *rest)
{
	char want[200];

	snprintf(want, sizeof(want), "%s%s", folder, rest);
	assert_string_equal(got, want);
}

void address_touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

bool address_there(const char *path)
{
	return access(path, F_OK) == 0;
}
