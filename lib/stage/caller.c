/* SPDX-License-Identifier: MIT */
/*
 * caller.c - calls that may never return, made in a thread of their own, which
 * is left behind when one doesn't.
 *
 * The thread is detached.  What both use is freed by the one that lets go of it
 * last.
 */
#include "stage/caller.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"

struct tsi_caller {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char name[16];
	void (*last)(void *arg);
	void *arg;
	int (*fn)(void *arg); /* the call under way; NULL: none is */
	bool ending;
	struct tsi_err_saved result;
};

static void destroy_caller(struct tsi_caller *c)
{
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *caller_main(void *arg)
{
	struct tsi_caller *c = arg;
	int err;

	tsi_thread_name(c->name);
	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		if (!c->fn) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		err = c->fn(c->arg);
		pthread_mutex_lock(&c->lock);
		c->result = tsi_err_save(err);
		c->fn = NULL;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	c->last(c->arg);
	destroy_caller(c);
	return NULL;
}

int tsi_caller_start(const char *name, void (*last)(void *arg), void *arg,
		     struct tsi_caller **out)
{
	struct tsi_caller *c = calloc(1, sizeof(*c));
	pthread_t thread;
	int err;

	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for a thread");
	pthread_mutex_init(&c->lock, NULL);
	tsi_thread_cond_init(&c->changed);
	strncpy(c->name, name, sizeof(c->name) - 1);
	c->last = last;
	c->arg = arg;
	err = tsi_thread_start(&thread, caller_main, c);
	if (err) {
		destroy_caller(c);
		return err;
	}
	pthread_detach(thread);
	*out = c;
	return 0;
}

bool tsi_caller_is_free(struct tsi_caller *c, int64_t until_ns)
{
	bool is_free;

	pthread_mutex_lock(&c->lock);
	while (c->fn && tsi_now_ns() < until_ns)
		tsi_thread_wait(&c->changed, &c->lock, until_ns);
	is_free = !c->fn;
	pthread_mutex_unlock(&c->lock);
	return is_free;
}

bool tsi_caller_call(struct tsi_caller *c, int (*fn)(void *arg),
		     int64_t limit_ns, int *err)
{
	pthread_mutex_lock(&c->lock);
	c->fn = fn;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (!tsi_caller_is_free(c, tsi_now_ns() + limit_ns))
		return false;
	*err = tsi_err_restore(&c->result);
	return true;
}

void tsi_caller_end(struct tsi_caller *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->changed);
	/* The thread frees c as soon as it has the lock. */
	pthread_mutex_unlock(&c->lock);
}
