/* SPDX-License-Identifier: MIT */
/*
 * limits.h - how much memory and how many CPUs this process may still take.
 *
 * The machine's own numbers mislead inside a container: a memory cgroup
 * answers too large a reservation with SIGKILL, and a CPU quota with stalls.
 * So memory and CPUs are the least of what the machine and every enclosing
 * cgroup leave, cgroup versions 1, 2 and both at once.  Files that can't be read
 * or make no sense are no limit.
 *
 * root is "" for the machine that this runs on, else a folder with a made-up
 * proc/ and sys/ in it.
 */
#ifndef TSI_BASE_LIMITS_H
#define TSI_BASE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that can be taken before something is killed; limiter, of n bytes,
 * gets the name of the file that says so.  Page cache that is easily dropped
 * counts as free.  Fails with ENOTSUP if nothing could be read at all.
 */
int tsi_limits_memory(const char *root, uint64_t *bytes, char *limiter,
		      size_t n);

/*
 * Bytes that there are in all, taken or not, so the answer is the same whenever
 * it is asked for.  UINT64_MAX: the kernel doesn't tell.
 */
uint64_t tsi_limits_whole_memory(const char *root);

/* CPUs by affinity and quota, a part of one counting as one; at least 1. */
unsigned tsi_limits_cpus(const char *root);

/* CPUs by quota alone, a part of one counting as one; UINT_MAX: no quota. */
unsigned tsi_limits_quota(const char *root);

/*
 * How many CPUs affinity allows the calling thread, and a bit for each in bits,
 * those that are 64 * words or more left out.  0, and bits as they were: the
 * kernel doesn't tell.
 */
unsigned tsi_limits_affinity(uint64_t *bits, unsigned words);

#endif
