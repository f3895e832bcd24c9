/* SPDX-License-Identifier: MIT */
/*
 * detached_reader.h - streams that go on without a reader that they wait for
 * (TSOCK_SLOW_DETACH), and readers of these, which may miss samples: they count
 * what they missed.
 */
#ifndef TEST_LIB_DETACHED_READER_H
#define TEST_LIB_DETACHED_READER_H

#include "test/lib/reader.h"

#define DETACH_MS 300 /* how long a reader is waited for */

/* A stream of 1000 samples for each epoch, with a ring of 64. */
struct source detached_source(const char *name);

/* Where the next batch should begin, and what was missed so far. */
struct trail {
	uint64_t next, missed;
	bool begun;
};

/* A batch that was handed out: it begins where it should, or what lies between
 * was missed. */
void detached_trail_step(struct trail *w, const tsock *t, const tsock_batch *b);

/* The next batch, in this epoch or the next one; it is checked. */
tsock_batch *detached_trail_take(const struct reader *r, tsock *t,
				 struct trail *w);

/* A child that stops itself has done so. */
pid_t detached_await_stop(pid_t pid);

/*
 * A child that stops itself with so many batches in its hands (8 at most); once
 * somebody lets it go on, it looks at these again, gives them back and reads a
 * hundred more.  Then it has missed samples, or not.
 */
pid_t detached_start_stopping(const struct reader *r, unsigned held,
			      bool misses);

/*
 * A reader in this process: the longest time that it waited for a batch.  On a
 * busy machine it may itself be waited for, and detached, while others read.
 */
double detached_read_ahead(tsock *t, const struct reader *r, struct trail *w,
			   uint64_t samples);

/* Others read along, each at its end: until that process has ended, well. */
void detached_read_until_ended(tsock *t, const struct reader *r,
			       struct trail *w, pid_t pid);

#endif
