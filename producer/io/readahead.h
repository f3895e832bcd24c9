/* SPDX-License-Identifier: MIT */
/*
 * readahead.h - what workers are about to read is brought into the page cache
 * in an order that suits the disk.
 *
 * The samples of an epoch come in random order, and a worker asks for few at
 * once.  On a rotating disk each is then a seek, on a network a round trip.
 * Threads of a read-ahead look further along the order, at as many bytes as
 * they may, and ask the kernel to read them: on a rotating disk one thread, a
 * batch at a time, in the order in which they lie on the disk; on a network
 * several threads at once.  Which bytes a worker gets, and when it asks for
 * them, doesn't change.
 *
 * Errors are ignored: the worker that reads the file meets them again.
 */
#ifndef TSI_IO_READAHEAD_H
#define TSI_IO_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "io/reader.h"

#define TSI_READAHEAD_THREADS 8

struct tsi_readahead;

/* Where bytes lie: those of a lower major, then of a lower minor come first. */
struct tsi_readahead_place {
	uint64_t major, minor;
};

/* How files are looked at; tests have ones of their own. */
struct tsi_readahead_ops {
	/*
	 * How many bytes there are to read and, unless place is NULL, where;
	 * false: none that have to be read ahead, because the file is in the
	 * cache or can't be read.  With NULL the file stays open as *fd.
	 */
	bool (*look)(const struct tsi_read_request *q, uint64_t *bytes,
		     struct tsi_readahead_place *place, int *fd);
	/* Have them read, without waiting for them; fd -1: it isn't open. */
	void (*advise)(const struct tsi_read_request *q, int fd);
};

extern const struct tsi_readahead_ops tsi_readahead_by_kernel;

struct tsi_readahead_opts {
	uint64_t budget;  /* bytes that may be ahead of the workers ... */
	uint64_t samples; /* ... and samples, at least 1 */
	unsigned threads; /* 1 to TSI_READAHEAD_THREADS */
	bool sorted;      /* in batches, by place */
	uint64_t end;     /* sequence numbers from here on are never read */
	/* What is read for a sequence number; false: nothing.  Any thread. */
	bool (*locate)(void *arg, uint64_t seq, struct tsi_read_request *out);
	void *arg;
	const struct tsi_readahead_ops *ops;
};

/*
 * Start.  Nothing is looked at before the first tsi_readahead_tell().
 * Fails with TSOCK_ENOMEM, TSOCK_ESYS (no thread).
 */
int tsi_readahead_create(const struct tsi_readahead_opts *opts,
			 struct tsi_readahead **out);

/*
 * A worker reads this sequence number itself now, and those before it are read
 * or under way.  Any thread.  NULL is allowed.
 */
void tsi_readahead_tell(struct tsi_readahead *r, uint64_t seq);

/*
 * Stop: at most one file of each thread is still finished.  Returns at once.
 */
void tsi_readahead_stop(struct tsi_readahead *r);

/* Stop, and wait for the threads.  NULL is allowed. */
void tsi_readahead_destroy(struct tsi_readahead *r);

#endif
