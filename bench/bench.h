/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what the benchmarks share: robust statistics, pinning, and one
 * way to print a result.
 *
 * A result is a line of a table on stdout and, if the environment names a
 * file in JSON, one JSON object appended to that file: bench, case, value,
 * unit, against, ratio, spread.  QUICK=1 in the environment asks for a short
 * run.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Print the reason and end: with 77, which means skipped, or with 1. */
void bench_skip(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
void bench_die(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* QUICK=1: then the second number, else the first. */
int bench_quick(int usually, int quick);

/* Where this process may run. */
int bench_cpus(void);

/* Pin a thread (0: this one) to the i-th of those, counted round. */
void bench_pin(pid_t tid, int i);

/* Each sorts v. */
double bench_percentile(double *v, size_t n, double percent);
double bench_median(double *v, size_t n);

/* Distance of the quartiles, in parts of the median. */
double bench_spread(double *v, size_t n);

/* Nanoseconds of CPU that a process has used; 0 if it is gone. */
int64_t bench_cpu_ns(pid_t pid);

/* A row of /proc/PID/FILE such as "Rss:", in kB; -1 if there is none. */
long bench_proc_kb(pid_t pid, const char *file, const char *row);

struct bench_result {
	const char *bench;
	const char *name; /* of the case */
	double value;
	const char *unit;
	const char *against; /* what the ratio compares with; NULL: nothing */
	double ratio;        /* value divided by the other one's */
	double spread;       /* of the ratio if there is one, else of value */
};

/* The table's head; once, before the first result. */
void bench_head(const char *title);
void bench_print(const struct bench_result *r);

#endif
