/*
 * stream_events.h - the streams that were named as users of a batch.
 *
 * Each has a local event, made once and kept with the batch for the next time.
 * After the last reference to the batch is gone, the event is recorded on its
 * stream behind all that was queued there; when it is reached, so is the end
 * of that work.  Nothing is ever recorded into a stream that is being captured.
 */
#ifndef TSI_CONSUMER_GPU_STREAM_EVENTS_H
#define TSI_CONSUMER_GPU_STREAM_EVENTS_H

#include <stdbool.h>

#include "mem/gpu.h"

struct tsock_batch;

struct tsi_stream_event {
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
	bool covered; /* the event lies behind all of the work */
	bool done;
};

struct tsi_stream_events {
	struct tsi_stream_event *use;
	unsigned count; /* in use */
	unsigned made;  /* with an event */
	unsigned room;
};

/*
 * Is all work done?  Records what isn't recorded yet.  0; TSOCK_EAGAIN; or the
 * device's error.
 */
int tsi_stream_events_poll(struct tsi_stream_events *u);

void tsi_stream_events_free(struct tsi_stream_events *u);

#endif
