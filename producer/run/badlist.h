/* SPDX-License-Identifier: MIT */
/*
 * badlist.h - the list of bad files: each is counted once, for its class and
 * for the data set, whichever worker finds it.
 *
 * Files that the scan presumes to be bad (data/doubt.h) are counted from the
 * start; they are tried all the same, and one that is good after all is taken
 * off.  If too many are bad (verdict.h), a start is refused, or the readers get
 * a warning.
 *
 * Any thread; what changes the list takes a lock.
 */
#ifndef TSI_RUN_BADLIST_H
#define TSI_RUN_BADLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "run/verdict.h"

struct tsi_badlist;

/*
 * The scan's bad files are on it from the start.  Fails with ENOMEM.  x must
 * outlive it.
 */
int tsi_badlist_create(const struct tsi_index *x, struct tsi_badlist **out);

/* NULL is allowed. */
void tsi_badlist_destroy(struct tsi_badlist *l);

/*
 * File i is bad, for this reason: said once, counted once.  class_lost: by now
 * each file of its class is bad for every sample.
 */
void tsi_badlist_report(struct tsi_badlist *l, uint64_t i, const char *reason,
			bool class_lost);

/* File i is good: it may have been presumed to be bad. */
void tsi_badlist_vouch(struct tsi_badlist *l, uint64_t i);

/* Files on it, those that the scan presumes to be bad included. */
uint64_t tsi_badlist_count(struct tsi_badlist *l);

/* Call fn for those that were looked at, in the order found, as far as they
 * were kept. */
void tsi_badlist_each(struct tsi_badlist *l,
		      void (*fn)(void *arg, const char *path,
				 const char *reason),
		      void *arg);

/* Call fn for each class that has bad files, with how many of its files. */
void tsi_badlist_classes(struct tsi_badlist *l,
			 void (*fn)(void *arg, const char *class_name,
				    uint64_t bad, uint64_t files),
			 void *arg);

/* Are there too many?  EDATA says which, and what to do. */
int tsi_badlist_check(struct tsi_badlist *l, const struct tsi_tolerance *t);

/* Calls when files are found: count() with how many are on the list by now, and
 * warn() when these are too many. */
struct tsi_badlist_listener {
	void (*count)(void *arg, uint64_t bad);
	void (*warn)(void *arg, const char *text);
	void *arg;
};

/*
 * Tell from now on, once for each lost class, and of the data set when there
 * are too many and each time that there are four times more; and at once what
 * tsi_badlist_check() would refuse.  Called once, before any file is reported;
 * the listener calls nothing here, and warn may be NULL.
 */
void tsi_badlist_watch(struct tsi_badlist *l, const struct tsi_tolerance *t,
		       const struct tsi_badlist_listener *to);

#endif
