/* SPDX-License-Identifier: MIT */
/*
 * proc.c - processes of a system test.
 */
#include "test/lib/proc.h"

#include "base/clock.h"
#include "test/lib/sanitized.h"

/* No child needs so long, and the runner's limit is longer. */
#define LONGEST_MS (SANITIZED ? 300000 : 200000)

void proc_pause_us(unsigned us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

void proc_log_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= TSOCK_LOG_WARN || getenv("TEST_VERBOSE"))
		fprintf(stderr, "[%d] %s\n", (int)getpid(), line);
}

/* Children that were not waited for. */
static struct {
	pid_t pid[64];
	unsigned n;
} children;

pid_t proc_spawn(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		tsock_set_logger(proc_log_line, NULL);
		children.n = 0;
	} else if (children.n < 64) {
		children.pid[children.n++] = pid;
	}
	return pid;
}

/* The process was waited for. */
static void forget(pid_t pid)
{
	for (unsigned i = 0; i < children.n; i++)
		if (children.pid[i] == pid)
			children.pid[i] = children.pid[--children.n];
}

bool proc_has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pid;
}

/* A child that there is not isn't waited for. */
static bool still_runs(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid != pid;
}

/* The runner would end the test, and tell nothing of what was waited for. */
static void await_end(pid_t pid)
{
	int64_t until = tsi_now_ms() + LONGEST_MS;
	unsigned us = 50;

	while (still_runs(pid)) {
		if (tsi_now_ms() > until) {
			fprintf(stderr,
				"child %d has not ended after %d s: it is "
				"killed\n",
				(int)pid, LONGEST_MS / 1000);
			kill(pid, SIGKILL);
			return;
		}
		proc_pause_us(us);
		if (us < 5000)
			us += us / 4;
	}
}

int proc_ended(pid_t pid)
{
	int status, rc;

	await_end(pid);
	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	forget(pid);
	if (rc < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

void proc_kill_and_reap(pid_t pid)
{
	siginfo_t info;

	/* Once it was waited for, the number may be anybody's. */
	if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		kill(pid, SIGKILL);
	proc_ended(pid);
}

int proc_end_children(void **state)
{
	(void)state;
	while (children.n)
		proc_kill_and_reap(children.pid[children.n - 1]);
	return 0;
}

void proc_own_folder(void)
{
	static char folder[] = "/tmp/tsock-test-XXXXXX";

	if (getenv("TSOCK_DIR"))
		return;
	if (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)) {
		perror(folder);
		exit(1);
	}
}
