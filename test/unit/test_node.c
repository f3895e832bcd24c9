/* SPDX-License-Identifier: MIT */
/*
 * test_node.c - the NUMA node of a producer, in folders that stand for /sys.
 */
#include "cli/node.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define WORDS 2

static char root[] = "/tmp/tsock-node-XXXXXX";
static cpu_set_t before;

static int first_allowed(void)
{
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &before))
			return i;
	fail_msg("this thread may use no CPU");
	return -1;
}

static void shell(const char *format, ...)
{
	char command[400];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

/* A line in a file of the folder of the nodes. */
static void says(const char *name, const char *line)
{
	shell("f=%s/sys/devices/system/node/%s; mkdir -p ${f%%/*};"
	      " echo '%s' >$f",
	      root, name, line);
}

static int begin(void **state)
{
	(void)state;
	CPU_ZERO(&before);
	return sched_getaffinity(0, sizeof(before), &before);
}

static int end(void **state)
{
	(void)state;
	shell("rm -rf %s/sys", root);
	return sched_setaffinity(0, sizeof(before), &before);
}

static void unchanged(void)
{
	cpu_set_t now;

	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

static void refused(uint64_t node, const char *why)
{
	assert_int_equal(tsi_node_use(root, node), TSOCK_EARG);
	if (!strstr(tsock_errmsg(), why))
		fail_msg("\"%s\" lacks \"%s\"", tsock_errmsg(), why);
	unchanged();
}

static void lists_are_read(void **state)
{
	uint64_t bits[WORDS];

	(void)state;
	assert_int_equal(tsi_node_parse("0-3,8,62-65\n", bits, WORDS), 9);
	assert_int_equal(bits[0], UINT64_C(0xC00000000000010F));
	assert_int_equal(bits[1], 3);
	assert_int_equal(tsi_node_parse("127", bits, WORDS), 1);
	assert_int_equal(bits[0], 0);
	assert_int_equal(bits[1], UINT64_C(1) << 63);
	assert_int_equal(tsi_node_parse("", bits, WORDS), 0);
	assert_int_equal(tsi_node_parse("\n", bits, WORDS), 0);
}

static void other_lists_are_none(void **state)
{
	static const char *const bad[] = {
		"x",     "-1",  "1-",
		"3-1",   "1;2", "128",
		"0-128", "1 2", "99999999999999999999"
	};
	uint64_t bits[WORDS];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(tsi_node_parse(bad[i], bits, WORDS), -1);
}

static void a_node_that_is_not_there_is_refused(void **state)
{
	(void)state;
	refused(0, "leave the option out");
	says("online", "0-1");
	says("node0/cpulist", "0-1023");
	refused(2, "no such node here, but 0-1");
}

static void a_node_without_cpus_is_refused(void **state)
{
	(void)state;
	says("node3/cpulist", "");
	refused(3, "has no CPUs");
	says("node3/cpulist", "nonsense");
	refused(3, "\"nonsense\"");
}

static void a_node_with_none_of_the_allowed_cpus_is_refused(void **state)
{
	char list[16];
	int other = 0;

	(void)state;
	while (other < CPU_SETSIZE && CPU_ISSET(other, &before))
		other++;
	snprintf(list, sizeof(list), "%d", other);
	says("node1/cpulist", list);
	refused(1, "may use none");
}

/* The node has one of the CPUs that are allowed, and one that is not. */
static void threads_have_the_allowed_cpus_of_the_node(void **state)
{
	int mine = first_allowed();
	char list[32];
	cpu_set_t now;

	(void)state;
	snprintf(list, sizeof(list), "%d,%d", mine, CPU_SETSIZE - 1);
	says("node1/cpulist", list);
	assert_int_equal(tsi_node_use(root, 1), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_true(CPU_ISSET(mine, &now));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_are_read),
		TEST(other_lists_are_none),
		TEST(a_node_that_is_not_there_is_refused),
		TEST(a_node_without_cpus_is_refused),
		TEST(a_node_with_none_of_the_allowed_cpus_is_refused),
		TEST(threads_have_the_allowed_cpus_of_the_node),
	};
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	shell("rm -rf %s", root);
	return failed;
}
