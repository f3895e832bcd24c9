/* SPDX-License-Identifier: MIT */
/*
 * gpu_child.h - what tests of the GPU part share.
 *
 * A test program runs itself again: with another environment, since a runtime
 * looks at it once, or as the other process.  One that was started as a child
 * runs one function by name and prints what it finds; the parent reads that.
 */
#ifndef TEST_LIB_GPU_CHILD_H
#define TEST_LIB_GPU_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/gpu.h"
#include "test/simcuda/hooks.h"

/*
 * CUDA's own, to look behind the back of what is tested; not there without
 * CUDA.  The real ones return an enum of int's size.
 */
extern int cudaGetLastError(void) __attribute__((weak));
extern int cudaGetDevice(int *device) __attribute__((weak));
extern int cudaSetDevice(int device) __attribute__((weak));
extern int cudaStreamBeginCapture(void *stream, int mode) __attribute__((weak));
extern int cudaStreamEndCapture(void *stream, void **graph)
	__attribute__((weak));
extern int cudaGraphDestroy(void *graph) __attribute__((weak));
extern int cudaStreamDestroy(void *stream) __attribute__((weak));

/* The simulation's; not there with a real runtime. */
#pragma weak simcuda_live
#pragma weak simcuda_after
#pragma weak simcuda_see_destroyed
#pragma weak simcuda_set_faults

struct child {
	const char *name;
	void (*run)(int argc, char **argv);
};

/* In main(): run the child that argv asks for and exit, or return. */
void gpu_child_main(int argc, char **argv, const struct child *all);

/*
 * Run argv (NULL ends it) as a child with env ("NAME=VALUE", NULL ends it;
 * NULL is none); returns its exit code, 128 + a signal, and its output.
 */
int gpu_child_run(char *const *argv, const char *const *env, char *out,
		  size_t n);

/* How many; 0: none here.  Set by main(). */
extern unsigned gpu_child_gpus;

void gpu_child_need_gpus(unsigned n);

/* What is in device memory, when all before it in the stream is done. */
void gpu_child_fetch(unsigned device, tsi_gpu_stream s, void *dst,
		     const void *src, size_t bytes);

void gpu_child_upload(unsigned device, tsi_gpu_stream s, void *dst,
		      const void *src, size_t bytes);

void gpu_child_pattern(uint8_t *p, size_t n, uint32_t seed);

#endif
