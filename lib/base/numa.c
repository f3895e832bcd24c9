/* SPDX-License-Identifier: MIT */
/*
 * numa.c - from which NUMA nodes memory comes.
 *
 * Jobs run on all nodes.  Without tsi_numa_interleave(), the memory of a ring
 * lies where the threads ran that wrote it first, and one node's memory bus has
 * to feed all jobs.
 */
#include "base/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/mempolicy.h. */
enum {
	POLICY_DEFAULT = 0,
	POLICY_PREFERRED = 1,
	POLICY_INTERLEAVE = 3,
	NODES_ALLOWED = 1 << 2,
};

#define NODES 1024u /* the most that kernels are built for */
#define WORD (8 * sizeof(unsigned long))

static long get_mempolicy(int *mode, unsigned long *nodes, unsigned long most,
			  unsigned long flags)
{
	return syscall(SYS_get_mempolicy, mode, nodes, most, NULL, flags);
}

static long bind_memory(void *base, size_t len, int mode,
			const unsigned long *nodes, unsigned long most)
{
	return syscall(SYS_mbind, base, len, mode, nodes, most, 0);
}

const struct tsi_numa_calls tsi_numa_system = {
	.get_mempolicy = get_mempolicy,
	.mbind = bind_memory,
};

unsigned tsi_numa_interleave(const struct tsi_numa_calls *c, void *base,
			     size_t len)
{
	unsigned long nodes[NODES / WORD] = { 0 };
	int mode = POLICY_DEFAULT;
	unsigned n = 0;

	/* A kernel without NUMA refuses both. */
	if (c->get_mempolicy(&mode, NULL, 0, 0) || mode != POLICY_DEFAULT ||
	    c->get_mempolicy(NULL, nodes, NODES, NODES_ALLOWED))
		return 0;
	for (unsigned i = 0; i < NODES / WORD; i++)
		n += (unsigned)__builtin_popcountl(nodes[i]);
	/* One is subtracted from the number of bits by the kernel. */
	if (n < 2 || c->mbind(base, len, POLICY_INTERLEAVE, nodes, NODES + 1))
		return 0;
	return n;
}

void tsi_numa_prefer(uint64_t node)
{
	unsigned long nodes[NODES / WORD] = { 0 };

	if (node >= NODES)
		return;
	nodes[node / WORD] = 1ul << node % WORD;
	syscall(SYS_set_mempolicy, POLICY_PREFERRED, nodes, NODES + 1);
}
