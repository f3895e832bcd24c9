/* SPDX-License-Identifier: MIT */
/*
 * seccomp.h - this process under a kernel that refuses system calls, as in a
 * container.  For good: what was refused is not allowed again.
 */
#ifndef TEST_LIB_SECCOMP_H
#define TEST_LIB_SECCOMP_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

/* False: this machine allows no filters. */
bool seccomp_install(struct sock_filter *code, size_t n);

/* From now on the system call of this number fails by err. */
bool seccomp_forbid(long nr, int err);

#endif
