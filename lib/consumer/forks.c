/* SPDX-License-Identifier: MIT */
/*
 * forks.c - batches in a forked child stay what they were at the fork.
 *
 * Before the fork every held batch is pinned, so that its place can't be used
 * again before the fork is over, and its pages are made private, or copied if
 * they are read-only.  A batch that is acquired meanwhile waits for the end of
 * the fork before anybody gets to see it.  The handlers allocate nothing by
 * malloc() and log only when the lock is given back.
 */
#include "consumer/forks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "consumer/pages.h"

/* Pages that the child will find at to; they follow the page it lies in. */
struct copy {
	struct copy *next;
	uint8_t *to;
	size_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Atomic bool tsi_forks_now;

/* All with the lock. */
static struct tsi_fork_client *clients;
static struct tsi_fork_pin *pinned;
static struct copy *copies;
static size_t failed; /* bytes that the child won't find */
static int reason;

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint8_t *copied_bytes(struct copy *c)
{
	return (uint8_t *)c + page_size();
}

/* ---- before ---- */

static int copy_pages(void *from, size_t len)
{
	size_t page = page_size();
	struct copy *c = mmap(NULL, page + len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		return -1;
	c->to = from;
	c->len = len;
	c->next = copies;
	copies = c;
	memcpy(copied_bytes(c), from, len);
	return mprotect(copied_bytes(c), len, PROT_READ);
}

/* Better no bytes in the child than other ones. */
static void withhold(void *addr, size_t len)
{
	reason = errno;
	failed += len;
	madvise(addr, len, MADV_DONTFORK);
}

void tsi_forks_save(void *addr, size_t len, bool writable)
{
	if (writable ? tsi_pages_take(addr, len) : copy_pages(addr, len))
		withhold(addr, len);
}

void tsi_forks_allow(void *addr, size_t len, bool writable)
{
	(void)writable;
	if (failed)
		madvise(addr, len, MADV_DOFORK);
}

void tsi_forks_pin(struct tsi_fork_pin *p)
{
	p->next = pinned;
	pinned = p;
}

static void before(void)
{
	int saved = errno;

	tsi_forks_lock();
	/* Pairs with tsi_forks_going_on(): what isn't pinned here sees it. */
	atomic_store(&tsi_forks_now, true);
	for (struct tsi_fork_client *c = clients; c; c = c->next)
		c->pin_all(c);
	errno = saved;
}

/* ---- after ---- */

static void fork_is_over(void)
{
	pinned = NULL;
	copies = NULL;
	failed = 0;
	atomic_store(&tsi_forks_now, false);
	tsi_forks_unlock();
}

static void drop_copies(void)
{
	for (struct copy *c = copies, *next; c; c = next) {
		next = c->next;
		munmap(c, page_size() + c->len);
	}
}

/* Those that were released during the fork. */
static struct tsi_fork_pin *unpin(void)
{
	struct tsi_fork_pin *released = NULL;

	for (struct tsi_fork_pin *p = pinned, *next; p; p = next) {
		next = p->next;
		if (p->unpin(p))
			continue;
		p->next = released;
		released = p;
	}
	return released;
}

static void in_parent(void)
{
	size_t lost = failed;
	int saved = errno, why = reason;
	struct tsi_fork_pin *released = unpin();

	drop_copies();
	fork_is_over();
	for (struct tsi_fork_pin *p = released, *next; p; p = next) {
		next = p->next;
		p->finish(p);
	}
	if (lost) {
		char text[96];

		tsi_log(TSOCK_LOG_ERROR,
			"a forked child can't read the batches in hand: %zu "
			"bytes of them couldn't be copied for it (%s); fork "
			"before they are taken, or after they are released",
			lost, strerror_r(why, text, sizeof(text)));
	}
	errno = saved;
}

static void after_fork(void)
{
	for (struct copy *c = copies, *next; c; c = next) {
		next = c->next;
		if (mremap(copied_bytes(c), c->len, c->len,
			   MREMAP_MAYMOVE | MREMAP_FIXED, c->to) == MAP_FAILED)
			munmap(c->to, c->len);
		munmap(c, page_size());
	}
	/* The clients, and all that they pinned, are the parent's. */
	clients = NULL;
	fork_is_over();
}

/* ---- public ---- */

static void watch(void)
{
	pthread_atfork(before, in_parent, after_fork);
}

void tsi_forks_watch(struct tsi_fork_client *c)
{
	pthread_once(&once, watch);
	tsi_forks_lock();
	c->next = clients;
	clients = c;
	tsi_forks_unlock();
}

void tsi_forks_forget(struct tsi_fork_client *c)
{
	tsi_forks_lock();
	for (struct tsi_fork_client **at = &clients; *at; at = &(*at)->next) {
		if (*at != c)
			continue;
		*at = c->next;
		break;
	}
	tsi_forks_unlock();
}

void tsi_forks_lock(void)
{
	pthread_mutex_lock(&lock);
}

void tsi_forks_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void tsi_forks_await(void)
{
	tsi_forks_lock();
	tsi_forks_unlock();
}
