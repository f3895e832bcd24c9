/* SPDX-License-Identifier: MIT */
/*
 * test_captures.c - batches that streams use which are being captured, or die.
 */
#include "test/lib/for_each_transport.h"

static void end_capture(cudaStream_t stream)
{
	cudaGraph_t graph;

	cu(cudaStreamEndCapture(stream, &graph));
	cu(cudaGraphDestroy(graph));
}

static void read_capture(const struct reader_proc *r)
{
	enum transport transport = r->transport;
	struct copy *l;
	tsock_batch *b;
	struct gpu_reader s;
	uint64_t tail;
	int err;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	need(tsock_next(s.t, 60000, &b) == 0);
	l = &s.copy[0];
	cu(cudaStreamBeginCapture(s.stream[1], cudaStreamCaptureModeGlobal));
	if (gpu_reader_as_stored(transport))
		err = tsock_batch_convert(b, 0, l->device[0], s.stream[1]);
	else
		err = tsock_batch_use(b, s.stream[1]);
	need(err == TSOCK_ENOTSUP && strstr(tsock_errmsg(), "captur"));
	/* What was refused left nothing behind. */
	end_capture(s.stream[1]);
	tail = tsock_batch_seq(b) + tsock_batch_count(b);
	gpu_reader_check(&s, b, 0);
	gpu_reader_settle(&s);

	/* Named before a capture, and released within it. */
	need(tsock_next(s.t, 60000, &b) == 0);
	need(tsock_batch_use(b, s.stream[1]) == 0);
	cu(cudaStreamBeginCapture(s.stream[1], cudaStreamCaptureModeGlobal));
	tsock_batch_release(b);
	proc_pause_us(30000);
	if (gpu_reader_transport(transport) != TSOCK_TRANSPORT_STAGED)
		need(stream_stats("small").row[0].tail <= tail);
	end_capture(s.stream[1]);
	gpu_reader_some(&s, 20);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_stream_that_is_captured_is_left_alone(void **state)
{
	transport_run_small(read_capture, state);
}

/* A batch of another stream is taken, used and given back meanwhile. */
static void read_within_a_capture(const struct reader_proc *r)
{
	static const enum cudaStreamCaptureMode modes[] = {
		cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
		cudaStreamCaptureModeRelaxed
	};
	tsock_batch *held, *b;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	for (unsigned i = 0; i < 9; i++) {
		need(tsock_next(s.t, 60000, &held) == 0);
		gpu_reader_queue_copy(&s, held, &s.copy[0], s.stream[0]);
		need(tsock_batch_use(held, s.stream[0]) == 0);
		cu(cudaStreamBeginCapture(s.stream[1], modes[i % 3]));
		tsock_batch_release(held);
		need(tsock_next(s.t, 60000, &b) == 0);
		need(tsock_batch_use(b, s.stream[2]) == 0);
		tsock_batch_release(b);
		end_capture(s.stream[1]);
		gpu_reader_finish_copy(&s, &s.copy[0]);
	}
	gpu_reader_some(&s, 20);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_batch_dies_on_the_thread_that_captures(void **state)
{
	transport_run_small(read_within_a_capture, state);
}

#ifdef SIMCUDA
static void begin_capture(void *stream)
{
	cu(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static void end_short_capture(void *stream)
{
	end_capture(stream);
}

static void begin_short_capture(void *stream)
{
	begin_capture(stream);
	simcuda_after("cudaEventRecord", end_short_capture, stream);
}

/* A capture begins after the check for one, before the event is recorded; it
 * stays whole, and may be over before that is looked at. */
static void read_into_a_capture(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	for (unsigned i = 0; i < 3; i++) {
		bool brief = i % 2;
		uint64_t seq;

		gpu_reader_settle(&s);
		need(tsock_next(s.t, 60000, &b) == 0);
		seq = tsock_batch_seq(b);
		gpu_reader_queue_copy(&s, b, &s.copy[0], s.stream[1]);
		need(tsock_batch_use(b, s.stream[1]) == 0);
		/* Then nobody else asks for a capture. */
		while (gpu_reader_transport(r->transport) !=
			       TSOCK_TRANSPORT_STAGED &&
		       stream_stats("small").row[0].tail < seq)
			proc_pause_us(1000);
		simcuda_after("cudaStreamIsCapturing",
			      brief ? begin_short_capture : begin_capture,
			      s.stream[1]);
		tsock_batch_release(b);
		proc_pause_us(30000);
		if (!brief && gpu_reader_transport(r->transport) !=
				      TSOCK_TRANSPORT_STAGED)
			need(stream_stats("small").row[0].tail <= seq);
		if (!brief)
			end_capture(s.stream[1]);
		gpu_reader_finish_copy(&s, &s.copy[0]);
		gpu_reader_some(&s, 20);
	}
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_capture_that_begins_at_a_release_is_waited_out(void **state)
{
	transport_run_small(read_into_a_capture, state);
}

static void read_on_a_dead_stream(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;
	int err;

	gpu_reader_set("SIMCUDA_MODE", "late");
	gpu_reader_set("SIMCUDA_LATE_MS", "60");
	gpu_reader_open(&s, r);
	simcuda_see_destroyed(true);
	need(gpu_reader_begin(&s));
	gpu_reader_some(&s, 3);
	gpu_reader_settle(&s);
	if (gpu_reader_as_stored(r->transport)) {
		/* One that only a conversion has named. */
		need(tsock_next(s.t, 60000, &b) == 0);
		gpu_reader_queue_copy(&s, b, &s.copy[0], s.stream[2]);
		cu(cudaStreamDestroy(s.stream[2]));
		tsock_batch_release(b);
		for (unsigned i = 0; i < 5; i++) {
			need(tsock_next(s.t, 60000, &b) == 0);
			tsock_batch_release(b);
		}
		cu(cudaDeviceSynchronize());
		gpu_reader_check_copy(&s, &s.copy[0]);
	}
	need(tsock_next(s.t, 60000, &b) == 0);
	gpu_reader_queue_copy(&s, b, &s.copy[0], s.stream[3]);
	need(tsock_batch_use(b, s.stream[3]) == 0);
	cu(cudaStreamDestroy(s.stream[3]));
	need(tsock_batch_use(b, s.stream[3]) == TSOCK_EARG);
	need(strstr(tsock_errmsg(), "destroyed"));
	tsock_batch_release(b);
	/* Sooner or later it is said, and the samples are nobody else's. */
	do {
		err = tsock_next(s.t, 60000, &b);
		if (!err)
			tsock_batch_release(b);
		else if (err == TSOCK_EEPOCH)
			err = tsock_begin(s.t);
	} while (!err);
	need(err == TSOCK_EARG);
	need(strstr(tsock_errmsg(), "destroyed"));
	/* The reader has left, and holds nobody up. */
	tsock_close(s.t);
	for (unsigned i = 0; stream_stats("small").consumers; i++) {
		need(i < 6000);
		proc_pause_us(10000);
	}
	cu(cudaDeviceSynchronize());
	gpu_reader_check_copy(&s, &s.copy[0]);
}

static void a_stream_that_died_before_its_batch_is_named(void **state)
{
	transport_run_small(read_on_a_dead_stream, state);
}
#endif

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_GPU_TRANSPORT(a_stream_that_is_captured_is_left_alone),
		FOR_EACH_GPU_TRANSPORT(
			a_batch_dies_on_the_thread_that_captures),
#ifdef SIMCUDA
		FOR_EACH_GPU_TRANSPORT(
			a_capture_that_begins_at_a_release_is_waited_out),
		FOR_EACH_GPU_TRANSPORT(
			a_stream_that_died_before_its_batch_is_named),
#endif
	};

	return transport_run_each("captures", each,
				  sizeof(each) / sizeof(each[0]), NULL, 0);
}
