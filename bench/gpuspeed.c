/* SPDX-License-Identifier: MIT */
/*
 * gpuspeed.c - what a GPU's own copies and our stage and kernels reach there,
 * and what the parts of the GPU benchmark share.
 *
 * A process that forks has not used CUDA: everything runs in children.
 */
#include "bench/gpuspeed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "convert/gpu.h"
#include "stage/stage.h"
#include "tsock/tsock.h"

#define MAX_ROUNDS 15

/* Written by a child, read when it has ended. */
static struct {
	double a[MAX_ROUNDS], b[MAX_ROUNDS], ratio[MAX_ROUNDS];
} * sh;

void bench_gpu_must(int err, const char *what)
{
	if (err)
		bench_die("%s: %s", what, tsock_errmsg());
}

tsock_server *bench_gpu_serve(const char *stream,
			      const struct tsock_field *image, uint32_t ring,
			      uint32_t batch)
{
	const struct tsock_field fields[] = {
		*image,
		{ .name = "label", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	o.nfields = 2;
	o.fields = fields;
	o.epoch_len = UINT64_C(1) << 40;
	o.ring = ring;
	o.max_batch = batch;
	o.join_window = ring / 4;
	bench_gpu_must(tsock_serve_open(stream, &o, &s), "serve");
	return s;
}

pid_t bench_gpu_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void bench_gpu_reap(pid_t pid, const char *who)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("%s ended with status %#x", who, status);
}

void bench_gpu_in_child(void (*fn)(void), const char *who)
{
	pid_t pid = bench_gpu_child();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	bench_gpu_reap(pid, who);
}

void bench_gpu_print(const char *name, double value, const char *unit,
		     const char *against, double ratio, double spread)
{
	struct bench_result r = { .bench = BENCH_GPU_SIMULATED ? "gpu-sim"
							       : "gpu",
				  .name = name,
				  .value = value,
				  .unit = unit,
				  .against = against,
				  .ratio = ratio,
				  .spread = spread };

	bench_print(&r);
}

void bench_gpu_wait(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	bench_gpu_must(tsi_gpu_event_record(e, s), "record");
	bench_gpu_must(tsi_gpu_event_wait(e), "wait");
}

/* Seconds for count samples through a stage, as its thread does it. */
static double through_stage(struct tsi_stage *st, uint64_t from, uint64_t count)
{
	unsigned chunk = tsi_stage_chunk(st), lanes = tsi_stage_lanes(st);
	uint64_t begun = 0, ended = 0;
	int64_t t = tsi_now_ns();

	for (; ended < count; ended++) {
		while (begun < count && begun - ended < lanes) {
			bench_gpu_must(
				tsi_stage_start(st, (unsigned)(begun % lanes),
						from + begun * chunk, chunk),
				"stage");
			begun++;
		}
		bench_gpu_must(tsi_stage_finish(st, (unsigned)(ended % lanes)),
			       "stage");
	}
	return (double)(tsi_now_ns() - t) / 1e9;
}

static void upload(void)
{
	struct tsock_field f = { .name = "image",
				 .dtype = TSOCK_U8,
				 .flags = TSOCK_FIELD_IMAGE,
				 .ndim = 3,
				 .shape = { 224, 224, 3 } };
	struct tsi_ring_ident id = { .epoch_len = 1 << 20, .end = 1 << 20 };
	struct tsi_stage_parts p = { .to_device = 0 };
	struct tsi_geometry host, gpu;
	struct tsi_ring from, to;
	struct tsi_gpu_info info;
	struct tsi_gpu_event *e;
	struct tsi_stage *st;
	tsi_gpu_stream s;
	uint64_t bytes, n = 2048 / 64 * 4;
	void *pinned;

	bench_gpu_must(tsi_gpu_info(0, &info), "info");
	bench_gpu_must(
		tsi_geometry_make(&f, 1,
				  &(struct tsi_geometry_wish){ .ring = 2048 },
				  &host),
		"geometry");
	bench_gpu_must(tsi_geometry_like(&host, &f, 1, info.granularity, &gpu),
		       "geometry");
	bench_gpu_must(tsi_ring_create(&host, &id, &from), "ring");
	bench_gpu_must(tsi_ring_create_gpu(&gpu, &id, 0,
					   info.vmm_fd ? TSOCK_TRANSPORT_VMM
						       : TSOCK_TRANSPORT_LEGACY,
					   &to),
		       "GPU ring");
	bench_gpu_must(tsi_gpu_pin(0, from.data[0].base, from.data[0].len),
		       "pin");
	p.from = &from;
	p.to = &to;
	bench_gpu_must(tsi_stage_create(TSI_STAGE_UPLOAD, &p, &st), "stage");
	bytes = 64 * host.field[0].sample_bytes;
	bench_gpu_must(tsi_gpu_host_alloc(0, 2048 / 64 * bytes, &pinned),
		       "pinned memory");
	memset(pinned, 1, 2048 / 64 * bytes);
	bench_gpu_must(tsi_gpu_stream_create(0, &s), "stream");
	bench_gpu_must(tsi_gpu_event_create(0, true, &e), "event");
	through_stage(st, 0, n);
	for (int r = 0; r < MAX_ROUNDS; r++) {
		int64_t t = tsi_now_ns();

		for (uint64_t i = 0; i < n; i++)
			bench_gpu_must(
				tsi_gpu_upload(0, s,
					       to.gpu[0].base + i % 32 * bytes,
					       pinned + i % 32 * bytes, bytes),
				"copy");
		bench_gpu_wait(e, s);
		sh->b[r] = (double)(n * bytes) /
			   ((double)(tsi_now_ns() - t) / 1e9) / 1e9;
		sh->a[r] = (double)(n * bytes) / through_stage(st, 0, n) / 1e9;
		sh->ratio[r] = sh->a[r] / sh->b[r];
	}
	tsi_stage_destroy(st);
	tsi_gpu_unpin(from.data[0].base);
}

/* ---- copies of one batch's size ---- */

#define COPIES (UINT64_C(64) << 20) /* bytes that are gone through */

static uint64_t one_copy;

static double copy_rate(tsi_gpu_stream s, struct tsi_gpu_event *e, uint8_t *dst,
			const uint8_t *src)
{
	uint64_t n = COPIES / one_copy, rounds = 4;
	int64_t t = tsi_now_ns();

	for (uint64_t i = 0; i < n * rounds; i++)
		bench_gpu_must(tsi_gpu_upload(0, s, dst + i % n * one_copy,
					      src + i % n * one_copy, one_copy),
			       "copy");
	bench_gpu_wait(e, s);
	return (double)(n * rounds * one_copy) / (double)(tsi_now_ns() - t);
}

/* From a ring's kind of memory, page-locked afterwards, and from CUDA's own. */
static void copies(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;
	void *ring, *own, *dst;

	if (fd < 0 || ftruncate(fd, (off_t)COPIES))
		bench_die("memfd: %s", strerror(errno));
	ring = mmap(NULL, COPIES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	memset(ring, 1, COPIES);
	bench_gpu_must(tsi_gpu_pin(0, ring, COPIES), "pin");
	bench_gpu_must(tsi_gpu_host_alloc(0, COPIES, &own), "memory");
	memset(own, 1, COPIES);
	bench_gpu_must(tsi_gpu_alloc(0, COPIES, &dst), "memory");
	bench_gpu_must(tsi_gpu_stream_create(0, &s), "stream");
	bench_gpu_must(tsi_gpu_event_create(0, true, &e), "event");
	copy_rate(s, e, dst, ring);
	for (int r = 0; r < MAX_ROUNDS; r++) {
		sh->b[r] = copy_rate(s, e, dst, own);
		sh->a[r] = copy_rate(s, e, dst, ring);
		sh->ratio[r] = sh->a[r] / sh->b[r];
	}
}

static void copy_rows(void)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} size[] = { { "copy from the ring, 150 KB", 150528 },
		     { "copy from the ring, 1 MB", 1000000 },
		     { "copy from the ring, 9.6 MB", 9633792 },
		     { "copy from the ring, 38 MB", 38535168 } };

	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		one_copy = size[i].bytes;
		bench_gpu_in_child(copies, "the copies' process");
		bench_gpu_print(size[i].name, bench_median(sh->a, MAX_ROUNDS),
				"GB/s", "cudaMallocHost's memory",
				bench_median(sh->ratio, MAX_ROUNDS),
				bench_spread(sh->ratio, MAX_ROUNDS));
	}
}

/* ---- conversions ---- */

static struct tsi_view_spec wanted;
static uint64_t side;

static void convert(void)
{
	const uint64_t shape[] = { side, side, 3 };
	uint64_t n = 256, elems = n * side * side * 3;
	uint64_t wide = tsock_dtype_size(wanted.dtype);
	uint64_t bytes = elems * (1 + wide) / 2; /* read and written each */
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;
	void *src, *dst, *other;

	bench_gpu_must(tsi_gpu_alloc(0, elems, &src), "memory");
	bench_gpu_must(tsi_gpu_alloc(0, elems * wide, &dst), "memory");
	bench_gpu_must(tsi_gpu_alloc(0, bytes, &other), "memory");
	bench_gpu_must(tsi_gpu_stream_create(0, &s), "stream");
	bench_gpu_must(tsi_gpu_event_create(0, true, &e), "event");
	for (int r = -1; r < MAX_ROUNDS; r++) {
		int64_t t = tsi_now_ns();
		double mine, copy;

		for (int i = 0; i < 50; i++)
			bench_gpu_must(tsi_convert_gpu(0, s, &wanted, src, n,
						       shape, dst),
				       "convert");
		bench_gpu_wait(e, s);
		mine = 100. * (double)bytes / (double)(tsi_now_ns() - t);
		t = tsi_now_ns();
		for (int i = 0; i < 50; i++)
			bench_gpu_must(tsi_gpu_copy(0, s, other, dst, bytes),
				       "copy");
		bench_gpu_wait(e, s);
		copy = 100. * (double)bytes / (double)(tsi_now_ns() - t);
		if (r < 0)
			continue;
		sh->a[r] = mine;
		sh->ratio[r] = mine / copy;
	}
}

static void convert_rows(void)
{
	static const struct {
		const char *name;
		uint32_t dtype, layout;
	} kind[] = { { "u8 CHW", TSOCK_U8, TSOCK_CHW },
		     { "f16 CHW", TSOCK_F16, TSOCK_CHW },
		     { "bf16 CHW", TSOCK_BF16, TSOCK_CHW },
		     { "f32 CHW", TSOCK_F32, TSOCK_CHW },
		     { "f16 HWC", TSOCK_F16, TSOCK_HWC },
		     { "bf16 HWC", TSOCK_BF16, TSOCK_HWC },
		     { "f32 HWC", TSOCK_F32, TSOCK_HWC } };
	static const uint64_t sides[] = { 224, 299 };
	char name[64];

	for (unsigned i = 0; i < 2 * sizeof(kind) / sizeof(kind[0]); i++) {
		wanted = (struct tsi_view_spec){
			.dtype = kind[i / 2].dtype,
			.layout = kind[i / 2].layout,
			.normalize = kind[i / 2].dtype == TSOCK_U8
					     ? TSOCK_RAW
					     : TSOCK_MEAN_STD,
			.std = { 1, 1, 1 }
		};
		side = sides[i % 2];
		bench_gpu_in_child(convert, "the conversion's process");
		snprintf(name, sizeof(name), "convert to %s, %u",
			 kind[i / 2].name, (unsigned)side);
		bench_gpu_print(name, bench_median(sh->a, MAX_ROUNDS), "GB/s",
				"device copy, same bytes",
				bench_median(sh->ratio, MAX_ROUNDS),
				bench_spread(sh->ratio, MAX_ROUNDS));
	}
}

void bench_gpu_busy(void)
{
	static const uint64_t shape[] = { 224, 224, 3 };
	uint64_t n = 256, elems = n * 224 * 224 * 3;
	struct tsi_gpu_event *e;
	tsi_gpu_stream s;
	void *src, *dst;

	wanted = (struct tsi_view_spec){ .dtype = TSOCK_F32,
					 .layout = TSOCK_CHW,
					 .normalize = TSOCK_UNIT };
	bench_gpu_must(tsi_gpu_alloc(0, elems, &src), "memory");
	bench_gpu_must(tsi_gpu_alloc(0, elems * 4, &dst), "memory");
	bench_gpu_must(tsi_gpu_stream_create(0, &s), "stream");
	bench_gpu_must(tsi_gpu_event_create(0, true, &e), "event");
	for (;;) {
		for (int i = 0; i < 50; i++)
			bench_gpu_must(tsi_convert_gpu(0, s, &wanted, src, n,
						       shape, dst),
				       "convert");
		bench_gpu_wait(e, s);
	}
}

void bench_gpu_speeds(void)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	bench_gpu_in_child(upload, "the upload's process");
	bench_gpu_print("host to GPU by the stage",
			bench_median(sh->a, MAX_ROUNDS), "GB/s", "pinned copy",
			bench_median(sh->ratio, MAX_ROUNDS),
			bench_spread(sh->ratio, MAX_ROUNDS));
	copy_rows();
	convert_rows();
}
