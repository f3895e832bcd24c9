/*
 * thread.c - starting the library's own threads.
 */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "base/err.h"

int tsi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? tsi_err(TSOCK_ESYS, "can't start a thread: %s",
			    strerror(rc))
		  : 0;
}
