/* SPDX-License-Identifier: MIT */
/*
 * bench.c - statistics, pinning and printing for the benchmarks.
 */
#include "bench/bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void complain(const char *what, const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", what);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void bench_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain("skipped", fmt, ap);
	va_end(ap);
	exit(77);
}

void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain("failed", fmt, ap);
	va_end(ap);
	exit(1);
}

int bench_quick(int usually, int quick)
{
	const char *e = getenv("QUICK");

	return e && strcmp(e, "1") == 0 ? quick : usually;
}

static cpu_set_t allowed(void)
{
	static cpu_set_t set;
	static bool known;

	/* Once, before anything is pinned: later it would be one CPU. */
	if (!known && sched_getaffinity(0, sizeof(set), &set))
		bench_die("can't ask for the CPU affinity");
	known = true;
	return set;
}

int bench_cpus(void)
{
	cpu_set_t set = allowed();

	return CPU_COUNT(&set);
}

void bench_pin(pid_t tid, int i)
{
	cpu_set_t set = allowed(), one;

	i %= CPU_COUNT(&set);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && i-- == 0) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	if (sched_setaffinity(tid, sizeof(one), &one))
		bench_die("can't pin a thread to a CPU");
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_percentile(double *v, size_t n, double percent)
{
	double at = percent / 100 * (double)(n - 1);
	size_t i = (size_t)at;

	qsort(v, n, sizeof(*v), ascending);
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

double bench_median(double *v, size_t n)
{
	return bench_percentile(v, n, 50);
}

double bench_spread(double *v, size_t n)
{
	double q1 = bench_percentile(v, n, 25);
	double q3 = bench_percentile(v, n, 75);

	return (q3 - q1) / bench_median(v, n);
}

int64_t bench_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

long bench_proc_kb(pid_t pid, const char *file, const char *row)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, row, strlen(row)) == 0)
			kb = strtol(line + strlen(row), NULL, 10);
	fclose(f);
	return kb;
}

void bench_head(const char *title)
{
	printf("\n%s\n%-34s %12s %-12s %8s %7s  %s\n", title, "case", "value",
	       "unit", "ratio", "spread", "against");
	fflush(stdout);
}

static void json_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\": ", key);
	if (!text) {
		fputs("null", f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ')
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void json_line(FILE *f, const struct bench_result *r)
{
	fputc('{', f);
	json_text(f, "bench", r->bench);
	fputs(", ", f);
	json_text(f, "case", r->name);
	fprintf(f, ", \"value\": %.6g, ", r->value);
	json_text(f, "unit", r->unit);
	fputs(", ", f);
	json_text(f, "against", r->against);
	if (r->against)
		fprintf(f, ", \"ratio\": %.4f", r->ratio);
	else
		fputs(", \"ratio\": null", f);
	fprintf(f, ", \"spread\": %.4f}\n", r->spread);
}

void bench_print(const struct bench_result *r)
{
	const char *path = getenv("JSON");
	char ratio[16] = "";

	if (r->against)
		snprintf(ratio, sizeof(ratio), "%.3f", r->ratio);
	printf("%-34s %12.5g %-12s %8s %6.1f%%  %s\n", r->name, r->value,
	       r->unit, ratio, r->spread * 100, r->against ? r->against : "");
	fflush(stdout);
	if (path && *path) {
		FILE *f = fopen(path, "a");

		if (!f)
			bench_die("can't append to JSON=%s", path);
		json_line(f, r);
		if (fclose(f))
			bench_die("can't write to JSON=%s", path);
	}
}
