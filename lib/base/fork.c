/* SPDX-License-Identifier: MIT */
/*
 * fork.c - is this still the process that opened a handle, or a child of it?
 *
 * The generation lies in a page that the kernel empties in every child
 * (MADV_WIPEONFORK).  That covers a child made by a bare system call too, for
 * which no fork handler runs.  Where the kernel has no such pages, a handler
 * sets the generation to 0 after fork().
 */
#include "base/fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

static _Atomic unsigned fallback; /* instead of a page */
_Atomic unsigned *tsi_fork_word = &fallback;
static _Atomic unsigned latest; /* of this process and its ancestors */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	/* A child has one thread. */
	atomic_store_explicit(tsi_fork_word, 0, memory_order_relaxed);
}

static void make_generation_page(void)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED && !madvise(p, len, MADV_WIPEONFORK))
		tsi_fork_word = p;
	else if (p != MAP_FAILED)
		munmap(p, len);
	pthread_atfork(NULL, NULL, in_child);
}

unsigned tsi_fork_generation(void)
{
	unsigned now;

	pthread_once(&once, make_generation_page);
	/* The first call in a process gives it a number; threads may race. */
	now = atomic_load_explicit(tsi_fork_word, memory_order_relaxed);
	if (!now) {
		unsigned mine = atomic_fetch_add(&latest, 1) + 1;

		if (atomic_compare_exchange_strong(tsi_fork_word, &now, mine))
			now = mine;
	}
	return now;
}

int tsi_fork_err(void)
{
	return tsi_err(TSOCK_EFORK,
		       "this handle was opened before a fork and belongs to "
		       "the parent process: open one in the child");
}
