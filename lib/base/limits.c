/* SPDX-License-Identifier: MIT */
/*
 * limits.c - how much memory and how many CPUs this process may still take.
 *
 * Reads small files under /proc and /sys only when asked, and remembers
 * nothing: limits are changed under running processes.
 */
#include "base/limits.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LEN = 4096 };

/*
 * A cgroup of this process and those around it: dir is walked up to its first
 * stop characters, the mount point, beyond which nothing can be seen.
 */
struct group {
	const char *root;
	char dir[PATH_LEN];
	size_t stop;
};

static FILE *open_file(const char *root, const char *dir, const char *name)
{
	char path[2 * PATH_LEN];
	int n = snprintf(path, sizeof(path), "%s%s/%s", root, dir, name);

	return n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
}

/* The number that text starts with; false for "max", "-1" and nonsense. */
static bool parse_number(const char *text, const char **end, uint64_t *out)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &rest, 10);
	if (errno || (*rest && !strchr(" \t\n", *rest)))
		return false;
	if (end)
		*end = rest + strspn(rest, " \t");
	return true;
}

static bool read_number(const struct group *g, const char *name, uint64_t *out)
{
	char line[64];

	return tsi_file_first_line(line, sizeof(line), "%s%s/%s", g->root,
				   g->dir, name) &&
	       parse_number(line, NULL, out);
}

/* The number after key in a file of lines "key number". */
static bool read_keyed(const char *root, const char *dir, const char *name,
		       const char *key, uint64_t *out)
{
	FILE *f = open_file(root, dir, name);
	size_t len = strlen(key);
	char line[256];
	bool ok = false;

	if (!f)
		return false;
	while (!ok && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) || !strchr(" \t", line[len]))
			continue;
		ok = parse_number(line + len + strspn(line + len, " \t"), NULL,
				  out);
	}
	fclose(f);
	return ok;
}

/* Is word in a list with commas?  The empty word is in the empty list only. */
static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	if (!len)
		return !*list;
	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, word, len) && (!p[len] || p[len] == ','))
			return true;
	}
	return false;
}

/*
 * This process's path in the hierarchy of a controller; the empty controller
 * is version 2's single hierarchy, "0::/path".
 */
static bool find_path(const char *root, const char *controller, char *path)
{
	FILE *f = open_file(root, "/proc/self", "cgroup");
	char line[PATH_LEN];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		char *list = strchr(line, ':');
		char *p = list ? strchr(list + 1, ':') : NULL;

		if (!p || p[1] != '/')
			continue;
		*p++ = '\0';
		p[strcspn(p, "\n")] = '\0';
		found = listed(list + 1, controller);
		if (found)
			memcpy(path, p, strlen(p) + 1);
	}
	fclose(f);
	return found;
}

/* mountinfo writes blanks, tabs, newlines and backslashes as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 +
				     (s[3] - '0'));
			s += 3;
		} else {
			*to = *s;
		}
	}
	*to = '\0';
}

/* Is this line the mount of the controller's hierarchy?  Which, and where? */
static bool parse_mount(char *line, const char *controller, char **shown,
			char **point)
{
	char *save, *word = strtok_r(line, " \n", &save);
	const char *type, *options;

	for (int i = 0; word && i < 3; i++)
		word = strtok_r(NULL, " \n", &save);
	*shown = word;
	*point = strtok_r(NULL, " \n", &save);
	while (word && strcmp(word, "-"))
		word = strtok_r(NULL, " \n", &save);
	if (!word)
		return false;
	type = strtok_r(NULL, " \n", &save);
	strtok_r(NULL, " \n", &save);
	options = strtok_r(NULL, " \n", &save);
	if (!type || !options)
		return false;
	unescape(*shown);
	unescape(*point);
	if (!*controller)
		return !strcmp(type, "cgroup2");
	return !strcmp(type, "cgroup") && listed(options, controller);
}

/* The part of path below base; NULL if it isn't below it. */
static const char *below(const char *path, const char *base)
{
	size_t len = strcmp(base, "/") ? strlen(base) : 0;

	if (!strncmp(path, "/..", 3) || strncmp(path, base, len) ||
	    (path[len] && path[len] != '/'))
		return NULL;
	return strcmp(path + len, "/") ? path + len : "";
}

/*
 * Find where the controller's cgroups can be seen.  Of several mounts the one
 * that shows most of the way up.  A mount that doesn't show this process's
 * path (a cgroup namespace, a container's bind mount) is used as it is, if
 * there is no better: it is then the container's own group.
 */
static bool find_group(const char *root, const char *controller,
		       struct group *g)
{
	size_t best = SIZE_MAX, size = 0;
	char path[PATH_LEN], *line = NULL;
	bool found = false;
	FILE *f;

	if (!find_path(root, controller, path))
		return false;
	f = open_file(root, "/proc/self", "mountinfo");
	if (!f)
		return false;
	while (getline(&line, &size, f) >= 0) {
		char *shown, *point;
		const char *rest;
		size_t rank;

		if (!parse_mount(line, controller, &shown, &point))
			continue;
		rest = below(path, shown);
		rank = rest ? strlen(shown) : SIZE_MAX - 1;
		if (rank >= best ||
		    strlen(point) + (rest ? strlen(rest) : 0) >= PATH_LEN)
			continue;
		best = rank;
		found = true;
		g->root = root;
		g->stop = strlen(point);
		snprintf(g->dir, sizeof(g->dir), "%s%s", point,
			 rest ? rest : "");
	}
	free(line);
	fclose(f);
	return found;
}

/* On to the group around this one; false at the mount point. */
static bool next_group(struct group *g)
{
	char *slash = strrchr(g->dir, '/');

	if (!slash || strlen(g->dir) <= g->stop)
		return false;
	*slash = '\0';
	return strlen(g->dir) >= g->stop;
}

/* The names of the files in the two versions of cgroups. */
struct names {
	const char *controller, *limit, *usage, *cache;
};

/* What each of them leaves; name->usage NULL: what each of them allows. */
static void least_of_groups(const char *root, const struct names *name,
			    uint64_t *bytes, char *limiter, size_t n)
{
	struct group g;

	if (!find_group(root, name->controller, &g))
		return;
	do {
		uint64_t limit, usage = 0, cache = 0, left;

		if (!read_number(&g, name->limit, &limit))
			continue;
		if (name->usage) {
			read_number(&g, name->usage, &usage);
			read_keyed(root, g.dir, "memory.stat", name->cache,
				   &cache);
		}
		usage -= cache < usage ? cache : usage;
		left = limit > usage ? limit - usage : 0;
		if (left >= *bytes)
			continue;
		*bytes = left;
		snprintf(limiter, n, "%s/%s", g.dir, name->limit);
	} while (next_group(&g));
}

int tsi_limits_memory(const char *root, uint64_t *bytes, char *limiter,
		      size_t n)
{
	static const struct names v1 = { "memory", "memory.limit_in_bytes",
					 "memory.usage_in_bytes",
					 "total_inactive_file" };
	static const struct names v2 = { "", "memory.max", "memory.current",
					 "inactive_file" };
	uint64_t least = UINT64_MAX, kib;

	if (read_keyed(root, "/proc", "meminfo", "MemAvailable:", &kib)) {
		least = kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
		snprintf(limiter, n, "MemAvailable in /proc/meminfo");
	}
	least_of_groups(root, &v1, &least, limiter, n);
	least_of_groups(root, &v2, &least, limiter, n);
	if (least == UINT64_MAX)
		return tsi_err(TSOCK_ENOTSUP, "can't tell how much memory is "
					      "free: no /proc/meminfo here");
	*bytes = least;
	return 0;
}

uint64_t tsi_limits_whole_memory(const char *root)
{
	static const struct names v1 = { "memory", "memory.limit_in_bytes",
					 NULL, NULL };
	static const struct names v2 = { "", "memory.max", NULL, NULL };
	uint64_t least = UINT64_MAX, kib;
	char limiter[2 * PATH_LEN];

	if (read_keyed(root, "/proc", "meminfo", "MemTotal:", &kib) &&
	    kib < UINT64_MAX / 1024)
		least = kib * 1024;
	least_of_groups(root, &v1, &least, limiter, sizeof(limiter));
	least_of_groups(root, &v2, &least, limiter, sizeof(limiter));
	return least;
}

unsigned tsi_limits_affinity(uint64_t *bits, unsigned words)
{
	/* The kernel refuses a set smaller than its own. */
	for (int n = 1024; n <= 1 << 20; n *= 2) {
		cpu_set_t *set = CPU_ALLOC((size_t)n);
		size_t size = CPU_ALLOC_SIZE((size_t)n);
		int count = 0;

		if (!set)
			break;
		if (!sched_getaffinity(0, size, set))
			count = CPU_COUNT_S(size, set);
		for (unsigned i = 0; i < words * 64 && count > 0; i++) {
			if (i % 64 == 0)
				bits[i / 64] = 0;
			if (CPU_ISSET_S(i, size, set))
				bits[i / 64] |= UINT64_C(1) << i % 64;
		}
		CPU_FREE(set);
		if (count > 0)
			return (unsigned)count;
	}
	return 0;
}

static void quota_v1(const struct group *g, uint64_t *quota, uint64_t *period)
{
	if (!read_number(g, "cpu.cfs_quota_us", quota) ||
	    !read_number(g, "cpu.cfs_period_us", period))
		*period = 0;
}

static void quota_v2(const struct group *g, uint64_t *quota, uint64_t *period)
{
	char line[64];
	const char *rest;

	if (!tsi_file_first_line(line, sizeof(line), "%s%s/cpu.max", g->root,
				 g->dir) ||
	    !parse_number(line, &rest, quota) ||
	    !parse_number(rest, NULL, period))
		*period = 0;
}

static void least_quota(const char *root, const char *controller,
			void (*read)(const struct group *, uint64_t *,
				     uint64_t *),
			unsigned *cpus)
{
	struct group g;

	if (!find_group(root, controller, &g))
		return;
	do {
		uint64_t quota = 0, period = 0, whole;

		read(&g, &quota, &period);
		if (!period || !quota)
			continue;
		whole = quota / period + (quota % period != 0);
		if (whole < *cpus)
			*cpus = (unsigned)whole;
	} while (next_group(&g));
}

unsigned tsi_limits_quota(const char *root)
{
	unsigned cpus = UINT_MAX;

	least_quota(root, "cpu", quota_v1, &cpus);
	least_quota(root, "", quota_v2, &cpus);
	return cpus;
}

unsigned tsi_limits_cpus(const char *root)
{
	unsigned cpus = tsi_limits_affinity(NULL, 0);
	unsigned quota = tsi_limits_quota(root);

	if (!cpus)
		cpus = 1;
	return quota < cpus ? quota : cpus;
}
