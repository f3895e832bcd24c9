/* SPDX-License-Identifier: MIT */
/*
 * proc.h - processes of a system test: checks that end a child, children that
 * die with their parent, and a folder for the sockets.
 *
 * Checks in a child print what was wrong and exit 1.
 */
#ifndef TEST_LIB_PROC_H
#define TEST_LIB_PROC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tsock/tsock.h"

#define die(...) \
	do { \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		_exit(1); \
	} while (0)
#define need(cond) \
	do { \
		if (!(cond)) \
			die("not so: %s (%s)", #cond, tsock_errmsg()); \
	} while (0)

void proc_pause_us(unsigned us);

void proc_log_line(void *arg, int level, const char *line);

/* A child; it dies with its parent. */
pid_t proc_spawn(void);

/* Has a child ended that nobody has waited for yet? */
bool proc_has_ended(pid_t pid);

/* Wait for a child: its exit status, 1000 + the signal, or -1.  One that doesn't
 * end within minutes is killed. */
int proc_ended(pid_t pid);

void proc_kill_and_reap(pid_t pid);

/* A test that failed leaves its children to this. */
int proc_end_children(void **state);

/* A fresh folder for the sockets unless the runner has made one. */
void proc_own_folder(void);

#endif
