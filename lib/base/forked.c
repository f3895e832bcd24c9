/*
 * forked.c - are we still in the process that opened this?
 *
 * The generation is in a page that every child gets empty (MADV_WIPEONFORK),
 * also one that was made by a bare system call, of which no handler hears.
 * Where the kernel has no such pages, a handler empties it after fork().
 */
#include "base/forked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

static _Atomic unsigned fallback; /* instead of a page */
static _Atomic unsigned *generation = &fallback;
static _Atomic unsigned latest; /* of this process's and its ancestors' */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	/* A child has one thread. */
	atomic_store_explicit(generation, 0, memory_order_relaxed);
}

static void watch(void)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED && !madvise(p, len, MADV_WIPEONFORK))
		generation = p;
	else if (p != MAP_FAILED)
		munmap(p, len);
	pthread_atfork(NULL, NULL, in_child);
}

unsigned tsi_fork_generation(void)
{
	unsigned now;

	pthread_once(&once, watch);
	/* The first in this process gives it a number; threads may race. */
	now = atomic_load_explicit(generation, memory_order_relaxed);
	if (!now) {
		unsigned mine = atomic_fetch_add(&latest, 1) + 1;

		if (atomic_compare_exchange_strong(generation, &now, mine))
			now = mine;
	}
	return now;
}

bool tsi_forked(unsigned since)
{
	/* Changes only where there is no other thread. */
	return atomic_load_explicit(generation, memory_order_relaxed) != since;
}

int tsi_err_forked(void)
{
	return tsi_err(TSOCK_EFORK,
		       "this handle was opened before a fork and belongs to "
		       "the parent process: open one in the child");
}
