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

extern char address_base[64], address_dir[80], address_users[80];

int address_make_base(void **s);

int address_remove_base(void **s);

int address_exit_status(pid_t pid);

void address_assert_path(const char *got, const char *folder, const char *rest);

void address_touch(const char *path);

bool address_there(const char *path);

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, address_make_base, \
					address_remove_base)

#endif
