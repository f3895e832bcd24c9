/* SPDX-License-Identifier: MIT */
/*
 * node.c - the NUMA node on which a producer has its threads and its memory.
 */
#include "cli/node.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/numa.h"

#define NODES "/sys/devices/system/node"
#define WORDS (CPU_SETSIZE / 64)
#define LIST 4096 /* bytes of a page, as /sys has it */

/* A number at *at, which is moved behind it. */
static bool number(const char **at, unsigned *out)
{
	char *end;
	unsigned long n;

	if (**at < '0' || **at > '9')
		return false;
	n = strtoul(*at, &end, 10);
	if (n > INT_MAX)
		return false;
	*at = end;
	*out = (unsigned)n;
	return true;
}

int tsi_node_parse(const char *list, uint64_t *bits, unsigned words)
{
	int count = 0;

	memset(bits, 0, words * sizeof(*bits));
	while (*list && *list != '\n') {
		unsigned first, last;

		if (!number(&list, &first))
			return -1;
		last = first;
		if (*list == '-' && (list++, !number(&list, &last)))
			return -1;
		if (last < first || last >= words * 64)
			return -1;
		for (unsigned i = first; i <= last; i++, count++)
			bits[i / 64] |= UINT64_C(1) << i % 64;
		if (*list == ',')
			list++;
		else if (*list && *list != '\n')
			return -1;
	}
	return count;
}

/* A line of a file under NODES; false: there is none. */
static bool read_list(const char *root, const char *name, char line[LIST])
{
	return tsi_file_first_line(line, LIST, "%s" NODES "/%s", root, name);
}

static int no_such_node(const char *root, uint64_t node)
{
	char online[LIST];

	if (!read_list(root, "online", online))
		return tsi_err(TSOCK_EARG,
			       "--numa-node %" PRIu64 ": this system says "
			       "nothing of NUMA nodes (%s" NODES "): leave the "
			       "option out",
			       node, root);
	return tsi_err(TSOCK_EARG,
		       "--numa-node %" PRIu64 ": there is no such node here, "
		       "but %s (lscpu shows them)",
		       node, online);
}

/* Those of a node's CPUs that this thread may use. */
static int choose_cpus(uint64_t node, const char *list, cpu_set_t *out)
{
	uint64_t of_node[WORDS], allowed[WORDS] = { 0 };

	if (tsi_node_parse(list, of_node, WORDS) <= 0)
		return tsi_err(TSOCK_EARG,
			       "--numa-node %" PRIu64 ": that node has no CPUs "
			       "(\"%s\"): choose one that has (lscpu shows "
			       "them)",
			       node, list);
	tsi_limits_affinity(allowed, WORDS);
	CPU_ZERO(out);
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (of_node[i / 64] & allowed[i / 64] & UINT64_C(1) << i % 64)
			CPU_SET(i, out);
	if (!CPU_COUNT(out))
		return tsi_err(TSOCK_EARG,
			       "--numa-node %" PRIu64 ": this process may use "
			       "none of that node's CPUs (%s): its affinity "
			       "(taskset) or cgroup (cpuset) leaves them out",
			       node, list);
	return 0;
}

int tsi_node_use(const char *root, uint64_t node)
{
	char name[48], list[LIST];
	cpu_set_t cpus;
	int err;

	snprintf(name, sizeof(name), "node%" PRIu64 "/cpulist", node);
	if (!read_list(root, name, list))
		return no_such_node(root, node);
	err = choose_cpus(node, list, &cpus);
	if (err)
		return err;
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		return tsi_err_sys("--numa-node %" PRIu64 ": sched_setaffinity",
				   node);
	tsi_numa_prefer(node);
	return 0;
}
