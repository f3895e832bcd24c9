/* SPDX-License-Identifier: MIT */
/*
 * zmq_trial.c - can a ZeroMQ context have what it needs?
 *
 * ZeroMQ aborts the process when it can't open a descriptor or start a thread.
 * So as many as it needs are opened and started here before, all at the same
 * time, and closed and ended again.
 */
#include "wire/zmq_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"

/* The most that a context with one socket and a connection opens. */
#define DESCRIPTORS 12
#define THREADS 2 /* one for input and output, one that closes sockets */
#define HEAP (1u << 20)

int tsi_zmq_err_descriptors(const char *what, const char *path)
{
	struct rlimit limit = { 0 };

	if (errno != EMFILE)
		return tsi_err_sys("%s %s: %d descriptors can't be opened",
				   what, path, DESCRIPTORS);
	getrlimit(RLIMIT_NOFILE, &limit);
	return tsi_err(TSOCK_ESYS,
		       "%s %s: no descriptor is left (the limit is %llu): "
		       "raise it, ulimit -n",
		       what, path, (unsigned long long)limit.rlim_cur);
}

int tsi_zmq_try_descriptors(const char *what, const char *path)
{
	int fd[DESCRIPTORS];
	int n = 0, err = 0;

	while (n < DESCRIPTORS) {
		fd[n] = n ? fcntl(fd[0], F_DUPFD_CLOEXEC, 0)
			  : open("/", O_PATH | O_CLOEXEC);
		if (fd[n] < 0) {
			err = tsi_zmq_err_descriptors(what, path);
			break;
		}
		n++;
	}
	while (n > 0)
		close(fd[--n]);
	return err;
}

struct trial {
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool may_end;
};

static void *wait_for_the_end(void *arg)
{
	struct trial *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->may_end)
		pthread_cond_wait(&t->over, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int err_threads(const char *what, const char *path, int reason)
{
	return tsi_err(reason == ENOMEM ? TSOCK_ENOMEM : TSOCK_ESYS,
		       "%s %s: the %d threads that ZeroMQ needs, or memory for "
		       "them, can't be had (%s): raise the limit of processes "
		       "(ulimit -u, a container's pids), or that of address "
		       "space (ulimit -v)",
		       what, path, THREADS, strerror(reason));
}

int tsi_zmq_try_threads(const char *what, const char *path)
{
	struct trial t = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
			   false };
	pthread_t thread[THREADS];
	/* Volatile: an unused block may be optimized away. */
	void *volatile heap;
	int n = 0, rc = 0;

	while (n < THREADS && !rc) {
		rc = tsi_thread_try(&thread[n], wait_for_the_end, &t);
		n += !rc;
	}
	heap = malloc(HEAP);
	if (!rc && !heap)
		rc = ENOMEM;
	free(heap);
	pthread_mutex_lock(&t.lock);
	t.may_end = true;
	pthread_cond_broadcast(&t.over);
	pthread_mutex_unlock(&t.lock);
	while (n > 0)
		pthread_join(thread[--n], NULL);
	return rc ? err_threads(what, path, rc) : 0;
}
