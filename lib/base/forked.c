/*
 * forked.c - are we still in the process that opened this?
 */
#include "base/forked.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"

static _Atomic unsigned generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	/* A child has one thread. */
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

unsigned tsi_fork_generation(void)
{
	pthread_once(&once, watch);
	/* Changes only where there is no other thread. */
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool tsi_forked(unsigned since)
{
	/* The same. */
	return atomic_load_explicit(&generation, memory_order_relaxed) != since;
}

int tsi_err_forked(void)
{
	return tsi_err(TSOCK_EFORK,
		       "this handle was opened before a fork and belongs to "
		       "the parent process: open one in the child");
}
