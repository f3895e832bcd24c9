/* SPDX-License-Identifier: MIT */
/*
 * completion.c - a thread that waits until work on a GPU is done.
 */
#include "consumer/gpu/completion.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/thread.h"
#include "mem/gpu.h"

#define LEAST_US 20
#define MOST_US 1000
#define TROUBLE_US 50000 /* there is nothing to hurry for */
#define SLICE_MS 100
#define LONG_MS 10000 /* then it is said what is waited for */
#define EXIT_MS 5000  /* a driver that hangs must not keep the process */

/*
 * At exit CUDA is taken apart: nobody of ours may be in it then, and its errors
 * mean nothing any more.  Whatever is pending is freed with the process.
 */
static _Atomic bool exiting;
static _Atomic unsigned inside; /* threads of ours in CUDA */
static _Thread_local bool in_cuda;
static unsigned generation; /* of the process that watches */
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void note_exit(void)
{
	struct timespec ms = { 0, 1000000 };

	atomic_store(&exiting, true);
	/* A forked child has none of these threads. */
	if (tsi_fork_since(generation))
		return;
	for (int i = 0; i < EXIT_MS && atomic_load(&inside) > in_cuda; i++)
		nanosleep(&ms, NULL);
}

static void watch_exit(void)
{
	generation = tsi_fork_generation();
	/* Begun after CUDA was, so it is called before CUDA's own. */
	atexit(note_exit);
}

/* May this thread go into CUDA?  Then it says when it is out of it. */
static bool go_in(void)
{
	/* Either we see that the process exits, or note_exit() sees us. */
	atomic_fetch_add(&inside, 1);
	in_cuda = !atomic_load(&exiting);
	if (!in_cuda)
		atomic_fetch_sub(&inside, 1);
	return in_cuda;
}

static void come_out(void)
{
	in_cuda = false;
	atomic_fetch_sub(&inside, 1);
}

struct tsi_completion {
	unsigned device;
	pthread_mutex_t lock;
	pthread_cond_t work; /* for the thread: something came */
	pthread_cond_t back; /* for the handle: something was done */
	pthread_t thread;
	bool started, idle, stop, detached;
	struct tsi_deferred *in; /* new ones */
	_Atomic bool retired;
	_Atomic unsigned count, returned;
	_Atomic int trouble;
	char why[320]; /* written before trouble, once */
};

int tsi_completion_create(unsigned device, struct tsi_completion **out)
{
	struct tsi_completion *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	p->device = device;
	pthread_mutex_init(&p->lock, NULL);
	tsi_thread_cond_init(&p->work);
	tsi_thread_cond_init(&p->back);
	*out = p;
	return 0;
}

static void free_completion(struct tsi_completion *p)
{
	pthread_cond_destroy(&p->back);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void tsi_completion_destroy(struct tsi_completion *p)
{
	bool running;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	running = p->started;
	p->stop = true;
	/* Our own thread gave back the last batch: it ends by itself. */
	if (running && pthread_equal(p->thread, pthread_self())) {
		p->detached = true;
		pthread_mutex_unlock(&p->lock);
		pthread_detach(pthread_self());
		return;
	}
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
	if (running)
		pthread_join(p->thread, NULL);
	free_completion(p);
}

/* ---- the thread ---- */

static void note_trouble(struct tsi_completion *p, int err)
{
	/* Only this thread writes it. */
	if (atomic_load_explicit(&p->trouble, memory_order_relaxed))
		return;
	tsi_err_copy(p->why, sizeof(p->why));
	/* Pairs with tsi_completion_error(): the text is there. */
	atomic_store_explicit(&p->trouble, err, memory_order_release);
	tsi_log(TSOCK_LOG_ERROR,
		"work on GPU %u failed: %s; batches that it used are not given "
		"back",
		p->device, p->why);
}

/* Is its work done, or will it never be? */
static bool finished(struct tsi_completion *p, struct tsi_deferred *d)
{
	int err = d->poll(d);

	if (!err)
		return true;
	if (err == TSOCK_EAGAIN || atomic_load(&exiting))
		return false;
	note_trouble(p, err);
	/*
	 * Nobody asks for samples any more, and others need not wait: a context
	 * with an error that stays runs nothing any more, and what a destroyed
	 * stream had is done when everything is.
	 */
	if (!atomic_load(&p->retired))
		return false;
	return tsi_gpu_healthy(p->device) ||
	       (err == TSOCK_EARG && tsi_gpu_finish(p->device) == 0);
}

/* Call done() for what is done; the rest stays in the list.  How many. */
static unsigned poll_list(struct tsi_completion *p, struct tsi_deferred **list)
{
	struct tsi_deferred **at = list;
	unsigned n = 0;

	while (*at) {
		struct tsi_deferred *d = *at;

		if (!go_in())
			break;
		if (!finished(p, d)) {
			come_out();
			at = &d->next;
			continue;
		}
		*at = d->next;
		/* The batch it is in, and its reader, may be gone after this. */
		d->done(d);
		come_out();
		/* Counters, looked at under the lock or as hints. */
		atomic_fetch_sub(&p->count, 1);
		atomic_fetch_add(&p->returned, 1);
		n++;
	}
	return n;
}

/* Oldest first, so that the tail moves with the first of them. */
static void append_deferred(struct tsi_deferred **list, struct tsi_deferred *in)
{
	struct tsi_deferred *oldest = NULL;

	while (in) {
		struct tsi_deferred *d = in;

		in = d->next;
		d->next = oldest;
		oldest = d;
	}
	while (*list)
		list = &(*list)->next;
	*list = oldest;
}

static void sleep_us(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t us)
{
	tsi_thread_wait(c, lock, tsi_now_ns() + (int64_t)us * 1000);
}

static void *completion_thread(void *arg)
{
	struct tsi_completion *p = arg;
	struct tsi_deferred *list = NULL;
	unsigned us = LEAST_US;
	bool detached;

	tsi_thread_name("tsock-gpu-done");
	pthread_mutex_lock(&p->lock);
	for (;;) {
		unsigned n;

		if (p->in) {
			append_deferred(&list, p->in);
			p->in = NULL;
			us = LEAST_US;
		}
		if (!list) {
			if (p->stop)
				break;
			p->idle = true;
			pthread_cond_wait(&p->work, &p->lock);
			p->idle = false;
			continue;
		}
		pthread_mutex_unlock(&p->lock);
		n = poll_list(p, &list);
		pthread_mutex_lock(&p->lock);
		if (n)
			pthread_cond_signal(&p->back);
		us = n ? LEAST_US : us * 2 > MOST_US ? MOST_US : us * 2;
		if (atomic_load(&p->trouble)) {
			pthread_cond_signal(&p->back);
			us = TROUBLE_US;
		}
		if (list && atomic_load(&exiting))
			pthread_cond_wait(&p->work, &p->lock);
		else if (list && !p->in)
			sleep_us(&p->work, &p->lock, us);
	}
	detached = p->detached;
	pthread_mutex_unlock(&p->lock);
	if (detached)
		free_completion(p);
	return NULL;
}

int tsi_completion_start(struct tsi_completion *p)
{
	int rc = 0;

	pthread_once(&watch_once, watch_exit);
	pthread_mutex_lock(&p->lock);
	if (!p->started) {
		rc = tsi_thread_try(&p->thread, completion_thread, p);
		p->started = !rc;
	}
	pthread_mutex_unlock(&p->lock);
	return rc ? tsi_err(TSOCK_ESYS,
			    "can't start a thread that waits for the GPU: %s",
			    strerror(rc))
		  : 0;
}

/* ---- from outside ---- */

void tsi_completion_defer(struct tsi_completion *p, struct tsi_deferred *d)
{
	atomic_fetch_add(&p->count, 1);
	pthread_mutex_lock(&p->lock);
	d->next = p->in;
	p->in = d;
	if (p->idle)
		pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

void tsi_completion_retire(struct tsi_completion *p)
{
	atomic_store(&p->retired, true);
	pthread_mutex_lock(&p->lock);
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

int tsi_completion_error(struct tsi_completion *p)
{
	/* Pairs with note_trouble(). */
	int err = atomic_load_explicit(&p->trouble, memory_order_acquire);

	return err ? tsi_err(err,
			     "work of this process on GPU %u failed, and with "
			     "it what reads the stream: %s",
			     p->device, p->why)
		   : 0;
}

unsigned tsi_completion_count(const struct tsi_completion *p)
{
	return atomic_load(&((struct tsi_completion *)(uintptr_t)p)->count);
}

unsigned tsi_completion_returned(const struct tsi_completion *p)
{
	return atomic_load(&((struct tsi_completion *)(uintptr_t)p)->returned);
}

int tsi_completion_wait(struct tsi_completion *p, unsigned seen,
			int64_t deadline_ms)
{
	int64_t begin = tsi_now_ms(), now = begin;
	bool said = false;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	for (; atomic_load(&p->returned) == seen; now = tsi_now_ms()) {
		int64_t left = deadline_ms - now;

		err = tsi_completion_error(p);
		if (!err && left <= 0)
			err = TSOCK_EAGAIN;
		if (err)
			break;
		if (!said && now - begin > LONG_MS) {
			said = true;
			tsi_log(TSOCK_LOG_WARN,
				"waiting for work on GPU %u that uses batches "
				"which were released",
				p->device);
		}
		sleep_us(&p->back, &p->lock,
			 (uint64_t)(left < SLICE_MS ? left : SLICE_MS) * 1000);
	}
	pthread_mutex_unlock(&p->lock);
	return err;
}
