/* SPDX-License-Identifier: MIT */
/*
 * test_limits.c - memory and CPU limits, read from made-up /proc and /sys.
 */
#include "base/limits.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define MB (1024u * 1024u)

static char root[64];
static char limiter[256];

static void write_file(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void write_number(const char *path, unsigned long long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", number);
	write_file(path, text);
}

static void free_memory(unsigned mb)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "MemTotal: 99999999 kB\nMemFree: 17 kB\n"
		 "MemAvailable:   %u kB\nBuffers: 1 kB\n",
		 mb * 1024);
	write_file("/proc/meminfo", text);
}

static uint64_t memory(void)
{
	uint64_t bytes = 0;

	strcpy(limiter, "untouched");
	assert_int_equal(
		tsi_limits_memory(root, &bytes, limiter, sizeof(limiter)), 0);
	return bytes;
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/tsock-machine-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

#define V2_MOUNT \
	"31 23 0:28 / / rw - ext4 /dev/sda rw\n" \
	"35 31 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 " \
	"rw,nsdelegate\n"
#define V1_MOUNTS \
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" \
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 master:2 - " \
	"cgroup cgroup rw,cpu,cpuacct\n" \
	"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static void use_v2(const char *path)
{
	char text[128];

	write_file("/proc/self/mountinfo", V2_MOUNT);
	snprintf(text, sizeof(text), "0::%s\n", path);
	write_file("/proc/self/cgroup", text);
	free_memory(10000);
}

static void use_v1(const char *path)
{
	char text[256];

	write_file("/proc/self/mountinfo", V1_MOUNTS);
	snprintf(text, sizeof(text),
		 "9:name=systemd:/\n4:memory:%s\n3:cpuset:/wrong\n"
		 "2:cpu,cpuacct:%s\n",
		 path, path);
	write_file("/proc/self/cgroup", text);
	free_memory(10000);
}

static void without_cgroups_available_memory_counts(void **state)
{
	(void)state;
	free_memory(123);
	assert_int_equal(memory(), 123 * MB);
	assert_string_equal(limiter, "MemAvailable in /proc/meminfo");
}

static void nothing_readable_is_said(void **state)
{
	uint64_t bytes = 7;

	(void)state;
	assert_int_equal(
		tsi_limits_memory(root, &bytes, limiter, sizeof(limiter)),
		TSOCK_ENOTSUP);
	assert_int_equal(bytes, 7);
	assert_non_null(strstr(tsock_errmsg(), "/proc/meminfo"));
}

static void v2_leaves_limit_minus_usage_without_file_cache(void **state)
{
	(void)state;
	use_v2("/job");
	write_number("/sys/fs/cgroup/job/memory.max", 500u * MB);
	write_number("/sys/fs/cgroup/job/memory.current", 300u * MB);
	assert_int_equal(memory(), 200 * MB);
	write_file("/sys/fs/cgroup/job/memory.stat",
		   "anon 5\nworkingset_inactive_file 1\ninactive_file "
		   "104857600\nactive_file 9\n");
	assert_int_equal(memory(), 300 * MB);
	assert_string_equal(limiter, "/sys/fs/cgroup/job/memory.max");
}

static void v2_max_is_no_limit(void **state)
{
	(void)state;
	use_v2("/job");
	write_file("/sys/fs/cgroup/job/memory.max", "max\n");
	write_number("/sys/fs/cgroup/job/memory.current", 300u * MB);
	assert_int_equal(memory(), 10000ull * MB);
}

static void v2_tighter_ancestor_wins(void **state)
{
	(void)state;
	use_v2("/slice/job/step");
	write_number("/sys/fs/cgroup/slice/job/step/memory.max", 500u * MB);
	write_number("/sys/fs/cgroup/slice/job/step/memory.current", 10u * MB);
	write_file("/sys/fs/cgroup/slice/job/memory.max", "max\n");
	write_number("/sys/fs/cgroup/slice/memory.max", 900u * MB);
	write_number("/sys/fs/cgroup/slice/memory.current", 850u * MB);
	assert_int_equal(memory(), 50 * MB);
	assert_string_equal(limiter, "/sys/fs/cgroup/slice/memory.max");
}

static void v2_limit_at_the_mount_of_a_namespace_counts(void **state)
{
	(void)state;
	use_v2("/");
	write_number("/sys/fs/cgroup/memory.max", 64u * MB);
	write_number("/sys/fs/cgroup/memory.current", 4u * MB);
	assert_int_equal(memory(), 60 * MB);
	assert_string_equal(limiter, "/sys/fs/cgroup/memory.max");
}

static void usage_beyond_the_limit_leaves_nothing(void **state)
{
	(void)state;
	use_v2("/job");
	write_number("/sys/fs/cgroup/job/memory.max", 5u * MB);
	write_number("/sys/fs/cgroup/job/memory.current", 6u * MB);
	assert_int_equal(memory(), 0);
	/* More cache than usage: the two are not read at one moment. */
	write_file("/sys/fs/cgroup/job/memory.stat",
		   "inactive_file 99999999999\n");
	assert_int_equal(memory(), 5 * MB);
}

static void v1_leaves_limit_minus_usage_without_file_cache(void **state)
{
	(void)state;
	use_v1("/docker/f00");
	write_number("/sys/fs/cgroup/memory/docker/f00/memory.limit_in_bytes",
		     500u * MB);
	write_number("/sys/fs/cgroup/memory/docker/f00/memory.usage_in_bytes",
		     300u * MB);
	write_file("/sys/fs/cgroup/memory/docker/f00/memory.stat",
		   "inactive_file 1\ntotal_inactive_file 52428800\n");
	write_number("/sys/fs/cgroup/memory/memory.limit_in_bytes",
		     9223372036854771712ull);
	assert_int_equal(memory(), 250 * MB);
	assert_string_equal(
		limiter,
		"/sys/fs/cgroup/memory/docker/f00/memory.limit_in_bytes");
}

static void v1_tighter_ancestor_wins(void **state)
{
	(void)state;
	use_v1("/a/b");
	write_number("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
		     500u * MB);
	write_number("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 99u * MB);
	write_number("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", 9u * MB);
	assert_int_equal(memory(), 90 * MB);
}

static void hybrid_takes_the_least_of_both(void **state)
{
	(void)state;
	write_file("/proc/self/mountinfo",
		   V1_MOUNTS "41 31 0:38 / /sys/fs/cgroup/unified rw - "
			     "cgroup2 cgroup2 rw\n");
	write_file("/proc/self/cgroup", "4:memory:/a\n0::/b\n");
	free_memory(10000);
	write_number("/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
		     300u * MB);
	assert_int_equal(memory(), 300 * MB);
	write_number("/sys/fs/cgroup/unified/b/memory.max", 200u * MB);
	assert_int_equal(memory(), 200 * MB);
	assert_string_equal(limiter, "/sys/fs/cgroup/unified/b/memory.max");
	free_memory(100);
	assert_int_equal(memory(), 100 * MB);
}

static void mount_that_shows_a_part_is_cut_at_its_root(void **state)
{
	(void)state;
	/* Docker on version 1 without a namespace: a bind mount of its own. */
	write_file("/proc/self/mountinfo",
		   "35 31 0:32 /docker/f00 /sys/fs/cgroup/memory rw - cgroup "
		   "cgroup rw,memory\n");
	write_file("/proc/self/cgroup", "4:memory:/docker/f00/sub\n");
	free_memory(10000);
	write_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", 70u * MB);
	write_number("/sys/fs/cgroup/memory/sub/memory.limit_in_bytes",
		     90u * MB);
	assert_int_equal(memory(), 70 * MB);
	write_number("/sys/fs/cgroup/memory/sub/memory.limit_in_bytes",
		     60u * MB);
	assert_int_equal(memory(), 60 * MB);
}

static void path_outside_of_the_mount_uses_the_mount(void **state)
{
	static const char *const paths[] = { "/../elsewhere", "/docker/f000",
					     "/gone" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		char text[64];

		snprintf(text, sizeof(text), "0::%s\n", paths[i]);
		write_file("/proc/self/cgroup", text);
		write_file("/proc/self/mountinfo",
			   "35 31 0:32 /docker/f00 /sys/fs/cgroup rw - cgroup2 "
			   "cgroup rw\n");
		free_memory(10000);
		write_number("/sys/fs/cgroup/memory.max", 80u * MB);
		assert_int_equal(memory(), 80 * MB);
	}
}

static void mount_that_shows_the_most_is_taken(void **state)
{
	(void)state;
	write_file("/proc/self/mountinfo",
		   "1 2 0:3 /a/b /part rw - cgroup2 cgroup rw\n"
		   "1 2 0:3 / /whole\\040tree rw - cgroup2 cgroup rw\n"
		   "1 2 0:3 /other /elsewhere rw - cgroup2 cgroup rw\n");
	write_file("/proc/self/cgroup", "0::/a/b/c\n");
	free_memory(10000);
	write_number("/elsewhere/memory.max", 1);
	write_number("/part/memory.max", 500u * MB);
	write_number("/whole tree/a/b/memory.max", 500u * MB);
	write_number("/whole tree/a/memory.max", 40u * MB);
	assert_int_equal(memory(), 40 * MB);
	assert_string_equal(limiter, "/whole tree/a/memory.max");
}

static void garbage_is_no_limit(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"banana\n",
		"-1\n",
		"12banana\n",
		"0x10\n",
		"99999999999999999999999999999\n",
		"\xff\xfe",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		use_v2("/job");
		write_file("/sys/fs/cgroup/job/memory.max", bad[i]);
		write_file("/sys/fs/cgroup/job/cpu.max", bad[i]);
		write_file("/sys/fs/cgroup/job/memory.stat", bad[i]);
		assert_int_equal(memory(), 10000ull * MB);
		assert_true(tsi_limits_cpus(root) >= 1);
		write_file("/proc/self/mountinfo", bad[i]);
		assert_int_equal(memory(), 10000ull * MB);
		write_file("/proc/self/cgroup", bad[i]);
		assert_int_equal(memory(), 10000ull * MB);
	}
	write_file("/proc/self/cgroup", ":\n::\n0:\n0::\n0::relative\n:::/\n");
	write_file("/proc/self/mountinfo",
		   "-\n - \n1 2 3\n1 2 0:3 / /x rw -\n1 2 0:3 / /x rw - "
		   "cgroup2\n1 2 0:3 / - cgroup2 c rw\n\\\n\\04 \\9 \\400\n");
	assert_int_equal(memory(), 10000ull * MB);
	assert_true(tsi_limits_cpus(root) >= 1);
}

static void usage_that_is_missing_counts_as_none(void **state)
{
	(void)state;
	use_v2("/job");
	write_number("/sys/fs/cgroup/job/memory.max", 5u * MB);
	assert_int_equal(memory(), 5 * MB);
}

static void overlong_lines_are_survived(void **state)
{
	char *text = malloc(40001);

	(void)state;
	use_v2("/job");
	memset(text, 'x', 40000);
	memcpy(text, "0::/", 4);
	text[40000] = '\0';
	write_file("/proc/self/cgroup", text);
	assert_int_equal(memory(), 10000ull * MB);
	memcpy(text, "1 2 3 / /", 9);
	memcpy(text + 39980, " rw - cgroup2 c rw\n", 19);
	text[39999] = '\0';
	write_file("/proc/self/mountinfo", text);
	write_file("/proc/self/cgroup", "0::/a\n");
	assert_int_equal(memory(), 10000ull * MB);
	free(text);
}

static unsigned affinity(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (unsigned)CPU_COUNT(&set);
}

static unsigned at_most(unsigned quota)
{
	unsigned n = affinity();

	return n < quota ? n : quota;
}

static void cpus_follow_affinity(void **state)
{
	cpu_set_t all, one;
	unsigned n = 0;

	(void)state;
	assert_int_equal(tsi_limits_cpus(root), affinity());
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(n, &all))
		n++;
	CPU_ZERO(&one);
	CPU_SET(n, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(tsi_limits_cpus(root), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void v2_cpu_quota_is_rounded_up(void **state)
{
	(void)state;
	use_v2("/slice/job");
	write_file("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
	assert_int_equal(tsi_limits_cpus(root), affinity());
	write_file("/sys/fs/cgroup/slice/job/cpu.max", "150000 100000\n");
	assert_int_equal(tsi_limits_cpus(root), at_most(2));
	write_file("/sys/fs/cgroup/slice/cpu.max", "1000 100000\n");
	assert_int_equal(tsi_limits_cpus(root), 1);
}

static void v1_cpu_quota_is_rounded_up(void **state)
{
	(void)state;
	use_v1("/job");
	write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us",
		   "100000\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
	assert_int_equal(tsi_limits_cpus(root), affinity());
	write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us",
		   "100001\n");
	assert_int_equal(tsi_limits_cpus(root), at_most(2));
	write_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us",
		   "50000\n");
	assert_int_equal(tsi_limits_cpus(root), 1);
}

static void zero_cpu_period_is_no_limit(void **state)
{
	(void)state;
	use_v2("/job");
	write_file("/sys/fs/cgroup/job/cpu.max", "100000 0\n");
	assert_int_equal(tsi_limits_cpus(root), affinity());
	write_file("/sys/fs/cgroup/job/cpu.max", "100000\n");
	assert_int_equal(tsi_limits_cpus(root), affinity());
}

static void this_machine_has_memory_and_cpus(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(
		tsi_limits_memory("", &bytes, limiter, sizeof(limiter)), 0);
	assert_true(bytes > MB);
	assert_true(tsi_limits_cpus("") >= 1);
	assert_true(tsi_limits_cpus("") <= affinity());
}

static void the_whole_memory_counts_what_is_taken_too(void **state)
{
	(void)state;
	assert_true(tsi_limits_whole_memory(root) == UINT64_MAX);
	free_memory(10000);
	assert_true(tsi_limits_whole_memory(root) == 99999999 * UINT64_C(1024));
	use_v2("/job");
	write_number("/sys/fs/cgroup/job/memory.max", 500u * MB);
	write_number("/sys/fs/cgroup/job/memory.current", 300u * MB);
	assert_int_equal(tsi_limits_whole_memory(root), 500 * MB);
	use_v1("/a");
	write_number("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 70u * MB);
	write_number("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", 69u * MB);
	assert_int_equal(tsi_limits_whole_memory(root), 70 * MB);
	assert_true(tsi_limits_whole_memory("") > MB);
}

#define t(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		t(without_cgroups_available_memory_counts),
		t(nothing_readable_is_said),
		t(v2_leaves_limit_minus_usage_without_file_cache),
		t(v2_max_is_no_limit),
		t(v2_tighter_ancestor_wins),
		t(v2_limit_at_the_mount_of_a_namespace_counts),
		t(usage_beyond_the_limit_leaves_nothing),
		t(v1_leaves_limit_minus_usage_without_file_cache),
		t(v1_tighter_ancestor_wins),
		t(hybrid_takes_the_least_of_both),
		t(mount_that_shows_a_part_is_cut_at_its_root),
		t(path_outside_of_the_mount_uses_the_mount),
		t(mount_that_shows_the_most_is_taken),
		t(garbage_is_no_limit),
		t(usage_that_is_missing_counts_as_none),
		t(overlong_lines_are_survived),
		t(cpus_follow_affinity),
		t(v2_cpu_quota_is_rounded_up),
		t(v1_cpu_quota_is_rounded_up),
		t(zero_cpu_period_is_no_limit),
		t(the_whole_memory_counts_what_is_taken_too),
		t(this_machine_has_memory_and_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
