/* SPDX-License-Identifier: MIT */
/*
 * numa.h - from which NUMA nodes memory comes: what several of them read is
 * spread over all.
 */
#ifndef TSI_BASE_NUMA_H
#define TSI_BASE_NUMA_H

#include <stddef.h>
#include <stdint.h>

/* The system calls, which a test replaces. */
struct tsi_numa_calls {
	long (*get_mempolicy)(int *mode, unsigned long *nodes,
			      unsigned long most, unsigned long flags);
	long (*mbind)(void *base, size_t len, int mode,
		      const unsigned long *nodes, unsigned long most);
};

extern const struct tsi_numa_calls tsi_numa_system;

/*
 * Pages of shared memory that is mapped there come from all nodes that this
 * process may use, in turn, if there are several; else, and where the process
 * has a policy of its own (--numa-node, numactl), nothing changes.  Returns on
 * how many nodes they are to be, 0: nothing has changed.
 */
unsigned tsi_numa_interleave(const struct tsi_numa_calls *c, void *base,
			     size_t len);

/*
 * Memory of this thread, and of those that it starts, comes from that node if it
 * has any, which is a policy of the process's own.  Where the kernel refuses,
 * nothing changes.
 */
void tsi_numa_prefer(uint64_t node);

#endif
