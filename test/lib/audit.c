/* SPDX-License-Identifier: MIT */
/*
 * audit.c - what a test program leaves open, running or mapped.
 */
#include "test/lib/audit.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ThreadSanitizer may start a thread of its own, once there are others. */
#ifdef __SANITIZE_THREAD__
#define OTHERS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OTHERS 1
#endif
#endif
#ifndef OTHERS
#define OTHERS 0
#endif

static struct {
	pid_t pid;
	unsigned descriptors, threads;
} before;
static unsigned patience_ms = 60000; /* for threads that are about to end */

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned wait_for_threads(void)
{
	struct timespec ms = { 0, 1000000 };
	unsigned n = entries("/proc/self/task");

	for (unsigned i = 0; n > before.threads && i < patience_ms; i++) {
		nanosleep(&ms, NULL);
		n = entries("/proc/self/task");
	}
	return n;
}

static void say_descriptors(void)
{
	char path[64], what[256];
	ssize_t n;

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what) - 1);
		if (n > 0)
			fprintf(stderr, "audit: descriptor %d: %.*s\n", fd,
				(int)n, what);
	}
}

/* Lines of /proc/self/maps that show a memfd of ours. */
static unsigned mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "memfd:tsock")) {
			fprintf(stderr, "audit: mapped: %s", line);
			n++;
		}
	}
	if (f)
		fclose(f);
	return n;
}

static bool same(const char *what, unsigned is, unsigned was)
{
	if (is > was)
		fprintf(stderr, "audit: %u %s, %u at the beginning\n", is, what,
			was);
	return is <= was;
}

static void audit(void)
{
	bool good = true;
	pid_t child;

	if (getpid() != before.pid)
		return;
	fflush(NULL);
	child = waitpid(-1, NULL, WNOHANG);
	if (child >= 0 || errno != ECHILD) {
		fprintf(stderr, "audit: a child wasn't waited for (%d)\n",
			(int)child);
		good = false;
	}
	good &= same("threads", wait_for_threads(), before.threads);
	if (!same("descriptors", entries("/proc/self/fd"),
		  before.descriptors)) {
		say_descriptors();
		good = false;
	}
	good &= mapped() == 0;
	if (!good)
		_exit(99);
}

__attribute__((constructor)) static void begin(void)
{
	before.pid = getpid();
	before.descriptors = entries("/proc/self/fd");
	before.threads = entries("/proc/self/task") + OTHERS;
	atexit(audit);
}

void audit_this_program(void)
{
}

void audit_threads_within(unsigned ms)
{
	patience_ms = ms;
}
