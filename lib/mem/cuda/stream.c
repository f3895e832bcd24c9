/* SPDX-License-Identifier: MIT */
/*
 * stream.c - streams, events and copies.
 *
 * All work is queued, and only tsi_gpu_event_wait() waits.  Never queues work
 * into a stream that is being captured: the graph would replay the work on
 * samples that are long gone.
 */
#include "mem/cuda/stream.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/pin.h"

struct tsi_gpu_event {
	bool waited; /* may be slept for */
	cudaEvent_t event;
	unsigned device;
	bool caught; /* by a capture, when it was recorded */
};

/* ---- streams ---- */

int tsi_gpu_stream_create(unsigned device, tsi_gpu_stream *out)
{
	cudaStream_t s;
	/* Work in the default stream doesn't delay this one. */
	int err = TSI_CUDA_CALL(
		device, cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking),
		"cudaStreamCreate");

	if (!err)
		*out = s;
	return err;
}

void tsi_gpu_stream_destroy(unsigned device, tsi_gpu_stream s)
{
	if (s)
		TSI_CUDA_DROP(device, cudaStreamDestroy(s));
}

/* A capture began between the check for captures and the call. */
static bool is_capture(cudaError_t e)
{
	return e >= cudaErrorStreamCaptureUnsupported &&
	       e <= cudaErrorStreamCaptureWrongThread;
}

static int captured(unsigned device)
{
	(void)cudaGetLastError();
	return tsi_err(TSOCK_ENOTSUP,
		       "the stream on GPU %u is being captured into a CUDA "
		       "graph, which would replay on samples that are gone: "
		       "take and release batches outside of the capture, and "
		       "copy into the graph's own tensors",
		       device);
}

/*
 * A stream that was destroyed is an invalid handle, or one of a destroyed
 * context, if the driver notices; cudaFree() tells that the context is well.
 */
int tsi_cuda_stream_err(cudaError_t e, unsigned device, const char *call)
{
	if (is_capture(e))
		return captured(device);
	if ((e != cudaErrorInvalidResourceHandle &&
	     e != cudaErrorContextIsDestroyed) ||
	    cudaFree(NULL) != cudaSuccess)
		return tsi_cuda_err(e, (int)device, call);
	(void)cudaGetLastError();
	return tsi_err(TSOCK_EARG,
		       "%s on GPU %u: %s (%s): the stream was destroyed, or is "
		       "another GPU's; a stream that uses a batch must live "
		       "until the batch was released",
		       call, device, cudaGetErrorName(e),
		       cudaGetErrorString(e));
}

int tsi_cuda_stream_check(unsigned device, tsi_gpu_stream s)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	/* Fails for the default stream while another one is captured. */
	int err = tsi_cuda_stream_err(cudaStreamIsCapturing(s, &status), device,
				      "cudaStreamIsCapturing");

	if (err)
		return err;
	return status == cudaStreamCaptureStatusNone ? 0 : captured(device);
}

/* ---- events ---- */

int tsi_gpu_event_create(unsigned device, bool waited,
			 struct tsi_gpu_event **out)
{
	unsigned flags =
		cudaEventDisableTiming | (waited ? cudaEventBlockingSync : 0);
	struct tsi_gpu_event *v = malloc(sizeof(*v));
	int err;

	if (!v)
		return tsi_err(TSOCK_ENOMEM, "no memory for an event");
	v->device = device;
	v->waited = waited;
	v->caught = false;
	err = TSI_CUDA_ON(
		device,
		tsi_cuda_stream_err(cudaEventCreateWithFlags(&v->event, flags),
				    device, "cudaEventCreate"));
	if (err)
		free(v);
	else
		*out = v;
	return err;
}

void tsi_gpu_event_destroy(struct tsi_gpu_event *e)
{
	if (!e)
		return;
	TSI_CUDA_DROP(e->device, cudaEventDestroy(e->event));
	free(e);
}

/*
 * With the device current.  A capture that has begun since s was checked has
 * caught the event, and would be spoilt if that were queried.
 */
static int record(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	int err = tsi_cuda_stream_check(e->device, s);

	if (!err)
		err = tsi_cuda_stream_err(cudaEventRecord(e->event, s),
					  e->device, "cudaEventRecord");
	if (err)
		return err;
	err = tsi_cuda_stream_check(e->device, s);
	e->caught = err == TSOCK_ENOTSUP;
	return err;
}

int tsi_gpu_event_record(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	return TSI_CUDA_ON(e->device, record(e, s));
}

/* With the device current. */
static int query(const struct tsi_gpu_event *e)
{
	cudaError_t r;

	if (e->caught)
		return captured(e->device);
	r = cudaEventQuery(e->event);
	if (r != cudaErrorNotReady)
		return tsi_cuda_stream_err(r, e->device, "cudaEventQuery");
	/* Some runtimes remember it as the last error. */
	(void)cudaGetLastError();
	return TSOCK_EAGAIN;
}

int tsi_gpu_event_query(struct tsi_gpu_event *e)
{
	return TSI_CUDA_ON(e->device, query(e));
}

int tsi_gpu_event_wait(struct tsi_gpu_event *e)
{
	if (!e->waited)
		return tsi_err(TSOCK_EARG, "an event that is only looked at "
					   "was to be waited for");
	if (e->caught)
		return captured(e->device);
	return TSI_CUDA_ON(e->device,
			   tsi_cuda_stream_err(cudaEventSynchronize(e->event),
					       e->device,
					       "cudaEventSynchronize"));
}

/* ---- work ---- */

/* One copy for each chunk of page-locked memory that the bytes lie in. */
static cudaError_t copy_runs(uint8_t *dst, const uint8_t *src, uint64_t bytes,
			     enum cudaMemcpyKind kind, tsi_gpu_stream s)
{
	const void *host = kind == cudaMemcpyHostToDevice ? src : dst;
	cudaError_t e = cudaSuccess;
	uint64_t at = 0, n;

	while (e == cudaSuccess && at < bytes) {
		n = bytes - at;
		if (kind != cudaMemcpyDeviceToDevice)
			n = tsi_cuda_pin_run((const uint8_t *)host + at, n);
		e = cudaMemcpyAsync(dst + at, src + at, n, kind, s);
		at += n;
	}
	return e;
}

static int copy(unsigned device, tsi_gpu_stream s, void *dst, const void *src,
		uint64_t bytes, enum cudaMemcpyKind kind, const char *what)
{
	return TSI_CUDA_IN_STREAM(device, s,
				  copy_runs(dst, src, bytes, kind, s), what);
}

int tsi_gpu_upload(unsigned device, tsi_gpu_stream s, void *dst,
		   const void *src, uint64_t bytes)
{
	return copy(device, s, dst, src, bytes, cudaMemcpyHostToDevice,
		    "cudaMemcpyAsync to the device");
}

int tsi_gpu_download(unsigned device, tsi_gpu_stream s, void *dst,
		     const void *src, uint64_t bytes)
{
	return copy(device, s, dst, src, bytes, cudaMemcpyDeviceToHost,
		    "cudaMemcpyAsync to the host");
}

int tsi_gpu_copy(unsigned device, tsi_gpu_stream s, void *dst, const void *src,
		 uint64_t bytes)
{
	return copy(device, s, dst, src, bytes, cudaMemcpyDeviceToDevice,
		    "cudaMemcpyAsync on the device");
}

int tsi_gpu_copy_peer(tsi_gpu_stream s, unsigned to, void *dst, unsigned from,
		      const void *src, uint64_t bytes)
{
	return TSI_CUDA_IN_STREAM(to, s,
				  bytes ? cudaMemcpyPeerAsync(dst, (int)to, src,
							      (int)from, bytes,
							      s)
					: cudaSuccess,
				  "cudaMemcpyPeerAsync");
}
