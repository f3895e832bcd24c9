/* SPDX-License-Identifier: MIT */
/*
 * supervise.c - a process that starts the one that serves again when that was
 * killed.
 */
#include "cli/supervise.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/serve.h"
#include "tsock/tsock.h"

#define FIRST_MS 100
#define MOST_MS 10000
#define STEADY_MS 60000 /* after this long, the start didn't kill it */

static pid_t start(const sigset_t *old)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	/* Nobody would start the next one, nor pass a signal on. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(TSI_EXIT_OK);
	sigprocmask(SIG_SETMASK, old, NULL);
	return 0;
}

/* A terminal sends its signals to both processes. */
static bool has_it_too(const siginfo_t *info)
{
	return info->si_code > 0;
}

/*
 * Wait for the child's end, at most until then: its status, or -1.  *stop: the
 * signal by which all of it is to end.
 */
static int await_end(const sigset_t *waited, pid_t pid, int64_t until_ms,
		     int *stop)
{
	for (;;) {
		int64_t left = until_ms - tsi_now_ms();
		struct timespec ts = { left / 1000, left % 1000 * 1000000 };
		siginfo_t info;
		int status, sig;

		if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid)
			return status;
		if (left <= 0)
			return -1;
		if (until_ms == INT64_MAX)
			sig = sigwaitinfo(waited, &info);
		else
			sig = sigtimedwait(waited, &info, &ts);
		if (sig <= 0 || sig == SIGCHLD)
			continue;
		*stop = sig;
		if (pid <= 0)
			return -1;
		if (!has_it_too(&info))
			kill(pid, sig);
	}
}

static void say(pid_t pid, int sig, int64_t wait_ms)
{
	fprintf(stderr,
		"tsock-producer: process %ld was killed (%s); another one is "
		"started in %.1f s\n",
		(long)pid, strsignal(sig), (double)wait_ms / 1e3);
}

bool tsi_supervise(const char *name, const sigset_t *stopping, int *code)
{
	sigset_t waited = *stopping, old;
	int64_t wait_ms = FIRST_MS, begun_ns = tsi_now_ns();
	int stop = 0, status;

	sigaddset(&waited, SIGCHLD);
	sigprocmask(SIG_BLOCK, &waited, &old);
	for (;;) {
		int64_t born = tsi_now_ms();
		pid_t pid = start(&old);

		if (!pid)
			return false;
		if (pid < 0) {
			fprintf(stderr, "tsock-producer: fork: %s\n",
				strerror(errno));
			*code = TSI_EXIT_SYSTEM;
			return true;
		}
		status = await_end(&waited, pid, INT64_MAX, &stop);
		*code = WIFEXITED(status) ? WEXITSTATUS(status)
					  : 128 + WTERMSIG(status);
		if (WIFEXITED(status) || stop)
			return true;
		if (tsi_now_ms() - born > STEADY_MS)
			wait_ms = FIRST_MS;
		say(pid, WTERMSIG(status), wait_ms);
		await_end(&waited, 0, tsi_now_ms() + wait_ms, &stop);
		/* Or somebody has ended the stream for good. */
		if (stop || tsock_stopped(name, begun_ns)) {
			*code = TSI_EXIT_OK;
			return true;
		}
		wait_ms = wait_ms * 2 < MOST_MS ? wait_ms * 2 : MOST_MS;
	}
}
