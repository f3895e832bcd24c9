/* SPDX-License-Identifier: MIT */
/*
 * gpuspeed.h - parts of the GPU benchmark.
 */
#ifndef BENCH_GPUSPEED_H
#define BENCH_GPUSPEED_H

#include <sys/types.h>

#include "mem/gpu.h"
#include "tsock/tsock.h"

/* Built on the simulated runtime?  Only that build sees this header. */
#if __has_include("simcuda.h")
#define BENCH_GPU_SIMULATED 1
#else
#define BENCH_GPU_SIMULATED 0
#endif

/* End with tsock's message if err isn't 0. */
void bench_gpu_must(int err, const char *what);

/* A child that dies with this process; wait for it, which must have succeeded;
 * both, for a function. */
pid_t bench_gpu_child(void);
void bench_gpu_reap(pid_t pid, const char *who);
void bench_gpu_in_child(void (*fn)(void), const char *who);

/* One result, of the bench "gpu" or "gpu-sim". */
void bench_gpu_print(const char *name, double value, const char *unit,
		     const char *against, double ratio, double spread);

/* Until all that is in the stream is done. */
void bench_gpu_wait(struct tsi_gpu_event *e, tsi_gpu_stream s);

/* A stream of that image and a label, of one epoch that never ends. */
tsock_server *bench_gpu_serve(const char *stream,
			      const struct tsock_field *image, uint32_t ring,
			      uint32_t batch);

/* Measure and print copies to the GPU, and conversions. */
void bench_gpu_speeds(void);

/* Keep the GPU busy until this process is killed. */
void bench_gpu_busy(void);

/* Measure and print how long handing over takes (gpuhandoff.c). */
void bench_gpu_handoff(const char *stream);

/* Measure and print whether copies and decoding overlap (gpuoverlap.c). */
void bench_gpu_overlap(const char *stream);

#endif
