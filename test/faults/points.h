/* SPDX-License-Identifier: MIT */
/*
 * points.h - named points at which a process is killed or stopped.
 *
 * A point is the moment before a function that is called from another file, as
 * linked by ld's --wrap (see inject.h): the library itself has no hooks.
 */
#ifndef TEST_FAULTS_POINTS_H
#define TEST_FAULTS_POINTS_H

#include <stdatomic.h>

/* In memory that the test and its processes share; one for each process that
 * may be hit. */
struct points {
	_Atomic int point; /* index into names, -1: none */
	_Atomic int times; /* it is hit when it is reached so often */
	_Atomic int sig;
};

/*
 * The names of the points of a consumer and of a producer; of a producer to
 * which readers return, that detaches some, or that makes a view, and of these
 * readers, there are some more.  NULL ends them.
 */
extern const char *const points_consumer[];
extern const char *const points_producer[];
extern const char *const points_returning[];
extern const char *const points_rejoining[];
extern const char *const points_viewing[];
extern const char *const points_detached[];
extern const char *const points_entering[];
extern const char *const points_detaching[];

/* From now on this process obeys p; its points are these. */
void points_obey(struct points *p, const char *const *names);

/* Hit the process that obeys p there, at the n-th time from now on. */
void points_set(struct points *p, int point, int n, int sig);

#endif
