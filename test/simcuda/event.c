/* SPDX-License-Identifier: MIT */
/*
 * event.c - events: each names the mark of its last record.
 *
 * A wait keeps the mark that the event had at the call; recording the event
 * anew gives it another one.  An event never recorded has none, and nobody
 * waits for it.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_event *sim_event_get(cudaEvent_t h)
{
	struct sim_event *e = sim.event;

	while (e && e->handle != (uintptr_t)h)
		e = e->next;
	return e;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	cudaError_t err = sim_enter("cudaEventCreateWithFlags", SIM_CONTEXT);
	struct sim_event *e;

	if (!err && (!event || flags > 7 ||
		     ((flags & cudaEventInterprocess) &&
		      !(flags & cudaEventDisableTiming))))
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave(err);
	e = sim_alloc(sizeof(*e));
	e->device = sim_current();
	sim.next_id += 16;
	e->handle = sim.next_id;
	e->next = sim.event;
	sim.event = e;
	memcpy(event, &e->handle, sizeof(*event));
	return sim_leave(cudaSuccess);
}

static cudaError_t get(cudaEvent_t h, struct sim_event **out)
{
	*out = sim_event_get(h);
	if (!*out)
		return cudaErrorInvalidResourceHandle;
	return sim.dev[(*out)->device].sticky;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	cudaError_t err = sim_enter("cudaEventDestroy", SIM_ANYTIME);
	struct sim_event **at = &sim.event, *e;

	while (!err && *at && (*at)->handle != (uintptr_t)event)
		at = &(*at)->next;
	if (!err && !*at)
		err = cudaErrorInvalidResourceHandle;
	if (!err) {
		e = *at;
		*at = e->next;
		sim_mark_put(e->mark);
		free(e);
	}
	return sim_leave(err);
}

static cudaError_t record(struct sim_event *e, cudaStream_t stream)
{
	struct sim_stream *s, *any;
	cudaError_t err = sim_stream_get(stream, &any);

	if (!err && any->device != e->device)
		err = cudaErrorInvalidResourceHandle;
	if (!err)
		err = sim_stream_for_work(stream, &s);
	if (err)
		return err;
	e->captured = !s;
	e->capture_number = any->capture_number;
	sim_mark_put(e->mark);
	e->mark = NULL;
	if (!s)
		return cudaSuccess;
	e->mark = sim_mark_create();
	sim_record(s, e->mark);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t err = sim_enter("cudaEventRecord", SIM_CONTEXT);
	struct sim_event *e;

	if (!err)
		err = get(event, &e);
	return sim_leave(err ? err : record(e, stream));
}

/* To ask for an event of a capture that goes on ends that capture. */
static cudaError_t ask_captured(const struct sim_event *e)
{
	for (struct sim_stream *s = sim.stream; s; s = s->next)
		if (s->capture == cudaStreamCaptureStatusActive &&
		    s->capture_number == e->capture_number)
			sim_capture_invalidate(s);
	return cudaErrorCapturedEvent;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	cudaError_t err = sim_enter("cudaEventQuery", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_event *e;

	if (!err)
		err = get(event, &e);
	if (!err && e->captured)
		err = ask_captured(e);
	if (!err && e->mark && !e->mark->done) {
		if (sim_insist(&e->mark->queries))
			sim_demand(e->mark->stream, e->mark->seq);
		err = cudaErrorNotReady;
	}
	return sim_leave(err);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	cudaError_t err =
		sim_enter("cudaEventSynchronize", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_event *e;
	unsigned device;

	if (!err)
		err = get(event, &e);
	if (!err && e->captured)
		err = ask_captured(e);
	if (err || !e->mark)
		return sim_leave(err);
	device = e->device;
	sim_finish(e->mark);
	return sim_leave(sim.dev[device].sticky);
}

static cudaError_t wait_event(struct sim_event *e, cudaStream_t stream)
{
	struct sim_stream *s;
	cudaError_t err = sim_stream_for_work(stream, &s);

	if (err)
		return err;
	if (!s) {
		if (e->captured)
			return cudaSuccess;
		sim_stream_get(stream, &s);
		sim_capture_invalidate(s);
		return cudaErrorStreamCaptureIsolation;
	}
	if (e->captured)
		return cudaErrorStreamCaptureUnsupported;
	if (e->mark)
		sim_wait(s, e->mark);
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned int flags)
{
	cudaError_t err = sim_enter("cudaStreamWaitEvent", SIM_CONTEXT);
	struct sim_event *e;

	if (!err && flags > 1)
		err = cudaErrorInvalidValue;
	if (!err)
		err = get(event, &e);
	return sim_leave(err ? err : wait_event(e, stream));
}
