/* SPDX-License-Identifier: MIT */
/*
 * thread.c - starting the library's own threads, and how they wait.
 */
#include "base/thread.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/err.h"

void tsi_thread_block_signals(sigset_t *before)
{
	static const int own[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE };
	sigset_t all;

	sigfillset(&all);
	/* A thread's own fault goes to it; blocked, it ends the process. */
	for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
		sigdelset(&all, own[k]);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void tsi_thread_restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

int tsi_thread_try(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t before;
	int err;

	tsi_thread_block_signals(&before);
	err = pthread_create(t, NULL, fn, arg);
	tsi_thread_restore_signals(&before);
	return err;
}

int tsi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	int rc = tsi_thread_try(t, fn, arg);

	return rc ? tsi_err(TSOCK_ESYS, "can't start a thread: %s",
			    strerror(rc))
		  : 0;
}

void tsi_thread_name(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

void tsi_thread_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

int tsi_thread_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ns)
{
	struct timespec ts = { until_ns / 1000000000, until_ns % 1000000000 };

	return pthread_cond_timedwait(c, lock, &ts);
}
