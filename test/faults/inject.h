/* SPDX-License-Identifier: MIT */
/*
 * inject.h - system calls and allocations that fail on demand.
 *
 * A program of this folder is linked so that the calls of our own objects, not
 * those of the libraries beside them, go through inject.c (ld's --wrap; the
 * Makefile takes the names from that file).  The n-th one of a kind then fails,
 * in whichever thread it comes.  Allocations of our own objects are counted,
 * too.
 */
#ifndef TEST_FAULTS_INJECT_H
#define TEST_FAULTS_INJECT_H

#include <stdbool.h>
#include <stddef.h>

/* At the place of an errno: the call does half of what it was asked for. */
#define INJECT_SHORT (-1)

/* Calls that can fail, and how; the last has no name. */
struct inject_call {
	const char *name;
	const int *error; /* up to 8; 0 ends them */
};
const struct inject_call *inject_calls(void);

/*
 * From now on the n-th call (1 is the next one) of calls()[which] fails with
 * this errno, and so do the calls behind it, as many as times says in all.
 */
void inject_arm(unsigned which, int err, unsigned n, unsigned times);
void inject_disarm(void);

/* Can this kernel let single operations of io_uring fail? */
bool inject_uring_works(void);

/* How many faults there have been since it was armed. */
unsigned inject_reached(void);

/* The calls of this thread in between are the test's own, and don't fail. */
void inject_pause(void);
void inject_resume(void);

/* Likewise, of all threads; nor are they counted. */
void inject_pause_all(void);
void inject_resume_all(void);

/* From now on the time of day jumps by a day at every look, back and forth. */
void inject_jumping_clock(void);
unsigned inject_clock_looks(void); /* at the time of day, since then */

/*
 * Between stop and start no wait of the library that begins ends because a time
 * has passed (but a consumer's after a minute, so that a test can fail): only
 * what is waited for ends it.  That holds in this process and in those that it
 * has forked since inject_share_timers().
 */
bool inject_share_timers(void);
void inject_stop_timers(void);
void inject_start_timers(void);

/* How many waits for messages and descriptors have begun since the stop. */
unsigned inject_untimed_polls(void);

/* Allocations of our own objects that weren't freed. */
size_t inject_live(void);

#endif
