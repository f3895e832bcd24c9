/* SPDX-License-Identifier: MIT */
#include "test/lib/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

static FILE *open_proc(pid_t pid, const char *what)
{
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	f = fopen(path, "r");
	assert_non_null(f);
	return f;
}

unsigned usage_entries(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

static unsigned entries_of_process(pid_t pid, const char *what)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return usage_entries(path);
}

unsigned usage_descriptors(pid_t pid)
{
	return entries_of_process(pid, "fd");
}

static void count_mappings(pid_t pid, struct usage *u)
{
	FILE *f = open_proc(pid, "maps");
	char line[4352];

	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "/memfd:tsock"))
			u->rings++;
		else if (strchr(line, '/'))
			u->files++;
		else
			u->others++;
	}
	fclose(f);
}

unsigned usage_mappings(pid_t pid)
{
	struct usage u = { 0 };

	count_mappings(pid, &u);
	return u.rings + u.files + u.others;
}

static void read_memory(pid_t pid, struct usage *u)
{
	FILE *f = open_proc(pid, "status");
	char line[256];

	u->memory_kib = u->shared_kib = -1;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "RssAnon: %ld", &u->memory_kib);
		sscanf(line, "RssShmem: %ld", &u->shared_kib);
	}
	fclose(f);
}

long usage_memory(pid_t pid)
{
	struct usage u;

	read_memory(pid, &u);
	return u.memory_kib;
}

struct usage usage_of(pid_t pid)
{
	struct usage u = { .descriptors = usage_descriptors(pid),
			   .threads = entries_of_process(pid, "task") };

	count_mappings(pid, &u);
	read_memory(pid, &u);
	return u;
}
