/* SPDX-License-Identifier: MIT */
/*
 * stream_events.h - the streams whose work reads a batch, and whether that work
 * is done.
 *
 * Each stream has a local event, created once and kept for the next batch.
 * After the last reference to the batch is gone, the event is recorded on its
 * stream behind all that was queued there; when the event is reached, that work
 * is done.  Nothing is ever recorded into a stream that is being captured, and
 * nothing here waits for a stream.
 *
 * find and keep belong to the thread that has the batch; poll to the thread
 * that takes it over after that.
 */
#ifndef TSI_CONSUMER_GPU_STREAM_EVENTS_H
#define TSI_CONSUMER_GPU_STREAM_EVENTS_H

#include <stdbool.h>

#include "mem/gpu.h"

struct tsi_stream_event {
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
	bool covered; /* the event lies behind all of the work */
	bool done;
};

struct tsi_stream_events {
	struct tsi_stream_event *list;
	unsigned count;    /* in use */
	unsigned made;     /* with an event */
	unsigned capacity; /* of the list */
};

/* The entry of a stream, a new one if it has none. */
int tsi_stream_events_find(struct tsi_stream_events *u, unsigned device,
			   tsi_gpu_stream s, struct tsi_stream_event **out);

/* Was its stream kept before, and named since the last record? */
bool tsi_stream_events_named(const struct tsi_stream_events *u,
			     const struct tsi_stream_event *e);

/* The stream of an entry that was found reads the batch from now on. */
void tsi_stream_events_keep(struct tsi_stream_events *u,
			    const struct tsi_stream_event *e);

/*
 * Is all work done?  Records what isn't recorded yet.  0; TSOCK_EAGAIN; or the
 * device's error.
 */
int tsi_stream_events_poll(struct tsi_stream_events *u);

/* No stream reads the batch any more. */
void tsi_stream_events_reset(struct tsi_stream_events *u);
void tsi_stream_events_free(struct tsi_stream_events *u);

#endif
