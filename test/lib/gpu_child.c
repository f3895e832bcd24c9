/* SPDX-License-Identifier: MIT */
/*
 * gpu_child.c - a test program that runs itself again, as a child.
 */
#include "test/lib/gpu_child.h"

unsigned gpu_child_gpus;

void gpu_child_main(int argc, char **argv, const struct child *all)
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

int gpu_child_run(char *const *argv, const char *const *env, char *out,
		  size_t n)
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

void gpu_child_need_gpus(unsigned n)
{
	if (gpu_child_gpus < n) {
		print_message("needs %u GPU%s, here are %u\n", n,
			      n == 1 ? "" : "s", gpu_child_gpus);
		skip();
	}
}

void gpu_child_fetch(unsigned device, tsi_gpu_stream s, void *dst,
		     const void *src, size_t bytes)
{
	struct tsi_gpu_event *e;

	assert_int_equal(tsi_gpu_download(device, s, dst, src, bytes), 0);
	assert_int_equal(tsi_gpu_event_create(device, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
}

void gpu_child_upload(unsigned device, tsi_gpu_stream s, void *dst,
		      const void *src, size_t bytes)
{
	struct tsi_gpu_event *e;

	assert_int_equal(tsi_gpu_upload(device, s, dst, src, bytes), 0);
	assert_int_equal(tsi_gpu_event_create(device, true, &e), 0);
	assert_int_equal(tsi_gpu_event_record(e, s), 0);
	assert_int_equal(tsi_gpu_event_wait(e), 0);
	tsi_gpu_event_destroy(e);
}

void gpu_child_pattern(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}
