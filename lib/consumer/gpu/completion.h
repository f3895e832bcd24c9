/* SPDX-License-Identifier: MIT */
/*
 * completion.h - a thread that waits until work on a GPU is done.
 *
 * What is deferred is polled now and then, and told when it is done.  The
 * thread is started when it is first needed, sleeps in between, and for good
 * while nothing is deferred; it never waits for a stream.  After the GPU has
 * reported an error nothing is done any more, for nobody knows what still runs;
 * only after retire(), and if the GPU's context is beyond repair, everything
 * is.
 *
 * Knows neither batches nor streams.
 */
#ifndef TSI_CONSUMER_GPU_COMPLETION_H
#define TSI_CONSUMER_GPU_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_completion;

/* Embedded in what is deferred. */
struct tsi_deferred {
	struct tsi_deferred *next; /* the completion's */
	void *owner;
	/* By its thread: 0: done; TSOCK_EAGAIN; or the device's error. */
	int (*poll)(struct tsi_deferred *d);
	/* By its thread, last of all: the memory of d may be gone after it. */
	void (*done)(struct tsi_deferred *d);
};

int tsi_completion_create(unsigned device, struct tsi_completion **out);

/* Nothing is deferred any more.  Any thread, its own too. */
void tsi_completion_destroy(struct tsi_completion *p);

/* See to it that the thread runs. */
int tsi_completion_start(struct tsi_completion *p);

/* Any thread, after start(): d->done() is called when d->poll() says so. */
void tsi_completion_defer(struct tsi_completion *p, struct tsi_deferred *d);

/* Nobody wants anything more of the GPU. */
void tsi_completion_retire(struct tsi_completion *p);

/* The error that the GPU reported, with its message; 0: none. */
int tsi_completion_error(struct tsi_completion *p);

/* How many are deferred now; how many were done so far. */
unsigned tsi_completion_count(const struct tsi_completion *p);
unsigned tsi_completion_returned(const struct tsi_completion *p);

/*
 * Wait until more than seen were done.  TSOCK_EAGAIN when deadline_ms
 * has passed, or the error that the GPU reported.
 */
int tsi_completion_wait(struct tsi_completion *p, unsigned seen,
			int64_t deadline_ms);

#endif
