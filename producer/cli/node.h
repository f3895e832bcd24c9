/* SPDX-License-Identifier: MIT */
/*
 * node.h - the NUMA node on which a producer has its threads and its memory.
 */
#ifndef TSI_CLI_NODE_H
#define TSI_CLI_NODE_H

#include <stddef.h>
#include <stdint.h>

#define TSI_NODE_ANY UINT64_MAX

/*
 * The CPUs of a list of the kernel's, "0-3,8": sets their bits among so many
 * words, and returns how many there are; -1 if that isn't such a list.
 */
int tsi_node_parse(const char *list, uint64_t *bits, unsigned words);

/*
 * From now on this thread, and those that it will start, run on those CPUs of
 * the node that they may use already.  The kernel takes a page from the node of
 * the CPU that first writes it, so rings and buffers are on that node as well,
 * unless a memory policy was set (numactl).  Before any other thread is
 * started.  root stands before /sys, for tests.
 *
 * EARG: there is no such node, it has no CPUs, or this process may use none of
 * them.  ESYS: the system refused.
 */
int tsi_node_use(const char *root, uint64_t node);

#endif
