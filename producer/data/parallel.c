/* SPDX-License-Identifier: MIT */
/*
 * parallel.c - a loop over many small pieces of work by several threads.
 */
#include "data/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/thread.h"

#define MAX_THREADS 64

struct loop {
	_Atomic uint64_t next;
	uint64_t n;
	uint64_t chunk;
	int (*fn)(void *arg, uint64_t first, uint64_t last);
	void *arg;
	_Atomic int failed;
	pthread_mutex_t lock;
	int err; /* under the lock, with its piece and its message */
	uint64_t at;
	char message[512];
};

static void fail_loop(struct loop *l, uint64_t first, int err)
{
	pthread_mutex_lock(&l->lock);
	if (!l->err || first < l->at) {
		l->err = err;
		l->at = first;
		/* The text of an error is its thread's own: keep it. */
		tsi_err_copy(l->message, sizeof(l->message));
	}
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->failed, 1);
}

static void *work(void *arg)
{
	struct loop *l = arg;

	while (!atomic_load(&l->failed)) {
		uint64_t first = atomic_fetch_add(&l->next, l->chunk);
		uint64_t last = first + l->chunk;
		int err;

		if (first >= l->n)
			break;
		err = l->fn(l->arg, first, last < l->n ? last : l->n);
		if (err)
			fail_loop(l, first, err);
	}
	return NULL;
}

static void *thread_main(void *arg)
{
	tsi_thread_name("tsock-parallel");
	return work(arg);
}

int tsi_parallel(unsigned threads, uint64_t n, uint64_t chunk,
		 int (*fn)(void *arg, uint64_t first, uint64_t last), void *arg)
{
	struct loop l = { .n = n, .chunk = chunk, .fn = fn, .arg = arg };
	pthread_t thread[MAX_THREADS];
	unsigned started = 0;

	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (threads > (n + chunk - 1) / chunk)
		threads = (unsigned)((n + chunk - 1) / chunk);
	pthread_mutex_init(&l.lock, NULL);
	/* With fewer threads than asked for the loop only takes longer. */
	while (started + 1 < threads &&
	       !tsi_thread_try(&thread[started], thread_main, &l))
		started++;
	work(&l);
	while (started > 0)
		pthread_join(thread[--started], NULL);
	pthread_mutex_destroy(&l.lock);
	return l.err ? tsi_err(l.err, "%s", l.message) : 0;
}
