/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_work.c - streams, events, copies and conversions of GPUs: on a real
 * one where there is one, else on the simulation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "test/lib/gpu_child.h"
#include "mem/gpu.h"
#include "convert/convert.h"
#include "convert/gpu.h"

/* ---- streams and events ---- */

static void work_waits_for_events_and_is_seen_by_query(void **state)
{
	enum { n = 4 << 20 };
	struct tsi_gpu_event *e, *done;
	tsi_gpu_stream a, b;
	void *host, *back, *one, *two;
	int err;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_host_alloc(0, n, &host), 0);
	assert_int_equal(tsi_gpu_host_alloc(0, n, &back), 0);
	assert_int_equal(tsi_gpu_alloc(0, n, &one), 0);
	assert_int_equal(tsi_gpu_alloc(0, n, &two), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &a), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &b), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &done), 0);
	assert_int_equal(tsi_gpu_event_query(e), 0); /* nothing recorded */
	for (uint32_t i = 0; i < 8; i++) {
		gpu_child_pattern(host, n, i);
		memset(back, 0, n);
		assert_int_equal(tsi_gpu_upload(0, a, one, host, n), 0);
		assert_int_equal(tsi_gpu_event_record(e, a), 0);
		assert_int_equal(tsi_gpu_event_wait(e), 0);
		assert_int_equal(tsi_gpu_copy(0, b, two, one, n), 0);
		assert_int_equal(tsi_gpu_download(0, b, back, two, n), 0);
		assert_int_equal(tsi_gpu_event_record(done, b), 0);
		while ((err = tsi_gpu_event_query(done)) == TSOCK_EAGAIN)
			sched_yield();
		assert_int_equal(err, 0);
		assert_memory_equal(back, host, n);
	}
	assert_int_equal(cudaGetLastError(), 0);
	tsi_gpu_event_destroy(e);
	tsi_gpu_event_destroy(done);
	tsi_gpu_stream_destroy(0, a);
	tsi_gpu_stream_destroy(0, b);
	tsi_gpu_free(0, one);
	tsi_gpu_free(0, two);
	tsi_gpu_host_free(0, host);
	tsi_gpu_host_free(0, back);
}

static void no_bytes_are_no_work(void **state)
{
	struct tsi_view_spec spec = { .dtype = TSOCK_F32,
				      .layout = TSOCK_CHW,
				      .normalize = TSOCK_UNIT };
	const uint64_t shape[] = { 8, 8, 3 };
	tsi_gpu_stream s;
	void *p;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_alloc(0, 4096, &p), 0);
	assert_int_equal(tsi_gpu_upload(0, s, p, &s, 0), 0);
	assert_int_equal(tsi_gpu_copy(0, s, p, p, 0), 0);
	assert_int_equal(tsi_convert_gpu(0, s, &spec, p, 0, shape, p), 0);
	assert_int_equal(
		tsi_convert_gpu(0, s, &spec, p, UINT64_MAX / 4, shape, p),
		TSOCK_EARG);
	spec.dtype = TSOCK_I64;
	assert_int_equal(tsi_convert_gpu(0, s, &spec, p, 1, shape, p),
			 TSOCK_EARG);
	tsi_gpu_free(0, p);
	tsi_gpu_stream_destroy(0, s);
}

static void nothing_goes_into_a_capturing_stream(void **state)
{
	struct tsi_gpu_event *e;
	tsi_gpu_stream s, other;
	void *p, *graph = NULL;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &other), 0);
	assert_int_equal(tsi_gpu_alloc(0, 8192, &p), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, other), 0);
	assert_int_equal(cudaSetDevice(0), 0);
	for (int mode = 0; mode < 3; mode++) {
		assert_int_equal(cudaStreamBeginCapture(s, mode), 0);
		assert_int_equal(tsi_gpu_event_record(e, s), TSOCK_ENOTSUP);
		assert_non_null(strstr(tsock_errmsg(), "captured"));
		assert_int_equal(tsi_gpu_copy(0, s, p, (char *)p + 4096, 4096),
				 TSOCK_ENOTSUP);
		/* What was refused did not spoil the capture. */
		assert_int_equal(cudaStreamEndCapture(s, &graph), 0);
		if (graph)
			cudaGraphDestroy(graph);
		assert_int_equal(cudaGetLastError(), 0);
	}
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
	tsi_gpu_free(0, p);
	tsi_gpu_stream_destroy(0, s);
	tsi_gpu_stream_destroy(0, other);
}

/* What a batch that dies there does, and a reader of another stream may. */
static void work_elsewhere(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	struct tsi_gpu_event *fresh;
	struct tsi_gpu_mem m;
	struct tsi_gpu_info info;
	void *p, *host;
	int err;

	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	while ((err = tsi_gpu_event_query(e)) == TSOCK_EAGAIN)
		sched_yield();
	assert_int_equal(err, 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &fresh), 0);
	tsi_gpu_event_destroy(fresh);
	assert_int_equal(tsi_gpu_alloc(0, 4096, &p), 0);
	assert_int_equal(tsi_gpu_host_alloc(0, 4096, &host), 0);
	assert_int_equal(tsi_gpu_upload(0, s, p, host, 4096), 0);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_host_free(0, host);
	tsi_gpu_free(0, p);
	assert_int_equal(tsi_gpu_info(0, &info), 0);
	if (info.vmm_fd) {
		assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_VMM,
						    info.granularity, &m),
				 0);
		tsi_gpu_mem_close(&m);
	}
}

static void a_thread_s_own_capture_stays_whole(void **state)
{
	struct tsi_gpu_event *e;
	tsi_gpu_stream s, other;
	void *graph = NULL;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &other), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	assert_int_equal(cudaSetDevice(0), 0);
	for (int mode = 0; mode < 3; mode++) {
		assert_int_equal(cudaStreamBeginCapture(s, mode), 0);
		work_elsewhere(e, other);
		assert_int_equal(cudaStreamEndCapture(s, &graph), 0);
		if (graph)
			cudaGraphDestroy(graph);
		assert_int_equal(cudaGetLastError(), 0);
	}
	tsi_gpu_event_destroy(e);
	tsi_gpu_stream_destroy(0, s);
	tsi_gpu_stream_destroy(0, other);
}

static void begin_capture(void *stream)
{
	assert_int_equal(cudaStreamBeginCapture(stream, 2 /* relaxed */), 0);
}

static void end_capture(void *stream)
{
	void *graph = NULL;

	assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
	cudaGraphDestroy(graph);
}

static void begin_a_short_capture(void *stream)
{
	begin_capture(stream);
	simcuda_after("cudaEventRecord", end_capture, stream);
}

/*
 * The check for a capture and the recording are two steps.  The capture of whom
 * the stream is stays whole.
 */
static void an_event_that_a_capture_caught_is_recorded_again(void **state)
{
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;

	(void)state;
	gpu_child_need_gpus(1);
	if (!simcuda_after) {
		print_message("only the simulation can come in between\n");
		skip();
	}
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	simcuda_after("cudaStreamIsCapturing", begin_capture, s);
	assert_int_equal(tsi_gpu_event_record(e, s), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_event_query(e), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_event_wait(e), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_event_record(e, s), TSOCK_ENOTSUP);
	end_capture(s);
	/* The capture is over, and the event is in it still. */
	assert_int_equal(tsi_gpu_event_query(e), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	/* One that is over when that is asked. */
	simcuda_after("cudaStreamIsCapturing", begin_a_short_capture, s);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_query(e), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	assert_int_equal(cudaGetLastError(), 0);
	tsi_gpu_event_destroy(e);
	tsi_gpu_stream_destroy(0, s);
}

/* To use one is undefined on hardware: only the simulation always sees it. */
static void a_destroyed_stream_is_named(void **state)
{
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;
	void *p;

	(void)state;
	gpu_child_need_gpus(1);
	if (!simcuda_after) {
		print_message("it is undefined what a driver does\n");
		skip();
	}
	assert_int_equal(tsi_gpu_alloc(0, 8192, &p), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	assert_int_equal(cudaStreamDestroy(s), 0);
	simcuda_see_destroyed(true);
	assert_int_equal(tsi_gpu_event_record(e, s), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "destroyed"));
	assert_non_null(strstr(tsock_errmsg(), "InvalidResourceHandle"));
	assert_int_equal(tsi_gpu_copy(0, s, p, (char *)p + 4096, 4096),
			 TSOCK_EARG);
	simcuda_see_destroyed(false);
	assert_int_equal(tsi_gpu_healthy(0), 0);
	assert_int_equal(tsi_gpu_finish(0), 0);
	assert_int_equal(cudaGetLastError(), 0);
	tsi_gpu_event_destroy(e);
	tsi_gpu_free(0, p);
}

static void *query(void *event)
{
	for (int i = 0; i < 100; i++) {
		int err = tsi_gpu_event_query(event);

		if (err && err != TSOCK_EAGAIN)
			return event;
	}
	return NULL;
}

static void events_are_queried_while_another_thread_captures(void **state)
{
	struct tsi_gpu_event *e;
	tsi_gpu_stream s, other;
	void *failed, *graph = NULL;
	pthread_t thread;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &other), 0);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, other), 0);
	assert_int_equal(cudaSetDevice(0), 0);
	assert_int_equal(cudaStreamBeginCapture(s, 0 /* global */), 0);
	assert_int_equal(pthread_create(&thread, NULL, query, e), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 0);
	if (graph)
		cudaGraphDestroy(graph);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
	tsi_gpu_stream_destroy(0, s);
	tsi_gpu_stream_destroy(0, other);
}

static void devices_copy_to_each_other(void **state)
{
	enum { n = 1 << 20 };
	uint8_t *host = malloc(n), *got = malloc(n);
	tsi_gpu_stream a, b;
	void *one, *two;

	(void)state;
	gpu_child_need_gpus(2);
	(void)tsi_gpu_peer(1, 0);
	assert_true(tsi_gpu_peer(0, 0));
	assert_int_equal(tsi_gpu_peer(1, 0), tsi_gpu_peer(1, 0));
	assert_false(tsi_gpu_peer(0, gpu_child_gpus));
	assert_int_equal(cudaGetLastError(), 0);
	assert_int_equal(tsi_gpu_stream_create(0, &a), 0);
	assert_int_equal(tsi_gpu_stream_create(1, &b), 0);
	assert_int_equal(tsi_gpu_alloc(0, n, &one), 0);
	assert_int_equal(tsi_gpu_alloc(1, n, &two), 0);
	gpu_child_pattern(host, n, 11);
	gpu_child_upload(0, a, one, host, n);
	assert_int_equal(tsi_gpu_copy_peer(b, 1, two, 0, one, n), 0);
	gpu_child_fetch(1, b, got, two, n);
	assert_memory_equal(got, host, n);
	tsi_gpu_free(0, one);
	tsi_gpu_free(1, two);
	tsi_gpu_stream_destroy(0, a);
	tsi_gpu_stream_destroy(1, b);
	free(host);
	free(got);
}

/* ---- conversions ---- */

static const struct {
	uint64_t n, h, w;
} sizes[] = { { 1, 1, 1 },   { 3, 1, 3 },   { 2, 3, 5 },     { 5, 4, 4 },
	      { 4, 7, 9 },   { 3, 31, 33 }, { 7, 16, 128 },  { 64, 8, 2 },
	      { 2, 43, 48 }, { 3, 1, 4 },   { 2, 224, 224 }, { 1, 299, 299 } };

static void convert_one(tsi_gpu_stream s, const struct tsi_view_spec *spec,
			uint8_t *dev_src, uint8_t *dev_dst, unsigned i,
			uint64_t channels, unsigned odd, unsigned dst_odd)
{
	const uint64_t shape[] = { sizes[i].h, sizes[i].w, channels };
	size_t size = tsock_dtype_size(spec->dtype);
	uint64_t one = sizes[i].h * sizes[i].w * channels,
		 all = one * sizes[i].n;
	uint8_t *src = malloc(all), *want = malloc(all * size);
	uint8_t *got = malloc(all * size + 64);
	struct tsi_convert *c;
	size_t at = 32 + dst_odd * size;

	gpu_child_pattern(src, all, i + odd);
	assert_int_equal(tsi_convert_create(spec, &c), 0);
	for (uint64_t k = 0; k < sizes[i].n; k++)
		tsi_convert_image(c, shape, src + k * one,
				  want + k * one * size);
	tsi_convert_destroy(c);
	memset(got, 0xa5, all * size + 64);
	gpu_child_upload(0, s, dev_src + odd, src, all);
	gpu_child_upload(0, s, dev_dst + at - 32, got, all * size + 64);
	assert_int_equal(tsi_convert_gpu(0, s, spec, dev_src + odd, sizes[i].n,
					 shape, dev_dst + at),
			 0);
	gpu_child_fetch(0, s, got, dev_dst + at - 32, all * size + 64);
	for (unsigned g = 0; g < 32; g++) {
		assert_int_equal(got[g], 0xa5);
		assert_int_equal(got[32 + all * size + g], 0xa5);
	}
	if (memcmp(got + 32, want, all * size) != 0)
		fail_msg("dtype %u layout %u normalize %u: %u images of %u x "
			 "%u x %u at %u, to %u",
			 spec->dtype, spec->layout, spec->normalize,
			 (unsigned)sizes[i].n, (unsigned)sizes[i].h,
			 (unsigned)sizes[i].w, (unsigned)channels, odd,
			 dst_odd);
	free(src);
	free(want);
	free(got);
}

static void conversions_equal_the_host_s_bit_for_bit(void **state)
{
	static const uint32_t dtype[] = { TSOCK_U8, TSOCK_F16, TSOCK_BF16,
					  TSOCK_F32 };
	struct tsi_view_spec spec = { .mean = { 0.485f, 0.456f, 0.406f },
				      .std = { 0.229f, 0.224f, 0.225f } };
	uint64_t room = 2 * 224 * 224 * 3 * 4 + 4096;
	tsi_gpu_stream s;
	void *src, *dst;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_alloc(0, room, &src), 0);
	assert_int_equal(tsi_gpu_alloc(0, room, &dst), 0);
	for (unsigned k = 0; k < 4 * 2 * 3; k++) {
		spec.dtype = dtype[k % 4];
		spec.layout = k / 4 % 2;
		spec.normalize = k / 8;
		if (spec.dtype == TSOCK_U8 && spec.normalize)
			continue;
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (unsigned odd = 0; odd < 4; odd++) {
				convert_one(s, &spec, src, dst, i, 3, odd,
					    (i + odd) % 5);
				convert_one(s, &spec, src, dst, i, 1, odd,
					    (i + odd) % 5);
			}
	}
	tsi_gpu_free(0, src);
	tsi_gpu_free(0, dst);
	tsi_gpu_stream_destroy(0, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_waits_for_events_and_is_seen_by_query),
		cmocka_unit_test(no_bytes_are_no_work),
		cmocka_unit_test(nothing_goes_into_a_capturing_stream),
		cmocka_unit_test(
			events_are_queried_while_another_thread_captures),
		cmocka_unit_test(a_thread_s_own_capture_stays_whole),
		cmocka_unit_test(
			an_event_that_a_capture_caught_is_recorded_again),
		cmocka_unit_test(a_destroyed_stream_is_named),
		cmocka_unit_test(devices_copy_to_each_other),
		cmocka_unit_test(conversions_equal_the_host_s_bit_for_bit),
	};

	if (tsi_gpu_count(&gpu_child_gpus)) {
		puts(tsock_errmsg());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
