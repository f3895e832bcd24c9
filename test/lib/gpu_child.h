/* SPDX-License-Identifier: MIT */
/*
 * gpu_child.h - what tests of the GPU part share.
 *
 * A test program runs itself again: with another environment, since a runtime
 * looks at it once, or as the other process.  One that was started as a child
 * runs one function by name and prints what it finds; the parent reads that.
 *
 * Included by test programs, after cmocka.
 */
#ifndef TEST_LIB_GPU_CHILD_H
#define TEST_LIB_GPU_CHILD_H

#include <stdbool.h>
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
static inline void child_main(int argc, char **argv, const struct child *all)
{
	if (argc < 3 || strcmp(argv[1], "--child") != 0)
		return;
	for (; all->name; all++) {
		if (strcmp(argv[2], all->name) != 0)
			continue;
		all->run(argc - 3, argv + 3);
		fflush(stdout);
		exit(0);
	}
	exit(99);
}

/*
 * Run argv (NULL ends it) as a child with env ("NAME=VALUE", NULL ends it;
 * NULL is none); returns its exit code, 128 + a signal, and its output.
 */
static inline int child_run(char *const *argv, const char *const *env,
			    char *out, size_t n)
{
	char *args[16] = { (char *)"/proc/self/exe", (char *)"--child" };
	size_t len = 0;
	ssize_t got;
	int pipes[2], status;
	pid_t pid;

	for (int i = 0; i < 12 && argv[i]; i++)
		args[i + 2] = argv[i];
	fflush(NULL);
	if (pipe(pipes) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], 1);
		close(pipes[0]);
		close(pipes[1]);
		for (; env && *env; env++)
			putenv((char *)*env);
		execv(args[0], args);
		_exit(98);
	}
	close(pipes[1]);
	while (len + 1 < n &&
	       (got = read(pipes[0], out + len, n - len - 1)) > 0)
		len += (size_t)got;
	out[len] = 0;
	close(pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* How many; 0: none here.  Set by main(). */
static unsigned ngpus;

static inline void need_gpus(unsigned n)
{
	if (ngpus < n) {
		print_message("needs %u GPU%s, here are %u\n", n,
			      n == 1 ? "" : "s", ngpus);
		skip();
	}
}

/* What is in device memory, when all before it in the stream is done. */
static inline void fetch(unsigned device, tsi_gpu_stream s, void *dst,
			 const void *src, size_t bytes)
{
	struct tsi_gpu_event *e;

	assert_int_equal(tsi_gpu_download(device, s, dst, src, bytes), 0);
	assert_int_equal(tsi_gpu_event_create(device, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
}

static inline void upload(unsigned device, tsi_gpu_stream s, void *dst,
			  const void *src, size_t bytes)
{
	struct tsi_gpu_event *e;

	assert_int_equal(tsi_gpu_upload(device, s, dst, src, bytes), 0);
	assert_int_equal(tsi_gpu_event_create(device, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
}

static inline void pattern(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

#endif
