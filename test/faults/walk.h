/* SPDX-License-Identifier: MIT */
/*
 * walk.h - a piece of work again and again, each time with another of its
 * calls failing, until it makes no more of them.
 *
 * Each time is a child process.  It does the work with the fault, and once more
 * without any.  What has to hold:
 *
 *   - nothing crashes and nothing hangs
 *   - the first time is a success, or an error with a sentence
 *   - the second time is a success
 *   - afterwards there are as many allocations, descriptors, threads and files
 *     in the folder of the sockets as without any fault
 */
#ifndef TEST_FAULTS_WALK_H
#define TEST_FAULTS_WALK_H

#include <stdbool.h>

struct walk {
	const char *name;
	/* 0, or an error with its sentence in tsock_errmsg().  Bytes that are
	 * wrong are for die().  Nothing may be waited for longer than that. */
	int (*work)(int patience_ms);
	/* Names of kinds, with a space behind each; NULL: all. */
	const char *kinds;
	/* Only that error of each kind which says that there are no more
	 * descriptors, or that there is no memory. */
	bool shortage;
};

/* The 1st call of every kind, the 2nd, ...; fails as cmocka does.  Waiting in
 * vain is a failure. */
void walk_one_by_one(const struct walk *w);

/* From the 1st call on all of them fail, from the 4th on, the 16th, ... */
void walk_from_each_on(const struct walk *w);

#endif
