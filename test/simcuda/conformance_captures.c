/* SPDX-License-Identifier: MIT */
/*
 * conformance_captures.c - what libtsock relies on in CUDA while a stream is
 * captured into a graph.
 *
 * As for conformance.c: the simulation must pass in every mode, and so must a
 * real GPU.
 */
#include "conformance.h"

#include <pthread.h>

#define LEN 300001

static void a_captured_stream_does_no_work(void **state)
{
	enum cudaStreamCaptureStatus status;
	cudaStream_t s = new_stream();
	cudaEvent_t e = new_event();
	uint8_t *a = device_memory(LEN);
	cudaGraph_t graph;

	(void)state;
	upload(a, LEN, 1);
	OK(cudaStreamIsCapturing(s, &status));
	assert_int_equal(status, cudaStreamCaptureStatusNone);
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	OK(cudaStreamIsCapturing(s, &status));
	assert_int_equal(status, cudaStreamCaptureStatusActive);
	OK(cudaMemsetAsync(a, 0, LEN, s));
	OK(cudaEventRecord(e, s));
	OK(cudaStreamEndCapture(s, &graph));
	assert_non_null(graph);
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamSynchronize(s));
	verify_device(a, LEN, 1);
	FAILS(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
	OK(cudaFree(a));
	OK(cudaEventDestroy(e));
	OK(cudaStreamDestroy(s));
}

static void waiting_spoils_a_capture(void **state)
{
	cudaStream_t s = new_stream();
	cudaGraph_t graph;

	(void)state;
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	FAILS(cudaStreamSynchronize(s), cudaErrorStreamCaptureUnsupported);
	FAILS(cudaStreamEndCapture(s, &graph),
	      cudaErrorStreamCaptureInvalidated);
	OK(cudaStreamSynchronize(s));
	OK(cudaStreamDestroy(s));
}

struct other {
	enum cudaStreamCaptureMode mode;
	cudaEvent_t event;
	cudaError_t got;
};

static void *query_elsewhere(void *arg)
{
	struct other *o = arg;

	o->got = cudaThreadExchangeStreamCaptureMode(&o->mode);
	if (!o->got)
		o->got = cudaEventQuery(o->event);
	return NULL;
}

static cudaError_t query_during(enum cudaStreamCaptureMode capture,
				enum cudaStreamCaptureMode thread,
				cudaError_t end)
{
	struct other o = { .mode = thread, .event = new_event() };
	cudaStream_t s = new_stream();
	cudaGraph_t graph = NULL;
	pthread_t t;

	OK(cudaStreamBeginCapture(s, capture));
	assert_int_equal(pthread_create(&t, NULL, query_elsewhere, &o), 0);
	pthread_join(t, NULL);
	assert_int_equal(cudaStreamEndCapture(s, &graph), end);
	(void)cudaGetLastError();
	if (graph)
		OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(o.event));
	OK(cudaStreamDestroy(s));
	return o.got;
}

static void another_thread_needs_its_own_capture_mode(void **state)
{
	enum cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal,
				   local = cudaStreamCaptureModeThreadLocal;

	(void)state;
	assert_int_equal(
		query_during(global, global, cudaErrorStreamCaptureInvalidated),
		cudaErrorStreamCaptureUnsupported);
	OK(query_during(global, local, cudaSuccess));
	OK(query_during(local, global, cudaSuccess));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_captured_stream_does_no_work),
		cmocka_unit_test(waiting_spoils_a_capture),
		cmocka_unit_test(another_thread_needs_its_own_capture_mode),
	};
	int start = conformance_start();

	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
