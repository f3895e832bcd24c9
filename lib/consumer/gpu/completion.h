/*
 * completion.h - batches that were given back while work on a GPU still reads
 * them.
 *
 * A thread, begun with the first stream that is named, looks now and then
 * whether the work is done, and then gives the batch back in earnest.  It
 * sleeps in between, and for good while there is nothing to wait for; nothing
 * ever waits for a stream.  When the GPU reports an error nothing more is given
 * back, for nobody knows what still reads; only after the handle has left, and
 * when the GPU's context is beyond repair, are all let go.
 */
#ifndef TSI_CONSUMER_GPU_COMPLETION_H
#define TSI_CONSUMER_GPU_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_completion;
struct tsock_batch;

int tsi_completion_create(unsigned device, struct tsi_completion **out);

/* Nothing is pending.  Any thread, its own too. */
void tsi_completion_destroy(struct tsi_completion *p);

/* See to it that the thread runs. */
int tsi_completion_start(struct tsi_completion *p);

/* Any thread: the last reference to b is gone, and streams were named. */
void tsi_completion_defer(struct tsi_completion *p, struct tsock_batch *b);

/* The handle has left. */
void tsi_completion_retire(struct tsi_completion *p);

/* The error that the GPU reported, with its message; 0: none. */
int tsi_completion_error(struct tsi_completion *p);

/* How many there are; how many were given back in earnest so far. */
unsigned tsi_completion_count(const struct tsi_completion *p);
unsigned tsi_completion_returned(const struct tsi_completion *p);

/*
 * Wait until more than seen were given back.  TSOCK_EAGAIN when deadline_ms
 * has passed, or the error that the GPU reported.
 */
int tsi_completion_wait(struct tsi_completion *p, unsigned seen,
			int64_t deadline_ms);

#endif
