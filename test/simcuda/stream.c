/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams, the two default ones included.
 *
 * A handle is a number that is never used again, so that the use of a
 * destroyed stream is always found out.
 */
#include "sim.h"

#include <string.h>

static struct sim_stream *new_stream(unsigned device, bool blocking)
{
	struct sim_stream *s = sim_alloc(sizeof(*s));

	s->device = device;
	s->blocking = blocking;
	sim.next_id += 16;
	s->handle = sim.next_id;
	s->next = sim.stream;
	sim.stream = s;
	return s;
}

static struct sim_stream *default_stream(bool legacy)
{
	unsigned device = sim_current(), thread = legacy ? 0 : sim_thread();
	struct sim_stream *s = sim.stream;

	while (s && !(s->device == device && s->legacy == legacy &&
		      s->thread == thread && (legacy || thread)))
		s = s->next;
	if (!s) {
		s = new_stream(device, true);
		s->legacy = legacy;
		s->thread = thread;
	}
	return s;
}

/* Handles of streams and events are numbers that go up. */
static bool was_given_out(cudaStream_t h)
{
	uintptr_t n = (uintptr_t)h;

	return n > SIM_FIRST_ID && n <= sim.next_id && n % 16 == 0;
}

void simcuda_see_destroyed(bool yes)
{
	if (!sim_enter("simcuda_see_destroyed", SIM_ANYTIME))
		sim.gone_streams_seen = yes;
	sim_leave(cudaSuccess);
}

cudaError_t sim_stream_get(cudaStream_t h, struct sim_stream **out)
{
	struct sim_stream *s = sim.stream;

	if (!h || h == cudaStreamLegacy || h == cudaStreamPerThread) {
		*out = default_stream(h != cudaStreamPerThread);
		return cudaSuccess;
	}
	while (s && (s->handle != (uintptr_t)h || s->destroyed))
		s = s->next;
	*out = s;
	/* The use of a destroyed stream is undefined: never allowed here. */
	if (!s && was_given_out(h) && !sim.gone_streams_seen)
		sim_die("DESTROYED: stream %p is used after "
			"cudaStreamDestroy()",
			(void *)h);
	return s ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	cudaError_t err = sim_enter("cudaStreamCreateWithFlags", SIM_CONTEXT);
	struct sim_stream *s;

	if (!err && (!pStream || flags > cudaStreamNonBlocking))
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave(err);
	s = new_stream(sim_current(), !(flags & cudaStreamNonBlocking));
	memcpy(pStream, &s->handle, sizeof(*pStream));
	return sim_leave(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t err = sim_enter("cudaStreamDestroy", SIM_CONTEXT);
	struct sim_stream *s;

	if (!err)
		err = sim_stream_get(stream, &s);
	if (!err && (s->legacy || s->thread))
		err = cudaErrorInvalidResourceHandle;
	if (!err) {
		if (s->capture != cudaStreamCaptureStatusNone)
			sim.capturing--;
		s->capture = cudaStreamCaptureStatusNone;
		s->destroyed = true;
		sim_reap();
	}
	return sim_leave(err);
}

/* Neither may be asked of a stream that is being captured. */
static cudaError_t get_uncaptured(cudaStream_t h, struct sim_stream **out)
{
	cudaError_t err = sim_stream_get(h, out);

	if (err)
		return err;
	if (sim.dev[(*out)->device].sticky)
		return sim.dev[(*out)->device].sticky;
	if ((*out)->capture == cudaStreamCaptureStatusNone)
		return cudaSuccess;
	sim_capture_invalidate(*out);
	return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	cudaError_t err =
		sim_enter("cudaStreamSynchronize", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_stream *s;

	if (!err)
		err = get_uncaptured(stream, &s);
	return sim_leave(err ? err : sim_stream_finish(s));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t err =
		sim_enter("cudaStreamQuery", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_stream *s;

	if (!err)
		err = get_uncaptured(stream, &s);
	if (!err && s->head) {
		if (sim_insist(&s->queries))
			sim_demand(s, s->seq);
		err = cudaErrorNotReady;
	}
	return sim_leave(err);
}

cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t err =
		sim_enter("cudaDeviceSynchronize", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : sim_device_finish(sim_current()));
}

int simcuda_stream_device(cudaStream_t stream)
{
	struct sim_stream *s;
	int ordinal = -1;

	if (!sim_enter("simcuda_stream_device", SIM_ANYTIME) &&
	    !sim_stream_get(stream, &s))
		ordinal = sim_ordinal_of(s->device);
	sim_leave(cudaSuccess);
	return ordinal;
}
