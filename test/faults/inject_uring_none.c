/* SPDX-License-Identifier: MIT */
/*
 * inject_uring_none.c - a build without io_uring has none of its operations.
 */
#include "test/faults/inject_kinds.h"

bool inject_uring_works(void)
{
	return false;
}
