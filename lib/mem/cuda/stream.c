/*
 * stream.c - streams, events, copies and conversions.
 *
 * Everything is queued and nothing waits, but tsi_gpu_event_wait().  Never
 * queues anything into a stream that is being captured: a graph would replay
 * it on samples that are long gone.
 */
#include "mem/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "convert/convert.h"
#include "convert/kernels.h"
#include "mem/cuda/call.h"
#include "mem/cuda/device.h"
#include "mem/cuda/pin.h"

struct tsi_gpu_event {
	cudaEvent_t event;
	unsigned device;
};

/* ---- streams ---- */

int tsi_gpu_stream_create(unsigned device, tsi_gpu_stream *out)
{
	struct tsi_cuda_scope scope;
	cudaStream_t s;
	cudaError_t e;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	/* Not held up by anybody's work in the default stream. */
	e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	if (e != cudaSuccess)
		err = tsi_cuda_err(e, (int)device, "cudaStreamCreate");
	else
		*out = s;
	tsi_cuda_leave(&scope);
	return err;
}

void tsi_gpu_stream_destroy(unsigned device, tsi_gpu_stream s)
{
	struct tsi_cuda_scope scope;

	if (!s || tsi_cuda_enter(device, &scope))
		return;
	if (cudaStreamDestroy(s) != cudaSuccess)
		(void)cudaGetLastError();
	tsi_cuda_leave(&scope);
}

/*
 * A stream that is none any more is an invalid handle or one of a destroyed
 * context, if the driver finds it out; the context itself is then well.
 */
static int stream_err(cudaError_t e, unsigned device, const char *call)
{
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

/* A capture has come between the check for one and the call. */
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

/* On the device. */
static int not_captured(unsigned device, tsi_gpu_stream s)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	cudaError_t e = cudaStreamIsCapturing(s, &status);

	/* The default stream while another one is captured: as forbidden. */
	if (is_capture(e))
		return captured(device);
	if (e != cudaSuccess)
		return stream_err(e, device, "cudaStreamIsCapturing");
	return status == cudaStreamCaptureStatusNone ? 0 : captured(device);
}

/* Be on the device, with a stream that may be worked in. */
static int enter(unsigned device, tsi_gpu_stream s,
		 struct tsi_cuda_scope *scope)
{
	int err = tsi_cuda_enter(device, scope);

	if (err)
		return err;
	err = not_captured(device, s);
	if (err)
		tsi_cuda_leave(scope);
	return err;
}

static int leave(struct tsi_cuda_scope *scope, cudaError_t e, unsigned device,
		 const char *call)
{
	int err = 0;

	if (is_capture(e))
		err = captured(device);
	else if (e != cudaSuccess)
		err = stream_err(e, device, call);
	tsi_cuda_leave(scope);
	return err;
}

/* ---- events ---- */

int tsi_gpu_event_create(unsigned device, struct tsi_gpu_event **out)
{
	struct tsi_cuda_scope scope;
	struct tsi_gpu_event *v;
	cudaError_t e;
	int err = tsi_cuda_enter(device, &scope);

	if (err)
		return err;
	v = malloc(sizeof(*v));
	if (!v) {
		tsi_cuda_leave(&scope);
		return tsi_err(TSOCK_ENOMEM, "no memory for an event");
	}
	v->device = device;
	e = cudaEventCreateWithFlags(&v->event, cudaEventDisableTiming |
							cudaEventBlockingSync);
	err = leave(&scope, e, device, "cudaEventCreate");
	if (err)
		free(v);
	else
		*out = v;
	return err;
}

void tsi_gpu_event_destroy(struct tsi_gpu_event *e)
{
	struct tsi_cuda_scope scope;

	if (!e)
		return;
	if (tsi_cuda_enter(e->device, &scope) == 0) {
		if (cudaEventDestroy(e->event) != cudaSuccess)
			(void)cudaGetLastError();
		tsi_cuda_leave(&scope);
	}
	free(e);
}

int tsi_gpu_event_record(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	struct tsi_cuda_scope scope;
	int err = enter(e->device, s, &scope);

	if (err)
		return err;
	return leave(&scope, cudaEventRecord(e->event, s), e->device,
		     "cudaEventRecord");
}

int tsi_gpu_event_query(struct tsi_gpu_event *e)
{
	struct tsi_cuda_scope scope;
	cudaError_t r;
	int err = tsi_cuda_enter(e->device, &scope);

	if (err)
		return err;
	r = cudaEventQuery(e->event);
	if (r == cudaErrorNotReady) {
		/* Some runtimes remember it as the last error. */
		(void)cudaGetLastError();
		tsi_cuda_leave(&scope);
		return TSOCK_EAGAIN;
	}
	return leave(&scope, r, e->device, "cudaEventQuery");
}

int tsi_gpu_event_wait(struct tsi_gpu_event *e)
{
	struct tsi_cuda_scope scope;
	int err = tsi_cuda_enter(e->device, &scope);

	if (err)
		return err;
	return leave(&scope, cudaEventSynchronize(e->event), e->device,
		     "cudaEventSynchronize");
}

/* A default stream is that of the event's device. */
int tsi_gpu_stream_wait(tsi_gpu_stream s, struct tsi_gpu_event *e)
{
	struct tsi_cuda_scope scope;
	int err = enter(e->device, s, &scope);

	if (err)
		return err;
	return leave(&scope, cudaStreamWaitEvent(s, e->event, 0), e->device,
		     "cudaStreamWaitEvent");
}

/* ---- work ---- */

/* What lies in one registration of host memory at a time. */
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
	struct tsi_cuda_scope scope;
	int err = enter(device, s, &scope);

	if (err)
		return err;
	return leave(&scope, copy_runs(dst, src, bytes, kind, s), device, what);
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
	struct tsi_cuda_scope scope;
	cudaError_t e = cudaSuccess;
	int err = enter(to, s, &scope);

	if (err)
		return err;
	if (bytes)
		e = cudaMemcpyPeerAsync(dst, (int)to, src, (int)from, bytes, s);
	return leave(&scope, e, to, "cudaMemcpyPeerAsync");
}

/* "750,800" as "7.5, 8.0". */
static void list_gpus(char *out, size_t size)
{
	const char *p = tsi_kernel_gpus();
	size_t at = 0;
	char *end;

	*out = '\0';
	for (; *p && at < size; p = *end ? end + 1 : end) {
		unsigned long n = strtoul(p, &end, 10);

		if (end == p)
			return;
		at += (size_t)snprintf(out + at, size - at, "%s%lu.%lu",
				       at ? ", " : "", n / 100, n / 10 % 10);
	}
}

static int no_image(unsigned device)
{
	int major = 0, minor = 0;
	char has[96];

	(void)cudaGetLastError();
	list_gpus(has, sizeof(has));
	if (tsi_cuda_attribute(device, cudaDevAttrComputeCapabilityMajor,
			       &major) ||
	    tsi_cuda_attribute(device, cudaDevAttrComputeCapabilityMinor,
			       &minor))
		major = minor = 0;
	return tsi_err(TSOCK_ENOTSUP,
		       "GPU %u has compute capability %d.%d, and this build's "
		       "kernels are for %s: build libtsock with a CUDA toolkit "
		       "that knows this GPU (cudaErrorNoKernelImageForDevice)",
		       device, major, minor, has);
}

int tsi_gpu_convert(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, uint64_t height, uint64_t width, void *dst)
{
	struct tsi_kernel_convert k = { .src = src,
					.dst = dst,
					.count = count,
					.dtype = spec->dtype,
					.layout = spec->layout,
					.normalize = spec->normalize };
	struct tsi_cuda_scope scope;
	uint64_t bytes;
	cudaError_t e = cudaSuccess;
	int err = tsi_view_spec_check(spec);

	if (err)
		return err;
	if (__builtin_mul_overflow(height, width, &k.pixels) ||
	    __builtin_mul_overflow(k.pixels, count, &bytes) ||
	    __builtin_mul_overflow(bytes, (uint64_t)12, &bytes))
		return tsi_err(
			TSOCK_EARG, "%llu images of %llu x %llu are no batch",
			(unsigned long long)count, (unsigned long long)height,
			(unsigned long long)width);
	for (int c = 0; c < 3; c++) {
		k.mean[c] = spec->mean[c];
		k.std[c] = spec->std[c];
	}
	err = enter(device, s, &scope);
	if (err)
		return err;
	if (bytes)
		e = (cudaError_t)tsi_kernel_convert(&k, s);
	if (e == cudaErrorNoKernelImageForDevice) {
		err = no_image(device);
		tsi_cuda_leave(&scope);
		return err;
	}
	return leave(&scope, e, device, "the conversion kernel");
}
