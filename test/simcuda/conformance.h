/* SPDX-License-Identifier: MIT */
/*
 * conformance.h - what the conformance programs share: checks of CUDA calls,
 * buffers with patterns, and children that start afresh by exec (a forked
 * child can't use CUDA).
 *
 * Only CUDA's interface is used, so that the same tests run on a real GPU.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/cuda/entry.h"
#include "test/lib/send_fds.h"

#define OK(call) gives(call, cudaSuccess, #call, __FILE__, __LINE__)
#define FAILS(call, code) fails(call, code, #call, __FILE__, __LINE__)

static inline void gives(cudaError_t got, cudaError_t want, const char *call,
			 const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s: %s, not %s\n", call, cudaGetErrorName(got),
		cudaGetErrorName(want));
	_assert_true(0, call, file, line);
}

/* Fails so, and that is the last error until it is fetched. */
static inline void fails(cudaError_t got, cudaError_t want, const char *call,
			 const char *file, int line)
{
	gives(got, want, call, file, line);
	gives(cudaGetLastError(), want, call, file, line);
}

static inline int devices(void)
{
	int n = 0;

	return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

static inline void need_devices(int n)
{
	if (devices() < n)
		skip();
}

static inline bool mode_is(const char *name)
{
	const char *s = getenv("SIMCUDA_MODE");

	return s && strcmp(s, name) == 0;
}

static inline void *driver(const char *name)
{
	void *fn = NULL;

	OK((cudaError_t)tsi_cuda_entry(name, &fn));
	return fn;
}

/* Calls a function of the driver. */
#define CU(name, ...) \
	gives((cudaError_t)((__typeof__(&name))driver(#name))(__VA_ARGS__), \
	      cudaSuccess, #name, __FILE__, __LINE__)
#define CUFAILS(name, code, ...) \
	gives((cudaError_t)((__typeof__(&name))driver(#name))(__VA_ARGS__), \
	      (cudaError_t)code, #name, __FILE__, __LINE__)

static inline uint8_t byte_of(size_t i, unsigned seed)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + seed * 29 + 7);
}

static inline void fill(void *p, size_t len, unsigned seed)
{
	uint8_t *b = p;

	for (size_t i = 0; i < len; i++)
		b[i] = byte_of(i, seed);
}

static inline void verify(const void *p, size_t len, unsigned seed)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i++)
		if (b[i] != byte_of(i, seed))
			fail_msg("byte %zu of %zu isn't pattern %u's", i, len,
				 seed);
}

static inline void *pinned(size_t len)
{
	void *p;

	OK(cudaHostAlloc(&p, len, cudaHostAllocDefault));
	return p;
}

static inline void *device_memory(size_t len)
{
	void *p;

	OK(cudaMalloc(&p, len));
	return p;
}

static inline cudaStream_t new_stream(void)
{
	cudaStream_t s;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

static inline cudaEvent_t new_event(void)
{
	cudaEvent_t e;

	OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	return e;
}

static inline void upload(void *dst, size_t len, unsigned seed)
{
	void *host = malloc(len);

	assert_non_null(host);
	fill(host, len, seed);
	OK(cudaMemcpy(dst, host, len, cudaMemcpyHostToDevice));
	free(host);
}

static inline void verify_device(const void *src, size_t len, unsigned seed)
{
	void *host = malloc(len);

	assert_non_null(host);
	OK(cudaMemcpy(host, src, len, cudaMemcpyDeviceToHost));
	verify(host, len, seed);
	free(host);
}

/* ---- children ---- */

/*
 * This program again, with an end of a socket pair as descriptor 3 and that
 * role as its one argument; setting is NAME=VALUE, or NULL.
 */
static inline pid_t child(const char *role, const char *setting, int *sock)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (pair[1] == 3)
			pair[1] = dup(3);
		dup2(pair[1], 3);
		if (setting)
			putenv((char *)(uintptr_t)setting);
		execl("/proc/self/exe", "conformance", role, (char *)NULL);
		_exit(126);
	}
	close(pair[1]);
	if (sock)
		*sock = pair[0];
	else
		close(pair[0]);
	return pid;
}

/* Its exit status; the negative signal that ended it. */
static inline int ended(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A child with that role and setting ends with that status. */
static inline void run_machine(const char *role, const char *setting,
			       int status)
{
	assert_int_equal(ended(child(role, setting, NULL)), status);
}

/* What a child does: its role, as a test. */
static inline int conformance_role(CMUnitTestFunction play, char *role)
{
	const struct CMUnitTest one[] = {
		cmocka_unit_test_prestate(play, role),
	};

	cmocka_set_message_output(CM_OUTPUT_SUBUNIT);
	return cmocka_run_group_tests(one, NULL, NULL);
}

static inline void tell(int sock, const void *p, size_t len)
{
	assert_int_equal(send(sock, p, len, MSG_NOSIGNAL), len);
}

static inline void hear(int sock, void *p, size_t len)
{
	assert_int_equal(recv(sock, p, len, 0), len);
}

/* A rendezvous without content. */
static inline void nudge(int sock)
{
	tell(sock, "!", 1);
}

static inline void await(int sock)
{
	char c;

	hear(sock, &c, 1);
}

static inline void send_fd(int sock, int fd)
{
	char byte = 0;

	assert_int_equal(send_fds(sock, &byte, 1, &fd, 1), 1);
}

static inline int receive_fd(int sock)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	int fd;

	assert_int_equal(recvmsg(sock, &m, MSG_CMSG_CLOEXEC), 1);
	assert_non_null(CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

/*
 * Without SIMCUDA_MODE in the environment, the program runs once for each
 * mode; on a real GPU there is only the one.
 */
static inline int in_every_mode(void)
{
#ifdef SIMCUDA
	static const char *const modes[] = { "eager", "late", "random",
					     "reverse", "stuck" };
	int worst = 0;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		pid_t pid;
		int status;

		printf("SIMCUDA_MODE=%s\n", modes[i]);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			setenv("SIMCUDA_MODE", modes[i], 1);
			setenv("SIMCUDA_STUCK_MS", "300", 0);
			execl("/proc/self/exe", "conformance", (char *)NULL);
			_exit(126);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			worst = 1;
	}
	return worst;
#else
	return -1;
#endif
}

/* What a program's main() does before its tests; < 0: run them. */
static inline int conformance_start(void)
{
	int n;

#ifdef SIMCUDA
	if (!getenv("SIMCUDA_MODE"))
		return in_every_mode();
#endif
	if (cudaGetDeviceCount(&n) == cudaSuccess && n > 0)
		return -1;
	printf("skipped: no GPU (%s)\n", cudaGetErrorName(cudaGetLastError()));
	return 77;
}

/* What a child does that has a socket, by its role; a list ends with NULL. */
struct conformance_child {
	const char *name;
	void (*run)(int sock);
};

static inline void conformance_play(void **state)
{
	struct conformance_child *c = *state;

	c->run(3);
}

/* As conformance_start(), for a program that may be its own child. */
static inline int conformance_start_or_play(int argc, char **argv,
					    struct conformance_child *children)
{
	for (struct conformance_child *c = children; argc > 1 && c->name; c++) {
		const struct CMUnitTest one[] = {
			cmocka_unit_test_prestate(conformance_play, c),
		};

		if (strcmp(c->name, argv[1]))
			continue;
		cmocka_set_message_output(CM_OUTPUT_SUBUNIT);
		return cmocka_run_group_tests(one, NULL, NULL);
	}
	return conformance_start();
}

#endif
