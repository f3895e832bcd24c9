/* SPDX-License-Identifier: MIT */
/*
 * share.h - how several producers divide the CPUs that they may use.
 *
 * Pure: every producer has the same list of streams and computes the same
 * division from it, so none has to ask another.  A CPU is given to one stream
 * alone, among those that may use it; a stream gets CPUs until it has as many
 * as it wants or as its cgroup's quota leaves it.  This says how many threads
 * may work, not on which CPUs: the kernel chooses these.
 */
#ifndef TSI_RUN_SHARE_H
#define TSI_RUN_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define TSI_SHARE_WORDS 64    /* 4,096 CPUs */
#define TSI_SHARE_STREAMS 256 /* that are considered at most */

struct tsi_share_stream {
	uint64_t key;   /* no two streams have the same one */
	uint64_t group; /* equal: one cgroup, which has one quota */
	uint32_t quota; /* CPUs that the cgroup may use */
	uint32_t wants; /* threads that the stream has, and so CPUs at most */
	uint32_t readers;
	uint32_t pid;
	uint64_t cpu[TSI_SHARE_WORDS]; /* a bit for each that it may use */
};

/*
 * How many CPUs stream "me" of these n may use, at least 1.  Streams without
 * readers get none, except that "me" is treated as if it had one.
 * n is at most TSI_SHARE_STREAMS; the order of the list doesn't matter.
 */
unsigned tsi_share_count(const struct tsi_share_stream *s, unsigned n,
			 unsigned me);

/* How many streams have readers and could use one of the CPUs of "me". */
unsigned tsi_share_rivals(const struct tsi_share_stream *s, unsigned n,
			  unsigned me);

#endif
