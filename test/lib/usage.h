/* SPDX-License-Identifier: MIT */
/*
 * usage.h - what a process has of the system, as /proc tells.
 */
#ifndef TEST_LIB_USAGE_H
#define TEST_LIB_USAGE_H

#include <sys/types.h>

/* The files of a folder. */
unsigned usage_entries(const char *folder);

/* Its open descriptors; of the caller's own, one more that counts them. */
unsigned usage_descriptors(pid_t pid);

/* Its memory mappings. */
unsigned usage_mappings(pid_t pid);

/* Its memory that is no file's and no memfd's, in KiB. */
long usage_memory(pid_t pid);

struct usage {
	unsigned descriptors, threads;
	unsigned rings;  /* mappings of memfds of ours */
	unsigned files;  /* mappings of files */
	unsigned others; /* heaps, stacks and the like */
	long memory_kib; /* as usage_memory() */
	long shared_kib; /* of the rings, what was touched */
};

struct usage usage_of(pid_t pid);

#endif
