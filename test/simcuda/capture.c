/* SPDX-License-Identifier: MIT */
/*
 * capture.c - streams being captured: work put into one is counted and thrown
 * away, and what CUDA forbids meanwhile is refused and spoils the capture.
 *
 * No graph is ever made that could run, and a capture never spreads to a
 * second stream through an event: that is refused, where CUDA would join it.
 */
#include "sim.h"

#include <stdlib.h>

static _Thread_local enum cudaStreamCaptureMode mode;

struct CUgraph_st {
	unsigned nodes;
};

void sim_capture_invalidate(struct sim_stream *s)
{
	s->capture = cudaStreamCaptureStatusInvalidated;
}

/* Does this thread's unsafe call hurt that capture? */
static bool forbidden(const struct sim_stream *s)
{
	if (s->capture != cudaStreamCaptureStatusActive ||
	    s->capture_mode == cudaStreamCaptureModeRelaxed)
		return false;
	if (s->capture_thread == sim_thread())
		return true;
	return mode == cudaStreamCaptureModeGlobal &&
	       s->capture_mode == cudaStreamCaptureModeGlobal;
}

cudaError_t sim_capture_check(void)
{
	cudaError_t err = cudaSuccess;

	if (!sim.capturing || mode == cudaStreamCaptureModeRelaxed)
		return cudaSuccess;
	for (struct sim_stream *s = sim.stream; s; s = s->next)
		if (forbidden(s)) {
			sim_capture_invalidate(s);
			err = cudaErrorStreamCaptureUnsupported;
		}
	return err;
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *pmode)
{
	cudaError_t err =
		sim_enter("cudaThreadExchangeStreamCaptureMode", SIM_ANYTIME);
	enum cudaStreamCaptureMode old = mode;

	if (!err && (!pmode || (unsigned)*pmode > 2))
		err = cudaErrorInvalidValue;
	/* "May also return error codes from previous, asynchronous launches." */
	if (!err)
		err = sim.dev[sim_current()].sticky;
	if (!err) {
		mode = *pmode;
		*pmode = old;
	}
	return sim_leave(err);
}

/* The default stream would wait for streams that are being captured. */
static bool implicit(const struct sim_stream *s)
{
	bool found = false;

	for (struct sim_stream *t = sim.stream; s->legacy && t; t = t->next)
		if (t != s && t->device == s->device && t->blocking &&
		    t->capture == cudaStreamCaptureStatusActive)
			found = true;
	return found;
}

cudaError_t sim_stream_for_work(cudaStream_t h, struct sim_stream **out)
{
	struct sim_stream *s;
	cudaError_t err = sim_stream_get(h, &s);

	if (err)
		return err;
	if (sim.dev[s->device].sticky)
		return sim.dev[s->device].sticky;
	*out = s;
	switch (s->capture) {
	case cudaStreamCaptureStatusActive:
		s->captured++;
		*out = NULL;
		return cudaSuccess;
	case cudaStreamCaptureStatusInvalidated:
		return cudaErrorStreamCaptureInvalidated;
	default:
		break;
	}
	if (!sim.capturing || !implicit(s))
		return cudaSuccess;
	for (struct sim_stream *t = sim.stream; t; t = t->next)
		if (t->device == s->device && t->blocking &&
		    t->capture == cudaStreamCaptureStatusActive)
			sim_capture_invalidate(t);
	return cudaErrorStreamCaptureImplicit;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
				  enum cudaStreamCaptureStatus *pCaptureStatus)
{
	cudaError_t err = sim_enter("cudaStreamIsCapturing", SIM_CONTEXT);
	struct sim_stream *s;

	if (!err && !pCaptureStatus)
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_stream_get(stream, &s);
	if (!err && sim.capturing && implicit(s))
		err = cudaErrorStreamCaptureImplicit;
	if (!err)
		*pCaptureStatus = s->capture;
	return sim_leave(err);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
				   enum cudaStreamCaptureMode capture_mode)
{
	cudaError_t err = sim_enter("cudaStreamBeginCapture", SIM_CONTEXT);
	struct sim_stream *s;

	if (!err && (unsigned)capture_mode > 2)
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_stream_get(stream, &s);
	if (!err && s->legacy)
		err = cudaErrorStreamCaptureUnsupported;
	if (!err && s->capture != cudaStreamCaptureStatusNone)
		err = cudaErrorIllegalState;
	if (!err) {
		s->capture = cudaStreamCaptureStatusActive;
		s->capture_mode = capture_mode;
		s->capture_thread = sim_thread();
		s->captured = 0;
		s->capture_number = ++sim.captures;
		sim.capturing++;
	}
	return sim_leave(err);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	cudaError_t err = sim_enter("cudaStreamEndCapture", SIM_CONTEXT);
	enum cudaStreamCaptureStatus status;
	struct sim_stream *s;

	if (!err && !pGraph)
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_stream_get(stream, &s);
	if (!err && s->capture == cudaStreamCaptureStatusNone)
		err = cudaErrorIllegalState;
	if (!err && s->capture_mode != cudaStreamCaptureModeRelaxed &&
	    s->capture_thread != sim_thread())
		err = cudaErrorStreamCaptureWrongThread;
	if (err)
		return sim_leave(err);
	status = s->capture;
	s->capture = cudaStreamCaptureStatusNone;
	sim.capturing--;
	*pGraph = NULL;
	if (status == cudaStreamCaptureStatusInvalidated)
		return sim_leave(cudaErrorStreamCaptureInvalidated);
	*pGraph = sim_alloc(sizeof(**pGraph));
	(*pGraph)->nodes = s->captured;
	return sim_leave(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	cudaError_t err = sim_enter("cudaGraphDestroy", SIM_ANYTIME);

	if (!err && !graph)
		err = cudaErrorInvalidValue;
	if (!err)
		free(graph);
	return sim_leave(err);
}
