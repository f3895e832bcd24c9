/* SPDX-License-Identifier: MIT */
/*
 * usage.h - what a process has of the system, as /proc tells.
 */
#ifndef TEST_LIB_USAGE_H
#define TEST_LIB_USAGE_H

#include <sys/types.h>

/* Its open descriptors; of the caller's own, one more that counts them. */
unsigned descriptors_of(pid_t pid);

/* Its memory mappings. */
unsigned mappings_of(pid_t pid);

#endif
